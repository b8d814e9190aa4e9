"""Data files: what is written is read back to the same counts; other people's files in all their forms.

Also of `io/table/arrow.py`.
"""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tightrope.data.columns import StateForm
from tightrope.data.counts import Counts, batch_ends
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.reading import read_data
from tightrope.data.simulator import Simulator
from tightrope.data.writing import write_counts, write_trajectories
from tightrope.errors import InputError
from tightrope.model.builder import build_from_function, build_from_rows
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import Structured

EPISODES, SEED = 400, 3
FORMATS = ("csv", "parquet")


class Cell(NamedTuple):
    x: int
    wet: bool


def river(width: int = 6) -> ParametricMDP:
    """Cross a river on stones; two ways to jump, a boolean variable, two ends."""
    parameters = Parameters.box(p=("0.2", "0.8"))
    (p,) = parameters.symbols()

    def successors(cell: Cell) -> dict[str, dict[Cell, object]]:
        if cell.x in (0, width):
            return {"rest": {cell: 1}}
        near = Cell(cell.x + 1, False)
        far = Cell(min(cell.x + 2, width), cell.wet)
        return {
            "hop": {near: p, Cell(cell.x - 1, True): 1 - p},
            "leap": {far: p / 2, cell: "1/4", Cell(0, True): "3/4" - p / 2},
        }

    model = build_from_function(Cell(3, False), successors, parameters)  # type: ignore[arg-type]
    assert isinstance(model, ParametricMDP)
    return model


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    return river()


@pytest.fixture(scope="module")
def simulator(model: ParametricMDP) -> Simulator:
    return Simulator(model.instantiate([Fraction(3, 5)]), cap=50, model_hash=model.hash(), threads=1)


@pytest.fixture(scope="module")
def counts(simulator: Simulator) -> Counts:
    return simulator.episodes(EPISODES, SEED)


# --- round trips ----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("states", list(StateForm))
def test_counts_survive_a_file(
    tmp_path: Path, model: ParametricMDP, counts: Counts, suffix: str, states: StateForm
) -> None:
    path = tmp_path / f"counts.{suffix}"
    write_counts(path, counts, model.structure, states=states, extra={"seed": SEED})
    reading = read_data(path, model)
    assert reading.counts == counts
    assert reading.dropped == {}
    assert counts.batches is not None and reading.rows == len(counts.batches.count)
    assert reading.metadata is not None and reading.metadata["seed"] == SEED
    assert reading.metadata["model"] == model.hash()


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("states", list(StateForm))
def test_trajectories_survive_a_file(
    tmp_path: Path, model: ParametricMDP, simulator: Simulator, counts: Counts, suffix: str, states: StateForm
) -> None:
    path = tmp_path / f"steps.{suffix}"
    blocks = simulator.trajectories(EPISODES, SEED)
    write_trajectories(path, blocks, counts, model.structure, states=states)
    reading = read_data(path, model)
    assert reading.counts == counts
    assert reading.rows == counts.steps


@pytest.mark.parametrize("suffix", FORMATS)
def test_generative_counts_survive_a_file(
    tmp_path: Path, model: ParametricMDP, simulator: Simulator, suffix: str
) -> None:
    counts = simulator.generative(30, SEED)
    write_counts(tmp_path / f"g.{suffix}", counts, model.structure)
    assert read_data(tmp_path / f"g.{suffix}", model).counts == counts


@pytest.mark.parametrize("suffix", FORMATS)
def test_unlabelled_and_awkward_action_names_survive_a_file(tmp_path: Path, suffix: str) -> None:
    names = ["", 'say "hi", twice', "ünïcode", "# tightrope: {}"]
    model = build_from_rows([(s, name, {(s + 1) % 4: 1}) for s, name in enumerate(names)])
    assert isinstance(model, ParametricMDP)
    counts = Simulator(model.instantiate([]), model_hash=model.hash(), threads=1).generative(3, 1)
    write_counts(tmp_path / f"a.{suffix}", counts, model.structure)
    assert read_data(tmp_path / f"a.{suffix}", model).counts == counts


