"""How much is tried: a part in every run, all of it with `TIGHTROPE_WHOLE=1` and in `make release`.

Cases are drawn from fixed seeds, and every run tries the same ones. `HYPOTHESIS_PROFILE=explore` tries all of
them and many more examples.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXPLORING = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
WHOLE = EXPLORING or os.environ.get("TIGHTROPE_WHOLE") == "1"
PART = 3

settings.register_profile(
    "fixed",
    max_examples=16 if WHOLE else 8,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

FUZZED = settings(max_examples=2000 if EXPLORING else 25)
"""For texts of large grammars: fewer examples do not reach all that refuses them."""


def repeats(whole: int, part: int = PART) -> int:
    """So many of `whole` random cases: one in `part`."""
    return whole if WHOLE else -(-whole // part)


CHARACTERS = st.one_of(
    *(st.integers(*ends).map(chr) for ends in ((0, 0x7F), (0, 0xD7FF), (0xE000, 0x10FFFF)))
)
"""All of Unicode, without the table of its categories, which takes seconds to make."""
