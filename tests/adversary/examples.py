"""How many examples property tests of the adversary draw: `ADVERSARY_EXAMPLES=20000` for a long search."""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("ADVERSARY_EXAMPLES", "60"))