@pytest.mark.parametrize("suffix", FORMATS)
def test_counts_without_batches_survive_a_file(
    tmp_path: Path, model: ParametricMDP, counts: Counts, suffix: str
) -> None:
    plain = Counts(counts.transition, counts.transition_start, counts.design, counts.model_hash)
    write_counts(tmp_path / f"c.{suffix}", plain, model.structure)
    assert read_data(tmp_path / f"c.{suffix}", model).counts == plain


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("suffix", FORMATS)
def test_no_steps_at_all_survive_a_file(tmp_path: Path, model: ParametricMDP, suffix: str, raw: bool) -> None:
    stop = np.ones(model.states, dtype=np.bool_)
    simulator = Simulator(model.instantiate([Fraction(3, 5)]), stop=stop, model_hash=model.hash())
    counts = simulator.episodes(10, 1)
    path = tmp_path / f"none.{suffix}"
    if raw:
        write_trajectories(path, simulator.trajectories(10, 1), counts, model.structure)
    else:
        write_counts(path, counts, model.structure)
    assert read_data(path, model).counts == counts


def test_the_first_batches_are_small(counts: Counts) -> None:
    assert counts.batches is not None
    assert len(counts.batches) == len(batch_ends(EPISODES))
    assert counts.batches[0][1].sum() <= 50


def test_a_csv_file_begins_with_its_metadata(tmp_path: Path, model: ParametricMDP, counts: Counts) -> None:
    path = tmp_path / "c.csv"
    write_counts(path, counts, model.structure, extra={"seed": SEED, "policy": "uniform"})
    first, header, row = path.read_text().splitlines()[:3]
    metadata = json.loads(first.removeprefix("# tightrope: "))
    assert metadata["design"] == counts.design.to_json()
    assert metadata["rows"] == "counts"
    assert metadata["policy"] == "uniform"
    assert header == "batch,state,choice,action,next_state,count"
    assert len(row.split(",")) == 6


def test_a_parquet_file_carries_its_metadata(tmp_path: Path, model: ParametricMDP, counts: Counts) -> None:
    path = tmp_path / "c.parquet"
    write_counts(path, counts, model.structure, states=StateForm.VARIABLES)
    schema = pq.read_schema(path)
    assert schema.names == ["batch", "x", "wet", "choice", "action", "x_next", "wet_next", "count"]
    assert schema.field("wet").type == pa.bool_()
    assert json.loads(schema.metadata[b"tightrope"])["model"] == model.hash()


def test_indices_of_another_model_are_refused_variables_are_not(
    tmp_path: Path, model: ParametricMDP, counts: Counts
) -> None:
    other = river(width=9)
    write_counts(tmp_path / "i.csv", counts, model.structure, extra={"source": "river.prism"})
    with pytest.raises(
        InputError, match=r"i.csv: the file was sampled from a different model \(river.prism\)"
    ):
        read_data(tmp_path / "i.csv", other)
    write_counts(tmp_path / "v.csv", counts, model.structure, states=StateForm.VARIABLES)
    with pytest.raises(InputError, match="the model has no transition from state"):
        read_data(tmp_path / "v.csv", other)


def test_a_file_that_lost_rows_is_refused(tmp_path: Path, model: ParametricMDP, counts: Counts) -> None:
    path = tmp_path / "c.csv"
    write_counts(path, counts, model.structure)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-3]))
    with pytest.raises(InputError, match=f"the file was written with {counts.steps} steps, but holds"):
        read_data(path, model)


def test_an_older_file_stays_when_writing_fails(tmp_path: Path, model: ParametricMDP, counts: Counts) -> None:
    path = tmp_path / "c.csv"
    path.write_text("old")

    def broken() -> object:
        raise RuntimeError("power cut")
        yield

    with pytest.raises(RuntimeError, match="power cut"):
        write_trajectories(path, broken(), counts, model.structure)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.csv"]


