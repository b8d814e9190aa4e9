"""When a monitor looks: after numbers of events that are fixed in advance.

An e-process may be looked at any time; how often it is decides the speed only. A look weighs all evidence,
renews estimates and lets a candidate for a change begin. As candidates are numbered and share one weight,
looks are as far apart as a change needs to show, a part of the past: the longer it was, the less likely is it
that what is still to come shows at once. Where that becomes many events, glances in between weigh the
evidence for changes that began at earlier looks, if there may be some.

That looks do not depend on the data is more than a test needs. It makes what a monitor says the same however
a stream is cut into portions.
"""

from __future__ import annotations

FIRST_CANDIDATE = 64
"""Events before which no change of the parameters is looked for."""


def next_look(events: int) -> int:
    """The number of events after which evidence is looked at again.

    >>> [next_look(n) for n in (0, 3, 40, 1000, 10**6, 10**8)]
    [4, 7, 50, 1064, 1003906, 100065536]
    """
    if events < 256:
        return events + max(4, events // 4)
    return events + min(max(events // 256, 64), 65536)


GLANCES = 4
"""Where looks are far apart the evidence for a change is glanced at in between: so many steps to a look."""


def next_glance(events: int, look_at: int) -> int:
    """The number of events after which evidence is looked at, or glanced at, again.

    >>> [next_glance(n, next_look(n)) for n in (40, 1000, 10**6)], next_glance(1_000_976, 1_003_906)
    ([50, 1064, 1000976], 1001953)
    """
    gap = (next_look(events) - events) // GLANCES
    return min(events + gap, look_at) if gap >= FIRST_CANDIDATE else look_at
