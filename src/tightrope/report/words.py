"""The words of a report, each with a sentence for people who have not read the method's paper.

They are those of the glossary of the site, as far as this report uses them.
"""

from __future__ import annotations

from tightrope.report.run import Run

SETS = {
    "untied": "every transition has an interval of its own",
    "tied": "equal formulas share one interval, from all their data",
    "parameter": "each parameter has an interval, and formulas are computed from these",
    "expression": "each formula has the range that the region leaves it",
    "rectangular": "at each choice nature picks parameters from the region, another time perhaps others",
    "coupled": "nature picks parameters from the region once, for the whole run",
}

WORDS = {
    "policy": (
        "robust policy",
        "What to do in each state, chosen to do well whatever the parameters are, as far as the data leave "
        "them open.",
    ),
    "guarantee": (
        "guarantee",
        "What the robust policy attains at {side}. It fails to hold with probability δ at most, over the "
        "draw of the data.",
    ),
    "optimistic": (
        "optimistic value",
        "What the best policy could attain at {best} if the parameters were as kind as the data allow. The "
        "gap between it and the guarantee is what more data could bring.",
    ),
    "region": (
        "region",
        "The parameters that are compatible with the data, at the confidence of the ledger.",
    ),
    "sets": (
        "sets",
        "What nature may pick the transition probabilities from when the guarantee is computed. Here: "
        "{sets}.",
    ),
    "ledger": (
        "ledger",
        "How δ was spent: on which observations, how much for each, under which assumption about the "
        "sampling.",
    ),
    "binding": (
        "binding",
        "An observation binds if it holds the region in place: more data about it would shrink the region.",
    ),
    "certified": (
        "certified",
        "Bounds were verified with rounding to the safe side, not only approximated.",
    ),
}
"""By the end of the anchor that links lead to."""


def explain_words(run: Run) -> list[tuple[str, str, str]]:
    """(anchor, word, meaning) of every word; of the kinds of sets, those that are shown."""
    kinds = dict.fromkeys(outcome.sets for _, outcome in run.shown)
    sets = "; ".join(f"{kind}, {SETS[kind]}" for kind in kinds if kind in SETS)
    side, best = ("least", "most") if run.maximises else ("most", "least")
    filled = {"sets": sets or "those named in the figures", "side": side, "best": best}
    return [(at, word, meaning.format(**filled)) for at, (word, meaning) in WORDS.items()]
