"""What is missing from a log, in words: what may have been left out because of how it came out.

An outcome that is not in the data is a visit with an unknown outcome. Where whether it is there depends on
what it was, the outcomes that are there are no draws from the model any more, and no confidence statement
holds for them; nobody but who collected the data can know that it does not. So the following make the
confidence nominal:

* rows that were dropped because they could not be read or explained;
* steps that are missing within an episode or at its beginning;
* actions whose outcome the log does not have, where the model allows more than one;
* episodes that stop without a word of their end, in a log that marks ends, unless they stop in a state that
  nothing leaves or all at the same length, the longest of all: a cap.

No loss is: an episode that was truncated after complete steps, the end of a log (but for its very last
action, where visits were fixed in advance, or where more data follow: `SamplingDesign.open_end`), and an
action without alternatives in its outcome.
"""

from __future__ import annotations

from collections.abc import Mapping

from tightrope.data.follow import GAPS, LONGEST, MISSING, OPEN_ENDS, OPEN_LONGEST, OPEN_SHORTEST
from tightrope.numerics.arrays import OffsetArray


def censored(
    dropped: Mapping[str, int], notes: OffsetArray, lost: int, late_starts: int = 0
) -> tuple[str, ...]:
    """What is missing, one phrase each; nothing where nothing is."""
    found = []
    if dropped:
        rows = sum(dropped.values())
        reasons = ", ".join(f"{times} {reason}" for reason, times in sorted(dropped.items()))
        found.append(f"{rows:,} {_plural(rows, 'row was', 'rows were')} dropped ({reasons})")
    if notes[GAPS]:
        steps = int(notes[MISSING])
        found.append(f"{steps:,} {_plural(steps, 'step is', 'steps are')} missing within episodes")
    if late_starts:
        found.append(f"{late_starts:,} {_plural(late_starts, 'episode begins', 'episodes begin')} late")
    if lost:
        found.append(f"{lost:,} {_plural(lost, 'action has', 'actions have')} no outcome in the log")
    is_cap = notes[OPEN_SHORTEST] == notes[OPEN_LONGEST] == notes[LONGEST]
    if notes[OPEN_ENDS] and not is_cap:
        stops = int(notes[OPEN_ENDS])
        found.append(f"{stops:,} {_plural(stops, 'episode stops', 'episodes stop')} without an end")
    return tuple(found)


def _plural(number: int, one: str, many: str) -> str:
    return one if number == 1 else many
