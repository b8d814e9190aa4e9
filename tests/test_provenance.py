"""What was made from which data: digests, sketches, and what seeing the same log costs."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.provenance import Overlap, Provenance, union


def walk() -> tr.ParametricMDP:
    """A walk on five states with two actions, so that episodes are long and differ."""
    parameters = tr.Parameters.box(p=(0, 1), q=(0, 1))
    p, q = parameters.symbols()
    rows = []
    for s in range(1, 4):
        rows += [(s, "a", {s - 1: p, s + 1: 1 - p}), (s, "b", {s - 1: q, s + 1: 1 - q})]
    rows = [(0, "", {0: 1}), *rows, (4, "", {4: 1})]
    return tr.build_from_rows(rows, parameters, initial=2, labels={"up": [4]})


def episodes(seed: int, number: int, first: int = 0) -> pd.DataFrame:
    """A log of so many episodes, with names, from the middle of the walk."""
    rng, rows = np.random.default_rng(seed), []
    for name in range(first, first + number):
        state, step = 2, 0
        while 0 < state < 4:
            action = "ab"[int(rng.integers(2))]
            after = state + (1 if rng.random() < (0.5 if action == "a" else 0.4) else -1)
            rows.append((name, step, state, action, after))
            state, step = after, step + 1
    return pd.DataFrame(rows, columns=["episode", "step", "state", "action", "next_state"])


def seen(data: object, **words: object) -> Provenance:
    return tr.read_data(data, walk(), ends="complete", **words).counts.provenance  # type: ignore[arg-type]


def test_digest_does_not_depend_on_how_rows_are_written(tmp_path: Path) -> None:
    frame = episodes(1, 60)
    text = frame.to_csv(index=False)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_bytes(text.replace("\n", "\r\n").encode())
    with gzip.open(tmp_path / "c.csv.gz", "wt") as file:
        file.write(text)
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=50)
    whole = seen(frame)
    for name in ("a.csv", "b.csv", "c.csv.gz", "d.parquet"):
        assert seen(tmp_path / name) == whole, name
    assert (whole.rows, whole.episodes) == (len(frame), 60)


def test_digest_does_not_depend_on_the_order_of_files_and_rows(tmp_path: Path) -> None:
    one, two = episodes(1, 40), episodes(2, 40, first=40)
    one.to_csv(tmp_path / "one.csv", index=False)
    two.to_csv(tmp_path / "two.csv", index=False)
    pd.concat([one, two]).to_csv(tmp_path / "both.csv", index=False)
    ab = seen([tmp_path / "one.csv", tmp_path / "two.csv"])
    ba = seen([tmp_path / "two.csv", tmp_path / "one.csv"])
    assert ab.parts == ba.parts == seen(tmp_path / "both.csv").parts
    assert ab.overlap(seen(one)) is Overlap.PART
    shuffled = pd.concat([one, two]).sample(frac=1.0, random_state=3)
    assert seen(shuffled).parts == ab.parts
    interleaved = pd.concat([one, two]).sort_values(["step", "episode"])
    assert seen(interleaved).parts == ab.parts


def test_rows_in_memory_and_in_files_are_the_same() -> None:
    frame = episodes(5, 30)
    steps = [
        [(int(s), a, int(n)) for s, a, n in zip(own.state, own.action, own.next_state, strict=True)]
        for _, own in frame.groupby("episode")
    ]
    assert seen(frame).parts == tr.read_data(steps, walk()).counts.provenance.parts
    log = tr.read_data(frame, walk()).counts.log()
    half = np.arange(30) % 2 == 0
    counts = tr.read_data(frame, walk()).counts
    first, second = (log.subset(which).counts(walk(), counts.design).provenance for which in (half, ~half))
    assert first.overlap(second) is Overlap.NONE
    assert first.overlap(counts.provenance) is Overlap.PART
    assert (first | second).overlap(counts.provenance) is Overlap.PART


def test_log_without_next_states_or_names() -> None:
    frame = episodes(6, 50)
    unnamed = frame.drop(columns=["episode", "step"])
    grown = pd.concat([frame, episodes(7, 20)]).drop(columns=["episode", "step"])
    assert seen(unnamed).overlap(seen(unnamed.copy())) is Overlap.SAME
    assert seen(unnamed).overlap(seen(grown)) is Overlap.PART
    assert seen(unnamed).overlap(seen(episodes(8, 50).drop(columns=["episode", "step"]))) is Overlap.NONE


def test_independent_logs_share_nothing() -> None:
    logs = [seen(episodes(seed, 80)) for seed in range(12)]
    assert {one.overlap(two) for k, one in enumerate(logs) for two in logs[:k]} == {Overlap.NONE}


def test_tosses_of_independent_logs_share_nothing_and_half_of_a_log_is_found() -> None:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    model = tr.build_from_rows([(0, "t", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})], parameters)

    def tosses(seed: int) -> list[list[tuple[int, str, int]]]:
        return [[(0, "t", 1 if u < 0.7 else 2)] for u in np.random.default_rng(seed).random(200)]

    def of(data: object) -> Provenance:
        return tr.read_data(data, model).counts.provenance

    found = [of(tosses(s)).overlap(of(tosses(s + 500))) for s in range(40)]
    assert set(found) == {Overlap.NONE}
    assert of(tosses(1)).overlap(of(tosses(1))) is Overlap.SAME


def test_table_of_counts_is_recognised_in_its_log() -> None:
    frame = episodes(9, 50)
    table = frame.groupby(["state", "action", "next_state"]).size().rename("count").reset_index()
    assert seen(table).overlap(seen(frame)) is Overlap.SAME
    assert seen(table).overlap(seen(episodes(10, 50))) is Overlap.NONE


def test_text_and_comment_come_back() -> None:
    one = seen(episodes(1, 400))
    assert Provenance.parse(one.text()) == one
    assert len(one.text()) < 2500 and "\n" not in one.text()
    assert Provenance.in_comments(f"dtmc\n{one.comment()}\nmodule M\n") == one
    assert Provenance.in_comments("dtmc\n// made by hand\n") is None
    assert union([None, one, None]) == one
    with pytest.raises(tr.InputError, match="from which data"):
        Provenance.parse("rows=3 episodes=x")


def test_same_rows_in_two_files_are_refused(tmp_path: Path) -> None:
    text = episodes(1, 60).to_csv(index=False)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_bytes(text.replace("\n", "\r\n").encode())
    with pytest.raises(tr.InputError, match="the same rows"):
        tr.read_data([tmp_path / "a.csv", tmp_path / "b.csv"], walk())


def test_sojourns_in_continuous_time(tmp_path: Path) -> None:
    parameters = tr.Parameters.box(a=(0.1, 9), b=(0.1, 9))
    a, b = parameters.symbols()
    model = tr.build_ctmc_from_rows([(0, {1: a}), (1, {0: b})], parameters, labels={"on": [1]})
    chain = model.instantiate(a=1, b=2)
    table = tr.simulate_times(chain, 40, seed=1, time=20).table().to_pandas()
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "b.parquet")
    one, two = (tr.read_exposure(tmp_path / name, model).provenance for name in ("a.csv", "b.parquet"))
    other = tr.read_exposure(tr.simulate_times(chain, 40, seed=2, time=20), model).provenance
    part = tr.read_exposure(table[table.episode < 20], model).provenance
    assert one is not None and two is not None and other is not None and part is not None
    assert one == two and one.overlap(other) is Overlap.NONE and one.overlap(part) is Overlap.PART
    with pytest.raises(tr.InputError, match="the same rows"):
        tr.read_exposure([tmp_path / "a.csv", tmp_path / "b.parquet"], model)
