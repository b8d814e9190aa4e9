"""Columns of a log: one that may have been written after the outcome refutes no model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.monitoring.features import codes


def coin() -> tr.Problem:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [(0, "go", {0: p, 1: 1 - p}), (1, "", {1: 1})]
    return tr.build_from_rows(rows, parameters, labels={"out": [1]}).problem('P=? [ F<=3 "out" ]')


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a right model; `length` is written when an episode is over, `lasted` with every row."""
    rng = np.random.default_rng(1)
    lines = ["episode,state,action,next_state,length,lasted"]
    for episode in range(400):
        steps = int(rng.geometric(0.5))
        size = "long" if steps > 2 and rng.random() < 0.9 else "short"
        for step in range(steps):
            ends = step == steps - 1
            lasted = "slow" if rng.random() < (0.7 if ends else 0.3) else "fast"
            lines.append(f"{episode},0,go,{int(ends)},{size},{lasted}")
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_column_that_was_written_afterwards_does_not_refute_a_right_model(log: Path) -> None:
    result = tr.learn(coin(), tr.read_data(log, coin().model, order="as-read"), delta=0.05)
    assert result.fit is not None and result.fit.alarm and not result.fit.is_refutation
    assert result.verdict.word.value == "nominal"
    assert any("'length'" in one and "`ignored`" in one for one in result.fit.nominal)
    assert "lasted" not in str(result.fit.suspects)


def test_columns_that_are_left_out_say_nothing(log: Path) -> None:
    data = tr.read_data(log, coin().model, order="as-read", ignored="length")
    result = tr.learn(coin(), data, delta=0.05)
    assert result.fit is not None and result.fit.verdict == "no evidence against it"
    assert result.verdict.word.value == "proved"


def test_what_is_stated_is_trusted(log: Path) -> None:
    data = tr.read_data(log, coin().model, order="as-read", known="length, lasted")
    result = tr.learn(coin(), data, delta=0.05)
    assert result.verdict.word.value == "contradicted"
    found = tr.doctor(coin().model, data)
    assert found.verdict.word.value == "contradicted"
    assert {"column:length", "column:lasted"} <= {one.feature for one in found.examination.refuting}


def test_of_a_column_that_changes_a_row_has_the_value_of_the_row_before(log: Path) -> None:
    model = coin().model
    rows = tr.read_data(log, model).counts.log()
    column, lagged = rows.columns["lasted"], codes("column:lasted", model, rows)
    begins = rows.previous < 0
    assert (lagged[begins] == -1).all()
    assert (lagged[~begins] == column.code[rows.previous[~begins]]).all()
    assert (codes("column:length", model, rows) == rows.columns["length"].code).all()


def test_columns_that_are_not_there_are_refused(log: Path) -> None:
    with pytest.raises(InputError, match="the column 'wind' is not in the log, or has another role"):
        tr.read_data(log, coin().model, known="wind")
    with pytest.raises(InputError, match="the column 'state' is not in the log, or has another role"):
        tr.read_data(log, coin().model, ignored="state")