# --- files of other origin ------------------------------------------------------------------


def transitions(model: Structured, text: str, tmp_path: Path, states: str | None = None) -> dict[str, int]:
    """What a CSV text counts, by name."""
    path = tmp_path / "data.csv"
    path.write_text(text)
    return named(model, read_data(path, model, states=states).counts)


def named(model: Structured, counts: Counts) -> dict[str, int]:
    structure = model.structure
    result = {}
    for t in np.flatnonzero(counts.transition):
        choice = int(structure.transition_choice[t])
        source = structure.state_name(int(structure.choice_state[choice]))
        target = structure.state_name(int(structure.successor[t]))
        result[f"{source} {structure.action_name(choice)} {target}"] = int(counts.transition[t])
    return result


EXPECTED = {
    "(x=3,wet=false) hop (x=4,wet=false)": 2,
    "(x=4,wet=false) leap (x=6,wet=false)": 1,
    "(x=3,wet=false) leap (x=0,wet=true)": 1,
}
BY_VARIABLES = """episode,step,x,wet,action,x_next,wet_next
a,0,3,false,hop,4,false
a,1,4,false,leap,6,false
b,0,3,0,leap,0,1
c,0,3,False,hop,4,False
"""


def test_one_row_a_transition_by_variables(tmp_path: Path, model: ParametricMDP) -> None:
    assert transitions(model, BY_VARIABLES, tmp_path) == EXPECTED


def test_windows_line_ends_a_byte_order_mark_and_blank_lines_do_not_matter(
    tmp_path: Path, model: ParametricMDP
) -> None:
    text = "\ufeff" + BY_VARIABLES.replace("\n", "\r\n").replace("b,0", "\r\nb,0")
    assert transitions(model, text, tmp_path) == EXPECTED


def test_columns_may_stand_in_any_order_beside_others(tmp_path: Path, model: ParametricMDP) -> None:
    text = 'note,x_next,x,wet_next,wet,action\n"one, two",4,3,false,false,hop\n,6,4,0,0,leap\n'
    assert transitions(model, text, tmp_path) == {
        "(x=3,wet=false) hop (x=4,wet=false)": 1,
        "(x=4,wet=false) leap (x=6,wet=false)": 1,
    }


def test_actions_by_number(tmp_path: Path, model: ParametricMDP) -> None:
    text = BY_VARIABLES.replace("hop", "0").replace("leap", "1")
    assert transitions(model, text, tmp_path) == EXPECTED
    text = BY_VARIABLES.replace("action", "choice").replace("hop", "0").replace("leap", "1.0")
    assert transitions(model, text, tmp_path) == EXPECTED


def state_of(model: Structured, x: int, wet: bool) -> int:
    columns = model.structure.valuations
    return int(np.flatnonzero((columns["x"] == x) & (columns["wet"] == wet))[0])


def test_states_by_index(tmp_path: Path, model: ParametricMDP) -> None:
    dry3, dry4, end = state_of(model, 3, False), state_of(model, 4, False), state_of(model, 6, False)
    text = f"state,action,next_state\n{dry3},hop,{dry4}\n{dry4}.0,leap, {end}\n"
    assert transitions(model, text, tmp_path, states="index") == {
        "(x=3,wet=false) hop (x=4,wet=false)": 1,
        "(x=4,wet=false) leap (x=6,wet=false)": 1,
    }


def test_count_tables(tmp_path: Path, model: ParametricMDP) -> None:
    text = (
        "x,wet,action,x_next,wet_next,count\n3,0,hop,4,0,2\n4,0,leap,6,0,1.0\n3,0,leap,0,1,1\n3,0,hop,2,1,0\n"
    )
    assert transitions(model, text, tmp_path) == EXPECTED
    reading = read_data(tmp_path / "data.csv", model)
    assert reading.counts.batches is None
    design = reading.counts.design
    assert (design.kind, design.episodes, design.steps) == (SamplingKind.ADAPTIVE, None, 4)
    assert not design.order.holds and not design.ends.holds
    assert read_data(tmp_path / "data.csv", model, ends="complete").counts.design.ends.holds


