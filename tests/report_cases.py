"""Results on disk for the tests of reports: small, and with everything that a report can show.

`stored/aircraft-v2` was written for the benchmark aircraft(8,4): all kinds of sets over a
polytope, three regions beside each other, a given policy and the true point. Reading it shows that files of
the same major version load.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.learning.learn import learn_all
from tightrope.learning.options import LearnOptions
from tightrope.learning.result_files import Setting, document, write_results
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.problem import Problem

DELTA = 0.001
STORED = Path(__file__).parent / "stored" / "aircraft-v2"


def copy_stored(folder: Path) -> Path:
    """The stored result in a folder that can be written to."""
    shutil.copytree(STORED, folder)
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
