"""What to say where a method's assumption does not hold of the data: which options give one that holds.

`--interval` chooses the intervals of events, so it helps where these are what the region is made of; the
l1 region is made of balls that no interval changes.
"""

from __future__ import annotations

from tightrope.statistics.estimates import IntervalMethod
from tightrope.statistics.ledger import Ledger

ANYTIME = f"--interval {IntervalMethod.BETA_BINOMIAL.value}"


def options_that_hold(ledger: Ledger) -> str:
    """The options to add, for data of any design."""
    methods = {method.value for method in IntervalMethod}
    return ANYTIME if ledger.method in methods else f"--region polytope {ANYTIME}"
