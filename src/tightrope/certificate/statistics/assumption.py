"""What a statement assumes of its data, and whether they were collected that way: derived, in words.

* FIXED (Clopper–Pearson, Hoeffding, Weissman's balls): the visits of every event were fixed in advance. Holds of
  draws from a generative model, and of trajectories that meet an event at most once each (never a choice twice, and
  events that pool no choices): whether one meets it is decided before its outcome is drawn.
* PLANNED (likelihood, a pilot that follows from the plan): the amount of data was fixed in advance.
* ANY (beta-binomial, likelihood otherwise, ellipsoid): any policy, any stopping rule, at all times at once.

Rows that were left out by their outcomes (censored data) satisfy none of them.
"""

from __future__ import annotations

from tightrope.certificate.problem import Problem

FIXED = "the visits of every event were fixed in advance, independently of outcomes"
PLANNED = "the amount of data was fixed in advance; the policy may have been adaptive"
ANY = "any policy, any stopping rule, at all times at once"


def support_words(least: float) -> str:
    return f"every transition that can happen has at least probability {least:g}, or its upper bound if that is smaller"


def assumptions(problem: Problem, planned: bool) -> list[str]:
    """What is assumed, in words; where the confidence is nominal, that comes first. `planned`: the pilot is."""
    data = problem.data
    assert data is not None
    words, nominal = [], False
    if problem.assumed_support is not None:
        words.append(support_words(problem.assumed_support))
    if data.method == "domain":
        return words
    if data.method in ("clopper-pearson", "hoeffding", "weissman"):
        assumed = FIXED
        once = data.design == "trajectories" and not data.repeats and data.sets == "untied"
        nominal = not (data.design == "generative-fixed" or once)
    else:
        assumed = PLANNED if data.method == "likelihood" and planned else ANY
        nominal = assumed == PLANNED and data.design == "adaptive"
    words.append(f"{assumed} (the data say: {data.design})")
    if data.method == "likelihood":
        words.append("batches were cut without looking at outcomes")
    if data.censored:
        words.insert(0, "NOMINAL confidence: rows of the data were left out by their outcomes")
    if nominal:
        words.insert(0, "NOMINAL confidence: the data were not collected the way the method needs")
    return words
