"""Regions of other kinds beside the one that was learned with, as entries for the document of a run.

`tightrope learn` builds one region, and its document holds that one. For a picture that compares them, the
others are built here from the same counts at the same δ. Each holds with its confidence on its own; kinds
whose assumption the data do not satisfy are left out, and so are kinds that the model does not admit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.errors import TightropeError
from tightrope.io.results import RegionShape
from tightrope.learning.document import region_shape
from tightrope.learning.options import LearnOptions, decide
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.regions.bounds import parameter_box
from tightrope.regions.build import build_region
from tightrope.regions.region import RegionKind

COMPARED = (RegionKind.POLYTOPE, RegionKind.ELLIPSOID, RegionKind.LIKELIHOOD)


def regions_beside(
    known: Iterable[RegionShape],
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    options: LearnOptions | None = None,
    kinds: Iterable[RegionKind] = COMPARED,
) -> list[RegionShape]:
    """Entries of `kinds` that are not among the `known` ones, to be appended to a document's regions."""
    present = {entry.kind for entry in known}
    asked = options or LearnOptions()
    result = []
    for kind in kinds:
        if kind.value in present:
            continue
        try:
            chosen = decide(model, counts, _asking_for(kind, asked)).region_options(asked)
            region = build_region(kind, model, counts, delta, chosen)
            if region.ledger.holds:
                box = None if region.emptiness.is_empty else parameter_box(region)
                result.append(region_shape(region, model.parameters.names, box))
        except TightropeError:
            continue
    return result


def _asking_for(kind: RegionKind, options: LearnOptions) -> LearnOptions:
    return replace(options, region=kind, sets=SetsKind.EXPRESSION)
