"""Bad data are refused with the file, the row, the values and the way out; or dropped and counted.

Also of `data/row_sequence.py`, `data/rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tightrope.data.design import SamplingKind
from tightrope.data.read_options import LogReadOptions
from tightrope.data.reading import plan_reading, read_data
from tightrope.data.row_validation import UnknownValue, unknown_values
from tightrope.data.rows import parse_maps
from tightrope.errors import InputError
from tightrope.io.table.files import open_tables
from tightrope.model.builder import build_from_rows
from tightrope.model.mdp import MDP
from tightrope.model.structure import Structure, Structured

ROWS = [
    (0, "go", {1: "1/2", 2: "1/2"}),
    (0, "wait", {0: 1}),
    (1, "go", {2: "1/3", 3: "2/3"}),
    (1, "go", {0: 1}),
    (2, "go", {3: 1}),
    (3, "", {3: 1}),
]
"""State 1 has two choices of one name."""


@pytest.fixture(scope="module")
def model() -> Structured:
    return build_from_rows(ROWS, valuations={"x": [0, 1, 0, 1], "y": [0, 0, 1, 1]})


Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "data.csv"
        path.write_text(text)
        return path

    return write


def refusal(path: Path, model: Structured) -> InputError:
    with pytest.raises(InputError) as caught:
        read_data(path, model)
    return caught.value


RAW = "episode,step,state,action,next_state\n"
COUNTED = "state,action,next_state,count\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (RAW + "0,0,0,go,1\n1,0,7,go,1\n", 3, "row 2: column 'state' holds 7, but the states are 0..3"),
        (RAW + "0,0,-1,go,1\n", 2, "row 1: column 'state' holds -1, but the states are 0..3"),
        (RAW + "0,0,0,go,4\n", 2, "row 1: column 'next_state' holds 4, but the states are 0..3"),
        (RAW + "0,0,2,wait,3\n", 2, "row 1: 'wait' is not enabled in state (x=0,y=1); enabled are 0: 'go'"),
        (
            RAW + "0,0,0,run,1\n",
            2,
            "row 1: 'run' is not enabled in state (x=0,y=0); enabled are 0: 'go', 1: 'wait'",
        ),
        (
            RAW + "0,0,0,2,1\n",
            2,
            "row 1: '2' is not enabled in state (x=0,y=0); enabled are 0: 'go', 1: 'wait'",
        ),
        (RAW + "0,0,1,go,2\n", 2, "row 1: several choices of state (x=1,y=0) have the action 'go'"),
        (
            RAW + "0,0,0,go,3\n",
            2,
            "row 1: the model has no transition from state (x=0,y=0) under 'go' to state (x=1,y=1)",
        ),
        (RAW + "0,0,,go,1\n", 2, "row 1: column 'state' has no value"),
        (RAW + "0,0,nan,go,1\n", 2, "row 1: column 'state' holds 'nan', which is not a number"),
        (RAW + "0,0,0,go,one\n", 2, "row 1: column 'next_state' holds 'one', which is not a number"),
        (RAW + "0,0,0.5,go,1\n", 2, "row 1: column 'state' holds 0.5, which is not a whole number"),
        (RAW + "0,zero,0,go,1\n", 2, "row 1: column 'step' holds 'zero', which is not a number"),
        (RAW + ",0,0,go,1\n", 2, "row 1: column 'episode' has no value"),
        (COUNTED + "0,go,1,3\n0,go,2,-3\n", 3, "row 2: the count -3 is negative"),
        (
            COUNTED + "0,go,1,3\n0,go,2,18446744073709551615\n",
            3,
            "row 2: column 'count' holds '18446744073709551615', which is too large a number",
        ),
        (COUNTED + "0,go,1,-1e30\n", 2, "row 1: column 'count' holds '-1e30', which is too large a number"),
        (COUNTED + "0,go,1,2.5\n", 2, "row 1: column 'count' holds 2.5, which is not a whole number"),
        (COUNTED + "0,go,1,NaN\n", 2, "row 1: column 'count' holds 'NaN', which is not a number"),
        (COUNTED + "0,go,1,inf\n", 2, "row 1: column 'count' holds 'inf', which is not a number"),
        (COUNTED + "0,go,1,\n", 2, "row 1: column 'count' has no value"),
        ("batch,state,action,next_state,count\n-1,0,go,1,3\n", 2, "row 1: the batch -1 is negative"),
        (
            "state,choice,action,next_state\n0,1,go,1\n",
            2,
            "row 1: choice 1 of state (x=0,y=0) is not 'go'; enabled are 0: 'go', 1: 'wait'",
        ),
        (
            "state,choice,next_state\n0,2,1\n",
            2,
            "row 1: choice 2 is not enabled in state (x=0,y=0); enabled are 0: 'go', 1: 'wait'",
        ),
        (
            "x,y,action,x_next,y_next\n0,5,go,1,1\n",
            2,
            "row 1: (x=0,y=5) is not a reachable state of the model",
        ),
        (
            "x,y,action,x_next,y_next\n0,0,go,9,1\n",
            2,
            "row 1: (x_next=9,y_next=1) is not a reachable state of the model",
        ),
        (
            RAW + "0,0,0,go,1\n0,1,2,go,3\n",
            3,
            "row 2: episode 0 goes on in state (x=0,y=1), but the row before led to state (x=1,y=0)",
        ),
        (RAW + "a,1,0,wait,0\na,1,0,go,1\n", 3, "row 2: step 1 of episode a is given twice"),
        (
            "episode,state,action,next_state,truncated\n0,0,wait,0,perhaps\n",
            2,
            "row 1: column 'truncated' holds 'perhaps', which is neither true nor false",
        ),
        (
            "episode,state,action,next_state,terminated\n0,0,wait,0,1\n0,0,go,1,0\n",
            3,
            "row 2: episode 0 goes on after the row before said that it ended",
        ),
    ],
)
def test_a_bad_row_is_named(write: Write, model: Structured, text: str, line: int, message: str) -> None:
    path = write(text)
    error = refusal(path, model)
    assert error.message == message
    assert error.location is not None
    assert (error.location.file, error.location.line) == (str(path), line)
    assert error.location.text == text.splitlines(keepends=True)[line - 1]
    assert error.hint is not None


def test_the_hint_of_an_impossible_transition_says_what_it_means(write: Write, model: Structured) -> None:
    error = refusal(write(RAW + "0,0,0,go,3\n"), model)
    assert error.hint == (
        "it may lead to (x=1,y=0), (x=0,y=1); data that the model excludes are evidence of a wrong model, "
        "not of noise (`skip_invalid=True` drops such rows; the confidence is then nominal)"
    )


def test_the_hint_of_an_ambiguous_action_asks_for_the_choice(write: Write, model: Structured) -> None:
    error = refusal(write(RAW + "0,0,1,go,2\n"), model)
    assert error.hint == "say which was taken in a column 'choice': its number within the state, from 0"
    by_number = write("state,choice,next_state\n1,1,0\n")
    assert read_data(by_number, model).counts.visits.tolist() == [0, 0, 0, 1, 0, 0]


def test_actions_whose_names_are_numbers_are_names(tmp_path: Path, write: Write) -> None:
    model = build_from_rows([(0, "1", {0: 1}), (0, "0", {1: 1}), (1, "", {1: 1})])
    text = write("state,action,next_state\n0,0,1\n0,1,0\n1,,1\n")
    assert read_data(text, model).counts.visits.tolist() == [1, 1, 1]
    numbers = parquet(tmp_path / "d.parquet", state=[0, 0], action=[0, 1], next_state=[1, 0])
    assert read_data(numbers, model).counts.visits.tolist() == [1, 1, 0]


def test_the_first_bad_row_of_a_long_file_is_found(write: Write, model: Structured) -> None:
    rows = 400_000
    path = write("state,action,next_state\n" + "0,go,1\n" * rows + "\n" + "0,go,0\n" + "0,go,1\n")
    error = refusal(path, model)
    assert error.message.startswith(f"row {rows + 1}: the model has no transition from state (x=0,y=0)")
    assert error.location is not None and error.location.line == rows + 3


def test_a_broken_chain_is_found_across_chunks(
    write: Write, model: Structured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tightrope.io.table.data_table.CHUNK_BYTES", 1000)
    steps = "".join(f"0,{i},0,wait,0\n" for i in range(500))
    for last, problem in (("500,0,go,1", None), ("500,2,go,3", "goes on in"), ("501,2,go,3", None)):
        path = write(RAW + steps + f"0,{last}\n")
        if problem is None:
            assert read_data(path, model).counts.steps == 501
        else:
            assert problem in refusal(path, model).message


# --- columns and whole files ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "from,action,to\n0,go,1\n",
            "missing column state (or, for states by variables, x, y, x_next, y_next)",
            'the file has the columns from, action, to; `columns="state=…"` says what they mean',
        ),
        (
            "state,action,x_next\n0,go,1\n",
            "no column holds the next state, and none says which rows follow each other (episode, step, "
            "done)",
            'name it with `columns="next_state=…"`; or say `columns="next_state="` where each row continues '
            "the one before; the file has the columns state, action, x_next",
        ),
        (
            "state,next_state\n0,1\n",
            "missing column action (or 'choice': some states of the model have more than one choice)",
            'the file has the columns state, next_state; `columns="action=…"` says what they mean',
        ),
        ("state,action,state,next_state\n0,go,0,1\n", "the header names column 'state' more than once", None),
        ("", "the file is empty", None),
        ("# a comment only\n", "the file is empty", None),
        (" \n", "the header names no columns", None),
        ("state,action,next_state\n", "the file has a header but no rows", None),
        ("state,action,next_state\n\n\n", "the file has a header but no rows", None),
        (
            RAW + "0,0,0,go,1\n0,1,1",
            "a row has 3 fields, but the header has 5",
            "a row cut off at the end is the sign of a truncated file",
        ),
        ("state,action,next_state,count\n0,go,1,4e18\n", None, None),
        ('# tightrope: {"version": 9}\nstate\n', None, None),
        ("# tightrope: {broken\nstate\n", None, None),
    ],
)
def test_a_bad_file_is_refused(
    write: Write, model: Structured, text: str, message: str | None, hint: str | None
) -> None:
    error = refusal(write(text), model)
    assert error.location is not None and error.location.file.endswith("data.csv")
    if message is None:
        return
    assert error.message == message
    assert error.hint == hint


def test_metadata_of_another_version_are_refused(write: Write, model: Structured) -> None:
    error = refusal(write('# tightrope: {"version": 9}\nstate\n'), model)
    assert error.message == "the file's metadata have version 9; this program reads version 1"
    error = refusal(write("# tightrope: {broken\nstate\n"), model)
    assert error.message.startswith("the file's metadata are damaged: ")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ('"batches": 1', "the file's metadata refer to 1 batches, its rows of number 1"),
        (
            '"batches": 1000000000000',
            "the file's metadata refer to 1000000000000 batches, its rows of number 1",
        ),
        ('"batches": "two"', "the file's metadata refer to two batches, its rows of number 1"),
        ('"design": {"kind": "adaptive"}', "the sampling design in the metadata is not one of ours"),
        (
            '"design": {"kind": "adaptive", "episodes": 1, "steps": -1, "repeats": true}',
            "the sampling design in the metadata is not one of ours",
        ),
    ],
)
def test_metadata_that_make_no_sense_are_refused(
    write: Write, model: Structured, metadata: str, message: str
) -> None:
    rows = "batch,state,action,next_state,count\n0,0,go,1,1\n1,0,go,1,1\n"
    error = refusal(write('# tightrope: {"version": 1, ' + metadata + "}\n" + rows), model)
    assert error.message.startswith(message)
    assert error.location is not None and error.location.file.endswith("data.csv")


def test_counts_beyond_an_int64_are_refused(write: Write, model: Structured) -> None:
    big = "900000000000000000"
    error = refusal(write(COUNTED + f"0,go,1,{big}\n" * 6), model)
    assert error.message == "the counts add up to 5.4e+18, which is more than 2^62"


def test_a_variable_with_the_name_of_another_column_is_the_variable(write: Write) -> None:
    model = build_from_rows([(0, "go", {1: 1}), (1, "go", {0: 1})], valuations={"count": [7, 8]})
    reading = read_data(write("count,action,count_next\n7,go,8\n7,go,8\n8,go,7\n"), model)
    assert reading.counts.transition.tolist() == [2, 1]
    assert reading.read_as == ("states by the model's variables; count, count' = count_next, action",)


def test_a_model_without_variables_asks_for_states(write: Write) -> None:
    model = build_from_rows([(0, "go", {1: 1}), (1, "go", {0: 1})])
    error = refusal(write("x,action,x_next\n0,go,1\n"), model)
    assert error.message == "missing column state (the model's named states stand there)"


def test_a_choice_with_a_repeated_successor_is_refused(write: Write) -> None:
    structure = Structure(np.array([0, 1]), np.array([0, 2]), np.array([0, 0], dtype=np.int32))
    model = MDP(structure, np.array([0.5, 0.5]))
    with pytest.raises(InputError) as caught:
        read_data(write("state,next_state\n0,0\n"), model, states="index")
    error = caught.value
    assert error.message == (
        "choice number 0 of state 0 lists a successor twice: data cannot distinguish the two"
    )


def test_files_that_are_not_there_or_not_data(tmp_path: Path, model: Structured) -> None:
    for name in ("none.csv", "none.parquet"):
        error = refusal(tmp_path / name, model)
        assert error.message == "the file cannot be read: No such file or directory"
    assert refusal(tmp_path, model).message == "there is no data file in the directory"
    error = refusal(tmp_path / "data.xlsx", model)
    assert error.message == (
        "a data file ends in .csv, .tsv, .jsonl, .ndjson, .parquet, .pq, .arrow, .feather, .ipc, "
        ".eval, .langfuse, .otlp, .transcript, .xes (text also "
        ".gz, .zst), not '.xlsx'"
    )
    (tmp_path / "latin.csv").write_bytes(b"state,action,n\xe4chster\n0,go,1\n")
    assert refusal(tmp_path / "latin.csv", model).message.startswith("not UTF-8 text")
    (tmp_path / "late.csv").write_bytes(b"state,action,next_state\n0,g\xe4,1\n")
    assert refusal(tmp_path / "late.csv", model).message.startswith("not UTF-8 text")


def parquet(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_rows_are_named_without_a_line(tmp_path: Path, model: Structured) -> None:
    path = parquet(tmp_path / "d.parquet", state=[0, 0, None], action=["go"] * 3, next_state=[1, 1, 1])
    error = refusal(path, model)
    assert error.message == "row 3: column 'state' has no value"
    assert str(error.location) == str(path)
    path = parquet(tmp_path / "d.parquet", state=[0], action=[None], next_state=[1])
    assert refusal(path, model).message == "row 1: column 'action' has no value"
    path = parquet(tmp_path / "d.parquet", state=[0], action=pa.array([5]), next_state=[1])
    assert refusal(path, model).message.startswith("row 1: choice 5 is not enabled in state (x=0,y=0)")
    path = parquet(tmp_path / "d.parquet", state=[0.0], action=["go"], next_state=[float("nan")])
    assert refusal(path, model).message == "row 1: column 'next_state' has no value"


def test_parquet_columns_of_a_wrong_type_are_refused(tmp_path: Path, model: Structured) -> None:
    times = pa.array([1], type=pa.timestamp("ms"))
    path = parquet(tmp_path / "d.parquet", state=times, action=["go"], next_state=[1])
    error = refusal(path, model)
    assert error.message == "column 'state' has the type timestamp[ms], but whole numbers are needed there"


def test_damaged_parquet_files_are_refused(tmp_path: Path, model: Structured) -> None:
    random = np.random.default_rng(1)
    states = random.integers(0, 2, 50_000) * 0
    path = parquet(
        tmp_path / "d.parquet",
        state=states,
        action=["go"] * len(states),
        next_state=random.integers(1, 3, 50_000),
    )
    assert read_data(path, model).rows == 50_000
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refusal(path, model).message.startswith("the file cannot be read: ")
    path.write_bytes(b"")
    assert refusal(path, model).message == "the file is empty"
    path.write_bytes(b"PAR1 this is not Parquet")
    assert refusal(path, model).message.startswith("the file cannot be read: ")
    path.write_bytes(whole[:4] + b"\x00" * 2000 + whole[2004:])
    assert refusal(path, model).message.startswith("the file cannot be read: ")


# --- dropping -------------------------------------------------------------------------------


def test_skipping_drops_and_counts_by_reason(write: Write, model: Structured) -> None:
    path = write(
        RAW
        + "0,0,0,go,1\n"
        + "1,0,0,go,3\n"
        + "2,0,9,go,1\n"
        + "3,0,0,wait,0\n"
        + "3,1,1,1,0\n"
        + "4,0,x,go,1\n"
        + "5,0,1,go,2\n"
        + "6,0\n"
        + "7,0,2,wait,3\n"
    )
    reading = read_data(path, model, skip_invalid=True)
    assert reading.counts.visits.tolist() == [1, 1, 0, 0, 0, 0]
    assert reading.dropped == {
        "impossible transition": 1,
        "unknown state": 1,
        "broken chain": 1,
        "not a number": 1,
        "ambiguous action": 1,
        "wrong number of fields": 1,
        "disabled action": 1,
    }
    assert reading.counts.design.kind is SamplingKind.ADAPTIVE


def test_skipping_in_a_table_of_counts(write: Write, model: Structured) -> None:
    path = write(COUNTED + "0,go,1,5\n0,go,2,-1\n0,go,2,1.5\n0,go,2,7\n0,go,0,7\n")
    reading = read_data(path, model, skip_invalid=True)
    assert reading.counts.transition[:2].tolist() == [5, 7]
    assert reading.dropped == {"negative count": 1, "not a whole number": 1, "impossible transition": 1}


def test_nothing_dropped_means_an_empty_report(write: Write, model: Structured) -> None:
    reading = read_data(write(COUNTED + "0,go,1,5\n"), model, skip_invalid=True)
    assert reading.dropped == {}
    assert reading.rows == 1


def test_what_maps_may_name_is_listed_once() -> None:
    with pytest.raises(InputError, match="refers to 'Condition'") as caught:
        parse_maps("Condition: good=ok", ("state",))
    assert caught.value.hint == "known values: state, action, choice"


def test_counts_beyond_int64_are_too_large(model: Structured, tmp_path: Path) -> None:
    """As unsigned numbers they were called negative, and floats no numbers."""
    columns = {"state": [0], "action": ["go"], "next_state": [1]}
    for name, large in (("a", pa.array([2**64 - 1], pa.uint64())), ("b", pa.array([1.8e19]))):
        pq.write_table(pa.table({**columns, "count": large}), tmp_path / f"{name}.parquet")
        error = refusal(tmp_path / f"{name}.parquet", model)
        assert error.message.endswith("which is too large a number")
        assert error.message.startswith("row 1: column 'count' holds 1")


def test_a_map_to_an_action_that_the_model_lacks_is_named(write: Write, model: Structured) -> None:
    """The model has the action of the log: what is wrong is the map, of which nothing was said."""
    path = write(RAW + "0,0,0,wait,0\n0,1,0,go,1\n")
    with pytest.raises(InputError, match=r"row 1: 'wait' is not enabled") as caught:
        read_data(path, model, maps="action: wait=stay, go=go")
    assert caught.value.hint == "the model's actions are go, wait; `maps` reads 'wait' as 'stay'"
    plan = plan_reading(open_tables(path), model.structure, LogReadOptions(maps="action: wait=stay, go=go"))
    assert unknown_values(plan) == {"actions": (UnknownValue("wait, read as stay", 1),)}
