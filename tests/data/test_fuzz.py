"""Whatever stands in a data file or a policy, the answer is counts or an `InputError`, never a crash."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import CHARACTERS
from tightrope.data.columns import StateForm
from tightrope.data.reading import read_data
from tightrope.data.simulator import Simulator
from tightrope.data.writing import write_counts, write_trajectories
from tightrope.errors import InputError
from tightrope.model.builder import build_from_rows
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy

MODEL = build_from_rows(
    [
        (0, "go", {1: "1/2", 2: "1/2"}),
        (0, "wait", {0: "1/2", 1: "1/2"}),
        (1, "go", {2: "1/3", 3: "2/3"}),
        (1, "go", {0: 1}),
        (2, "go", {3: 1}),
        (3, "", {3: 1}),
    ],
    valuations={"x": [0, 1, 0, 1], "y": [False, False, True, True]},
)
assert isinstance(MODEL, ParametricMDP)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def originals(folder: Path) -> dict[str, bytes]:
    """Sound files of every form, to be damaged."""
    assert isinstance(MODEL, ParametricMDP)
    simulator = Simulator(MODEL.instantiate([]), model_hash=MODEL.hash(), threads=1)
    counts = simulator.episodes(8, 1)
    files = {}
    for suffix in ("csv", "parquet"):
        for states in StateForm:
            path = folder / f"original.{suffix}"
            write_counts(path, counts, MODEL.structure, states=states)
            files[f"counts {states.value}.{suffix}"] = path.read_bytes()
            write_trajectories(path, simulator.trajectories(8, 1), counts, MODEL.structure, states=states)
            files[f"steps {states.value}.{suffix}"] = path.read_bytes()
    return files


def attempt(path: Path) -> None:
    for skip, states in ((False, None), (True, None), (True, "index"), (True, "variables")):
        try:
            counts = read_data(path, MODEL, skip_invalid=skip, states=states).counts
        except InputError as error:
            assert str(path) in str(error)
        else:
            assert counts.steps >= 0


@given(data=st.data())
def test_damaged_files(folder: Path, originals: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(originals)))
    content = bytearray(originals[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        cut = data.draw(st.integers(0, 12))
        content[at : at + cut] = data.draw(st.binary(max_size=12))
    path = folder / f"damaged{Path(name).suffix}"
    path.write_bytes(bytes(content))
    attempt(path)


CELLS = st.one_of(
    st.integers(-2, 5).map(str),
    st.sampled_from(
        ["", "go", "wait", "true", "False", "nan", "1e400", "-0.0", "2.0", "9" * 30, '"', "\u2028"]
    ),
    st.text(CHARACTERS, max_size=3),
)
NAMES = (
    "episode step state action choice next_state count batch x y x_next y_next terminated truncated other "
    "time t done run s s' a act next_x x' counts"
)
HEADERS = st.one_of(
    st.sampled_from(
        [
            "state,action,next_state",
            "episode,step,state,choice,next_state,truncated",
            "episode,x,y,action,x_next,y_next",
            "batch,state,choice,action,next_state,count",
            "x,y,choice,x_next,y_next,count",
        ]
    ).map(lambda header: header.split(",")),
    st.lists(st.sampled_from(NAMES.split()), min_size=1, max_size=8),
)


@given(header=HEADERS, data=st.data())
def test_any_text(folder: Path, header: list[str], data: st.DataObject) -> None:
    width = st.just(len(header)) | st.integers(1, 8)
    rows = data.draw(st.lists(width.flatmap(lambda n: st.lists(CELLS, min_size=n, max_size=n)), max_size=6))
    path = folder / "any.csv"
    lines = [",".join(header), *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    attempt(path)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 5)
    | st.floats()
    | st.sampled_from(["go", "wait", "", "1", "soon"])
    | st.lists(st.integers(0, 3), max_size=2)
    | st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 1))
)


@given(
    st.lists(st.dictionaries(st.sampled_from(NAMES.split()), VALUES, max_size=7), max_size=5),
    st.text(CHARACTERS, max_size=5),
)
def test_any_json_lines(folder: Path, rows: list[dict[str, object]], end: str) -> None:
    path = folder / "any.jsonl"
    lines = [json.dumps(row) for row in rows]
    path.write_text("\n".join([*lines, end]), encoding="utf-8", errors="surrogatepass")
    attempt(path)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-2, 4) | st.floats() | st.sampled_from(["go", "wait", "x"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["state", "choice", "action", "choices", "probability", "x", "y"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_any_policy(folder: Path, content: object) -> None:
    path = folder / "policy.json"
    document = {"format": "tightrope policy", "version": 1, "policy": content}
    for text in (json.dumps(document), json.dumps({**document, "policy": [content]}), json.dumps(content)):
        path.write_text(text, encoding="utf-8")
        try:
            policy = Policy(MODEL.structure, path)
        except InputError:
            continue
        assert np.all(policy.probability >= 0)


@given(st.data())
def test_damaged_policies(folder: Path, data: st.DataObject) -> None:
    stream = io.StringIO()
    Policy.uniform(MODEL.structure).write(stream)
    content = bytearray(stream.getvalue().encode())
    at = data.draw(st.integers(0, len(content)))
    content[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=4))
    path = folder / "damaged.json"
    path.write_bytes(bytes(content))
    try:
        Policy(MODEL.structure, path)
    except InputError as error:
        assert str(error)
