"""Results on disk for the tests of reports: small, and with everything that a report can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from learning_cases import case, counts_of
from tightrope.data.counts import Counts
from tightrope.learning.document import Setting, document
from tightrope.learning.learn import ALL_KINDS, learn_all
from tightrope.learning.options import LearnOptions
from tightrope.learning.result import Interval
from tightrope.learning.result_files import write_results
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.problem import Problem
from tightrope.region.region import RegionKind
from tightrope.report.regions import regions_beside
from tightrope.uncertainty.sets import SetsKind

DELTA = 0.001


def write_benchmark(
    folder: Path,
    name: str = "aircraft(8,4)",
    region: RegionKind | None = RegionKind.POLYTOPE,
    kinds: Sequence[SetsKind] = ALL_KINDS,
    compared: bool = True,
) -> Path:
    """A result of a benchmark instance with its true point, a given policy and regions beside each other."""
    known = case(name)
    truth = dict(pair.split("=", 1) for pair in known.instance.truth_text.split(","))
    setting = Setting(
        model=f"bench:{name}",
        property=known.instance.property_text,
        delta=DELTA,
        data={"file": "data.parquet", "sampled": {"seed": 4, "policy": "uniform"}},
        command=["tightrope", "learn", f"bench:{name}", "--data", "my data.parquet"],
        policy="optimal-at-truth",
        truth=truth,
        true_value=Interval(known.optimum, known.optimum),
    )
    results = list(
        learn_all(
            known.problem, counts_of(name), delta=DELTA, kinds=kinds, region=region, policy=known.policy
        ).values()
    )
    content = document(results, counts_of(name), LearnOptions(), setting)
    regions = content["regions"]
    assert isinstance(regions, list)
    if compared:
        regions += regions_beside(regions, known.model, counts_of(name), DELTA)
    write_results(folder, results, content)
    return folder


def write_plain(
    folder: Path, model: ParametricMDP, counts: Counts, objective: Objective | str, question: str
) -> Path:
    """A result of one kind of sets about a model of one's own: no truth, no given policy."""
    results = list(
        learn_all(
            Problem(model, objective), counts, delta=DELTA, kinds=(SetsKind.EXPRESSION,), region="polytope"
        ).values()
    )
    setting = Setting(model="own", property=question, delta=DELTA)
    write_results(folder, results, document(results, counts, LearnOptions(), setting))
    return folder
