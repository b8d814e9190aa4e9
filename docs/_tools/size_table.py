"""The table of case studies in `docs/benchmarks.md`, generated so that it cannot drift.

Sizes and optima are those of the registry (ours); beside them stands what the paper prints. The
paper gives no optimum, but every relative gap it prints is a width divided by the optimum, so the
rounded figures of a table enclose it (`PublishedResult.implied_optimum`). Tables whose enclosures
do not meet are listed apart.
"""

from __future__ import annotations

from math import ceil, floor

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.suite import list_instances
from tightrope_campaigns.published import RESULT_TABLES, results_of, sizes_of

Range = tuple[float, float]

HEADER = (
    "| instance | in the paper | \\|S\\| | \\|T\\| | \\|Λ\\| | V* (ours) | V* implied by its tables |\n"
    "|---|---|---|---|---|---|---|"
)


def sizes_table() -> str:
    """One Markdown row an instance."""
    return "\n".join([HEADER, *(_row(instance) for instance in list_instances())])


def infer_optima(instance: Instance) -> tuple[Range, ...]:
    """Enclosures of the optimum from the paper's figures, one for every group of tables that agree.

    A table whose own figures contradict one another gives none.
    """
    groups: list[Range] = []
    for table in RESULT_TABLES:
        enclosures = [
            enclosure
            for result in results_of(instance)
            if result.table == table and (enclosure := result.implied_optimum()) is not None
        ]
        if not enclosures:
            continue
        low, high = max(a for a, _ in enclosures), min(b for _, b in enclosures)
        if low > high:
            continue
        for k, (other_low, other_high) in enumerate(groups):
            if max(low, other_low) <= min(high, other_high):
                groups[k] = (max(low, other_low), min(high, other_high))
                break
        else:
            groups.append((low, high))
    return tuple(groups)


def _row(instance: Instance) -> str:
    paper, ours = sizes_of(instance), instance.sizes
    assert paper is not None and ours is not None
    optima = "; ".join(_outward(enclosure) for enclosure in infer_optima(instance))
    cells = (
        f"`{instance.name}`",
        paper.printed,
        str(ours.states),
        _beside(ours.transitions, paper.transitions),
        _beside(ours.expressions, paper.expressions),
        str(instance.optimum),
        optima,
    )
    return f"| {' | '.join(cells)} |"


def _outward(enclosure: Range) -> str:
    """Rounded to three digits after the point, the lower end down and the upper end up."""
    low, high = enclosure
    return f"{floor(low * 1000) / 1000:.3f} – {ceil(high * 1000) / 1000:.3f}"


def _beside(ours: int, paper: int) -> str:
    return str(ours) if ours == paper else f"{ours} (paper {paper})"
