"""What `watch --json` prints: one record per report, the last one marked."""

from __future__ import annotations

import msgspec

from tightrope.formats.documents.coding import Real
from tightrope.formats.documents.outcome import SuspectFacts


class ReturnsFacts(msgspec.Struct, frozen=True):
    """A promise about a policy, beside the returns of its episodes.

    Of the `episodes` that were weighed some left the policy and some were cut off; what they do not show
    counts as good as it can be. Those that began `elsewhere` than in the initial state are not among them.
    `first_alarm` is the number of the event at which the evidence had reached 1/`alpha`.
    """

    policy: str
    promised: Real
    at_least: bool
    episodes: int
    left_policy: int
    cut_off: int
    elsewhere: int
    mean: float | None
    log_e_value: Real
    alpha: float
    alarm: bool
    first_alarm: int | None
    nominal: bool


class WatchRecord(msgspec.Struct, kw_only=True, frozen=True):
    """A line of `watch --json`.

    With `--result` an `alarm` is one of the model or of the returns, each at half of `alpha`; `model_alpha`
    is the model's part. `e_value` and `log_e_value` are the evidence against the model, `first_alarm` the
    number of the event of the first alarm; `first_warning` that of the detector of changes, which has a rate
    of false alarms only. `nominal`: rows were left out, so that the level holds in name only.
    """

    alarm: bool
    e_value: Real
    log_e_value: Real
    alpha: float
    model_alpha: float
    events: int
    first_alarm: int | None
    first_warning: int | None
    suspects: list[SuspectFacts]
    parameters: dict[str, float]
    returns: ReturnsFacts | None
    read: dict[str, int]
    dropped: dict[str, int]
    nominal: bool
    final: bool
    seconds: float