def test_count_tables_with_batches(tmp_path: Path, model: ParametricMDP) -> None:
    path = tmp_path / "data.csv"
    path.write_text(
        "batch,x,wet,action,x_next,wet_next,count\n5,3,0,hop,4,0,2\n1,3,0,hop,2,1,7\n5,3,0,hop,4,0,3\n"
    )
    batches = read_data(path, model).counts.batches
    assert batches is not None
    assert [c.tolist() for _, c in batches] == [[7], [5]]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint16(), pa.float32(), pa.string()])
def test_parquet_columns_of_any_numeric_type(tmp_path: Path, model: ParametricMDP, kind: pa.DataType) -> None:
    names = pa.array(["hop", "leap"]).dictionary_encode()
    columns = {
        "x": pa.array([3, 4]).cast(kind),
        "wet": pa.array([False, False]),
        "action": names,
        "x_next": pa.array([4, 6]).cast(kind),
        "wet_next": pa.array([0, 0]).cast(kind),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert named(model, read_data(tmp_path / "t.parquet", model).counts) == {
        "(x=3,wet=false) hop (x=4,wet=false)": 1,
        "(x=4,wet=false) leap (x=6,wet=false)": 1,
    }


def test_other_peoples_files_are_adaptive_unless_the_caller_knows_better(
    tmp_path: Path, model: ParametricMDP
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(BY_VARIABLES)
    design = read_data(path, model).counts.design
    assert (design.kind, design.episodes, design.steps) == (SamplingKind.ADAPTIVE, 3, 4)
    better = SamplingDesign(SamplingKind.TRAJECTORIES, 3, 4)
    told = read_data(path, model, design=better).counts.design
    assert told == replace(better, order=told.order, ends=told.ends) and told.by_episodes


def test_a_stated_design_assumes_no_more_than_the_file_records(
    tmp_path: Path, model: ParametricMDP, simulator: Simulator, counts: Counts
) -> None:
    path, recorded = tmp_path / "c.csv", counts.design
    write_counts(path, counts, model.structure)
    assert (recorded.kind, recorded.planned) == (SamplingKind.TRAJECTORIES, EPISODES)
    assert read_data(path, model, design="fixed").counts.design == recorded
    for stated in ("generative", SamplingDesign(SamplingKind.GENERATIVE_FIXED)):
        with pytest.raises(InputError, match=r"says generative-fixed, and the file records .* trajectories"):
            read_data(path, model, design=stated)
    weaker = read_data(path, model, design="adaptive").counts.design
    assert (weaker.kind, weaker.planned) == (SamplingKind.ADAPTIVE, None)
    late = read_data(path, model, design="adaptive", planned_episodes=EPISODES + 1).counts.design
    assert late.late_plan and late.censored
    adaptive = replace(counts, design=replace(recorded, kind=SamplingKind.ADAPTIVE))
    write_counts(tmp_path / "a.csv", adaptive, model.structure)
    with pytest.raises(InputError, match=r"says trajectories, and the file records .* adaptive") as error:
        read_data(tmp_path / "a.csv", model, design="fixed")
    assert error.value.location is not None and error.value.location.file.endswith("a.csv")
    drawn = simulator.generative(30, SEED)
    planned = replace(drawn, design=replace(drawn.design, planned_from="abc"))
    write_counts(tmp_path / "p.csv", planned, model.structure)
    assert read_data(tmp_path / "p.csv", model, design="generative").counts.design.planned_from == "abc"
    with pytest.raises(InputError, match=r"says trajectories, and the file records .* adaptive"):
        read_data([path, tmp_path / "p.csv"], model, design="fixed")


def test_rows_of_other_peoples_files_are_batched_by_their_number(
    tmp_path: Path, model: ParametricMDP
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,wet,action,x_next,wet_next\n" + "3,0,hop,4,0\n" * 20)
    batches = read_data(path, model).counts.batches
    assert batches is not None
    assert np.cumsum([c.sum() for _, c in batches]).tolist() == batch_ends(20).tolist()


def test_truncated_is_not_terminated_and_neither_invents_a_transition(
    tmp_path: Path, model: ParametricMDP
) -> None:
    text = """episode,step,x,wet,action,x_next,wet_next,terminated,truncated
0,0,3,0,hop,4,0,0,1
1,0,3,0,leap,0,1,true,false
2,0,3,0,hop,4,0,,
"""
    assert transitions(model, text, tmp_path) == {
        "(x=3,wet=false) hop (x=4,wet=false)": 2,
        "(x=3,wet=false) leap (x=0,wet=true)": 1,
    }


def test_flags_alone_split_episodes(tmp_path: Path, model: ParametricMDP) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,wet,action,x_next,wet_next,truncated\n3,0,hop,4,0,1\n3,0,hop,4,0,0\n4,0,leap,6,0,0\n")
    assert read_data(path, model).counts.design.episodes == 2
    path.write_text("x,wet,action,x_next,wet_next,truncated\n3,0,hop,4,0,0\n3,0,hop,4,0,0\n")
    with pytest.raises(InputError, match="row 2: episode \\? goes on in state"):
        read_data(path, model)


def test_a_chain_needs_no_actions(tmp_path: Path) -> None:
    chain = build_from_function(0, lambda s: {"": {(s + 1) % 3: 1}})
    path = tmp_path / "chain.csv"
    path.write_text("state,next_state,count\n0,1,4\n2,0,1\n")
    assert read_data(path, chain).counts.transition.tolist() == [4, 0, 1]


# --- streaming ------------------------------------------------------------------------------


@pytest.mark.thinned(2)
@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("suffix", FORMATS)
def test_memory_does_not_grow_with_the_file(
    tmp_path: Path, model: ParametricMDP, suffix: str, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peaks of memory of numpy and Arrow while rows are counted, in chunks so small that files are many."""
    monkeypatch.setattr("tightrope.io.table.data_table.CHUNK_BYTES", 1 << 16)
    monkeypatch.setattr("tightrope.io.table.data_table.CHUNK_ROWS", 1 << 13)
    monkeypatch.setattr("tightrope.data.reading.LONG", 0)
    monkeypatch.setattr("tightrope.data.fit_tables.MOST_KEYS", 1 << 14)
    simulator = Simulator(model.instantiate([Fraction(3, 5)]), cap=50, model_hash=model.hash(), threads=1)
    observers, peaks = () if is_plain else None, []
    for episodes in (30_000, 90_000):
        counts = simulator.episodes(episodes, 1)
        path = tmp_path / f"big.{suffix}"
        blocks = simulator.trajectories(episodes, 1)
        write_trajectories(path, blocks, counts, model.structure, states=StateForm.VARIABLES)
        if suffix == "parquet":
            pq.write_table(pq.read_table(path), path, row_group_size=10_000_000)
        plain = pa.default_memory_pool()
        watched = pa.proxy_memory_pool(plain)
        pa.set_memory_pool(watched)
        tracemalloc.start()
        try:
            reading = read_data(path, model, observers=observers)
            peaks.append((tracemalloc.get_traced_memory()[1], watched.max_memory()))
        finally:
            tracemalloc.stop()
            pa.set_memory_pool(plain)
        assert np.array_equal(reading.counts.transition, counts.transition)
        assert [one.rows for one in reading.counts.observed] == ([] if is_plain else [counts.steps])
    assert counts.steps > 200_000
    for small, large in zip(*peaks, strict=True):
        assert large < 1.5 * small + 1e6
        assert large < (12e6 if is_plain else 16e6) < counts.steps * 8 * 10
