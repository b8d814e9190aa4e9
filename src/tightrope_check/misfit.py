"""Model error: at some choices the process is within total variation ε of the model, at every step anew.

Total variation ε moves no probability by more than ε, so bounds of single probabilities that move outward by
ε hold of such a process, over the model's transitions; a choice with one successor keeps it. Nature may
choose anew at every step: what is inductive against it bounds the value (`tightrope_check.checker`).
Whether a distribution lies within the bounds is asked before they are widened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tightrope_check.arrays import FloatArray
from tightrope_check.nature import Boxes
from tightrope_check.verdict import Assumption, exactly

if TYPE_CHECKING:
    from tightrope_check.learned import Learned
    from tightrope_check.problem import Certificate, CertifiedProblem


def numbers(problem: CertifiedProblem) -> FloatArray:
    """Those of the misfit, beside 0."""
    assert problem.misfit is not None
    return np.unique(problem.misfit[problem.misfit > 0])


def trouble(certificate: Certificate) -> str | None:
    problem, hints = certificate.problem, certificate.learned
    if hints is None or problem.assumed_support is not None or len(numbers(problem)) != 1:
        return "a misfit is one number, for models over a domain without an assumption about supports"
    bases = [one.lower_basis is not None or one.upper_basis is not None for one in certificate.values]
    return "a misfit requires bounds of single probabilities" if hints.coupled or any(bases) else None


def assumption(problem: CertifiedProblem) -> Assumption:
    """In words that claim no more than there is: at how many choices, and by how much."""
    assert problem.misfit is not None
    where = f"{np.count_nonzero(problem.misfit)} of {len(problem.misfit)} choices"
    words = f"at {where} the process is within total variation {exactly(float(numbers(problem)[0]))}"
    return "misfit", "stated", f"{words} of the model, and has no other transitions"


def widened(link: Learned, boxes: Boxes) -> Boxes:
    """The boxes of a learned model, moved outward: one for every transition, in doubles."""
    graph, n, misfit = link.problem.graph, link.n, link.problem.misfit
    assert misfit is not None
    size = np.diff(graph.transition_start)
    by = np.repeat(np.where(size > 1, misfit, 0.0), size)
    lower, upper = link.projection.lower[boxes.label], link.projection.upper[boxes.label]
    lower = np.where(by > 0, np.maximum(np.nextafter(lower - by, -1), 0), lower)
    upper = np.where(by > 0, np.minimum(np.nextafter(upper + by, 2), 1), upper)
    own, ends = np.arange(graph.transitions), (n.array(lower), n.array(upper))
    return Boxes(n, graph.transition_start, graph.successor, own, *ends, boxes.single)
