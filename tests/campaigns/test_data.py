"""What cells share is made once, is the same whoever makes it, and is refused where the model has changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from tightrope.benchmarks.suite import load
from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope_campaigns import measurement
from tightrope_campaigns.cells import Cell, Protocol
from tightrope_campaigns.measurement import (
    counts_path,
    is_prepared,
    prepare,
    read_cell_counts,
    read_truth,
    solve_truth,
    truth_path,
    write_truth,
)

CELL = Cell("betting(3)", "tied", 7, Protocol(300))


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    return load(CELL.problem)


def test_cells_that_come_at_once_simulate_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate, calls = measurement.simulate, []

    def counted(cell: Cell, model: ParametricMDP) -> Counts:
        calls.append(cell)
        return simulate(cell, model)

    monkeypatch.setattr(measurement, "simulate", counted)
    assert not is_prepared(tmp_path, CELL)
    threads = [Thread(target=prepare, args=(tmp_path, CELL)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert is_prepared(tmp_path, CELL)
    assert calls == [CELL]
    names = sorted(path.name for path in (tmp_path / "data").iterdir())
    stem = "betting-3-seed7-300"
    assert names == [f"{stem}.lock", f"{stem}.parquet", "betting-3-truth.npz"]


def test_data_depend_on_the_seed_and_not_on_the_method(tmp_path: Path, model: ParametricMDP) -> None:
    other_method, other_seed = replace(CELL, method="expression/likelihood"), replace(CELL, seed=8)
    assert counts_path(tmp_path, other_method) == counts_path(tmp_path, CELL)
    assert truth_path(tmp_path, other_seed) == truth_path(tmp_path, CELL)
    for cell in (CELL, other_seed):
        prepare(tmp_path, cell)
    first, second = (read_cell_counts(counts_path(tmp_path, cell), model) for cell in (CELL, other_seed))
    assert first == measurement.simulate(CELL, model)
    assert first != second
    assert first.design.episodes == 300 and first.batches is not None


def test_the_true_value_comes_back_as_it_was(tmp_path: Path, model: ParametricMDP) -> None:
    truth = solve_truth(CELL, model)
    write_truth(tmp_path / "truth.npz", truth)
    back = read_truth(tmp_path / "truth.npz", model)
    assert back.policy == truth.policy
    assert (back.lower, back.upper, back.model_hash) == (truth.lower, truth.upper, truth.model_hash)
    assert truth.lower <= truth.optimum <= truth.upper
    assert truth.upper - truth.lower <= 1e-6 * truth.upper


def test_data_of_another_version_of_the_model_are_refused(tmp_path: Path, model: ParametricMDP) -> None:
    truth = solve_truth(CELL, model)
    write_truth(tmp_path / "truth.npz", replace(truth, model_hash="0" * 64))
    with pytest.raises(InputError, match=r"truth.npz was made with another version of the model"):
        read_truth(tmp_path / "truth.npz", model)
