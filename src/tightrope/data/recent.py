"""The recent part of a log: events before a change are left out.

Events are numbered from 1 in the order of the log, as `watch` counts them. Which ones are left out is a
choice, and the confidence holds only if it was made without looking at what is kept:

* the first event that is kept was fixed in advance, or follows from the events before it, such as the event
  after an alarm: what comes then is fresh, under any policy, and every time-uniform statement holds from
  there on;
* a change that was estimated from what came after it: the events between the estimate and the alarm are part
  of what was looked at. Intervals from them are those of data that were chosen for being different;
* a window of the last events: it begins where it does because the log ends where it does.

So whoever leaves out events says how many had been seen when that was decided (`chosen_at`; 0 for a plan).
The confidence is nominal unless those are all before the first event that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.errors import InputError
from tightrope.numerics.record import Record


@dataclass(frozen=True)
class Recent:
    """What is to be kept: the events from number `since` on, or the last `window` of them."""

    since: int | None = None
    window: int | None = None
    chosen_at: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("since", 1), ("window", 1), ("chosen_at", 0)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise InputError(
                    f"`{name}` is {value!r}, not a number of events from {least} on",
                    hint="events are counted from 1 in the order of the log, as `watch` prints them",
                )
        if self.since is not None and self.window is not None:
            raise InputError(
                "`since` and `window` both say which events are kept", hint="leave one of them out"
            )
        if self.chosen_at is not None and self.since is None and self.window is None:
            raise InputError(
                "`chosen_at` says when it was decided which events are kept, and all are",
                hint="add `since` or `window`, or leave `chosen_at` out",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Kept(Record):
    """The events that were kept, `first` to `last`; `chosen_at` had been seen when that was decided."""

    first: int
    last: int
    chosen_at: int | None

    @property
    def left_out(self) -> int:
        return self.first - 1

    @property
    def holds(self) -> bool:
        """Whether what is kept is fresh: it was not looked at when it was chosen."""
        return self.left_out == 0 or (self.chosen_at is not None and self.chosen_at < self.first)

    @property
    def note(self) -> str:
        """What is kept, in a line."""
        if self.left_out == 0:
            return f"all {self.last:,} events are kept"
        kept = f"events {self.first:,} to {self.last:,} are kept, the {self.left_out:,} before are left out"
        if not self.holds:
            return kept
        when = "in advance" if self.chosen_at == 0 else f"when {self.chosen_at:,} had been seen"
        return f"{kept}, as was decided {when}: what is kept is fresh"

    @property
    def missing(self) -> str:
        """Why the confidence is nominal, where it is."""
        left = f"{self.left_out:,} events before event {self.first:,} are left out"
        if self.chosen_at is None:
            return f"{left}, and nothing says that this was decided before those that are kept were seen"
        return f"{left}, as was decided when events up to {self.chosen_at:,} had been seen"

    def to_json(self) -> dict[str, int | bool | None]:
        return {
            "first": self.first,
            "last": self.last,
            "left_out": self.left_out,
            "chosen_at": self.chosen_at,
            "holds": self.holds,
        }
