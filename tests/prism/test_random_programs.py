"""Random PRISM programs: our model is Storm's, and survives a round trip through DRN."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from effort import EXPLORING
from random_programs import ProgramWriter
from storm import build_with_storm, plain_from_storm, plain_from_tightrope
from tightrope.io.drn.read import read_drn
from tightrope.io.drn.write import write_drn
from tightrope.prism.load import load_prism

POINT = {"p": Fraction(3, 11), "q": Fraction(7, 17)}
PROGRAMS = 12
"""Programs a test, of each kind; thousands were run by hand."""


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", ["parametric", "interval"])
@pytest.mark.parametrize("block", range(6 if EXPLORING else 2))
def test_the_same_model_as_storm(kind: str, block: int, tmp_path: Path) -> None:
    (tmp_path / "storm").mkdir()
    for seed in range(block * PROGRAMS, (block + 1) * PROGRAMS):
        text = ProgramWriter(seed, kind).program()
        file = tmp_path / "random.prism"
        file.write_text(text, encoding="utf-8")
        storm = build_with_storm(file, {}, kind, tmp_path / "storm")
        model = load_prism(file)
        theirs = plain_from_storm(storm, POINT)
        ours = plain_from_tightrope(model, POINT, action_names=storm.is_nondeterministic_model)
        assert ours == theirs, f"seed {seed}:\n{text}"
        write_drn(model, tmp_path / "random.drn")
        assert read_drn(tmp_path / "random.drn").hash() == model.hash(), f"seed {seed}:\n{text}"
