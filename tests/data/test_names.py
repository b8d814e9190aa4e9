"""States and actions by name in logs for models in the PRISM language: labels name values of variables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.errors import InputError

MODEL = """mdp
const double p;
module unit
  phase : [0..2] init 0;
  wear : [0..1] init 0;
  [_0] phase=0 -> p : (phase'=1) + 1-p : (phase'=2)&(wear'=1);
  [end_run] phase>0 -> true;
endmodule
label "idle" = phase=0;
label "at_work" = phase=1;
label "down_" = phase=2;
label "worn" = wear=1 & phase=2;
"""


@pytest.fixture
def model(tmp_path: Path) -> tr.ParametricMDP:
    path = tmp_path / "unit.prism"
    path.write_text(MODEL)
    model = tr.load(path, params={"p": (0.1, 0.9)})
    assert isinstance(model, tr.ParametricMDP)
    return model


def test_labels_name_the_values_of_a_variable(model: tr.ParametricMDP) -> None:
    log = pa.table(
        {
            "phase": ["idle", "idle", "at work", "0"],
            "wear": [0, 0, 0, 0],
            "act": ["0", "0", "end run", "0"],
            "next_phase": ["at work", "down", "at_work", "1"],
            "next_wear": [0, 1, 0, 0],
        }
    )
    reading = tr.read_data(log, model)
    assert reading.counts.transition.tolist() == [2, 1, 1, 0]
    assert "phase' = next_phase" in reading.read_as[0]


def test_an_action_by_number_has_the_name_with_a_stroke(model: tr.ParametricMDP) -> None:
    log = pa.table({"phase": [0], "wear": [0], "action": [0], "phase_next": [1], "wear_next": [0]})
    assert tr.read_data(log, model).counts.transition.tolist() == [1, 0, 0, 0]


def test_what_is_no_name_is_refused_with_its_row(model: tr.ParametricMDP) -> None:
    log = {"phase": ["idle", "asleep"], "wear": [0, 0], "action": ["_0", "_0"]}
    log |= {"phase_next": ["at_work", "down"], "wear_next": [0, 1]}
    with pytest.raises(InputError, match="asleep"):
        tr.read_data(pa.table(log), model)
