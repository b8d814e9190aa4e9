"""How much is tried at random: a part in every run, all of it where `HYPOTHESIS_PROFILE=explore`.

Cases are drawn from fixed seeds, so every run tries the same ones; before a release, or after a change of
what they test, all of them are tried by hand.
"""

from __future__ import annotations

import os

from hypothesis import settings
from hypothesis import strategies as st

EXPLORING = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
PART = 3
FUZZED = settings(max_examples=2000 if EXPLORING else 25)
"""For texts of large grammars: fewer examples do not reach all that refuses them."""


def repeats(whole: int) -> int:
    """So many of `whole` random cases."""
    return whole if EXPLORING else -(-whole // PART)


CHARACTERS = st.one_of(
    *(st.integers(*ends).map(chr) for ends in ((0, 0x7F), (0, 0xD7FF), (0xE000, 0x10FFFF)))
)
"""All of Unicode, without the table of its categories, which takes seconds to make."""
