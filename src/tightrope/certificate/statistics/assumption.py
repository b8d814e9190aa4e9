"""What a statement assumes of its data, and whether they were collected that way: derived, in words.

* FIXED (Clopper–Pearson, Hoeffding, Weissman's balls): the visits of every event were fixed in advance. Holds
  of draws from a generative model, and of trajectories that meet an event at most once each (never a choice
  twice, and events that pool no choices): whether one meets it is decided before its outcome is drawn.
* PLANNED (likelihood, a pilot that follows from the plan): the amount of data was fixed in advance.
* ANY (beta-binomial, likelihood otherwise, ellipsoid): any policy, any stopping rule, at all times at once.

Rows that were left out by their outcomes (censored data) satisfy none of them.
"""

from __future__ import annotations

from tightrope.certificate.problem import Problem

FIXED = "the visits of every event were fixed in advance, independently of outcomes"
PLANNED = "the amount of data was fixed in advance; the policy may have been adaptive"
ANY = "any policy, any stopping rule, at all times at once"


def assumptions(problem: Problem, planned: bool) -> tuple[list[str], bool]:
    """(what is assumed, in words; whether the confidence is nominal). `planned`: the pilot follows a plan."""
    data = problem.data
    assert data is not None
    words: list[str] = []
    if problem.assumed_support is not None:
        words.append(f"a transition that can happen has at least probability {problem.assumed_support:g}")
    if data.method == "domain":
        return words, False
    if data.method in ("clopper-pearson", "hoeffding", "weissman"):
        assumed = FIXED
        once = data.design == "trajectories" and not data.repeats and data.sets == "untied"
        holds = data.design == "generative-fixed" or once
    else:
        assumed = PLANNED if data.method == "likelihood" and planned else ANY
        holds = assumed == ANY or data.design != "adaptive"
    words.append(f"{assumed} (the data say: {data.design})")
    if data.method == "likelihood":
        words.append("batches were cut without looking at outcomes")
        if data.design == "adaptive" and data.planned is not None:
            words.append(f"{data.planned} episodes were planned before the first one")
    if data.censored:
        words.insert(0, "NOMINAL: rows were left out by their outcomes; nothing is guaranteed")
    if not holds:
        words.insert(0, "NOMINAL: the data were not collected as the method needs; nothing is guaranteed")
    return words, data.censored or not holds
