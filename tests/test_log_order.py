"""Logs out of order lose no rows: sorted by step or time, or followed where several episodes run at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tightrope.data.design import ENDS, ORDER, SamplingDesign, SamplingKind
from tightrope.data.reading import Reading, read_data
from tightrope.errors import InputError
from tightrope.model.builder import build_from_function
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.statistics.ledger import Assumption, assumed_of
from tightrope.verdict import Assumed, Kept


@pytest.fixture(scope="module")
def model() -> ParametricMDP:
    built = build_from_function(
        3, lambda x: {"stay": {x: 1}} if x in (0, 6) else {"walk": {x + 1: "1/2", x - 1: "1/2"}}
    )
    assert isinstance(built, ParametricMDP)
    return built


def episodes(number: int, seed: int) -> list[list[tuple[int, int, int, int]]]:
    """Walks as (episode, step, state, next state)."""
    random = np.random.default_rng(seed)
    walks = []
    for episode in range(number):
        x, rows = 3, []
        while x not in (0, 6):
            following = x + int(random.choice([-1, 1]))
            rows.append((episode, len(rows), x, following))
            x = following
        walks.append(rows)
    return walks


def text(rows: list[tuple[int, int, int, int]], head: str = "episode,step,state,action,next_state") -> str:
    lines = [f"{episode},{step},{state},walk,{following}" for episode, step, state, following in rows]
    return "\n".join([head, *lines]) + "\n"


def read(tmp_path: Path, model: ParametricMDP, content: str) -> Reading:
    path = tmp_path / "log.csv"
    path.write_text(content)
    return read_data(path, model)


@pytest.fixture(scope="module")
def walks() -> list[list[tuple[int, int, int, int]]]:
    return episodes(40, 5)


def test_a_shuffled_log_loses_nothing(
    tmp_path: Path, model: ParametricMDP, walks: list[list[tuple[int, int, int, int]]]
) -> None:
    rows = [row for walk in walks for row in walk]
    ordered = read(tmp_path, model, text(rows))
    assert ordered.notes == () and ordered.counts.design.episodes == 40
    order = np.random.default_rng(1).permutation(len(rows))
    shuffled = read(tmp_path, model, text([rows[i] for i in order]))
    assert shuffled.counts.transition.tolist() == ordered.counts.transition.tolist()
    assert shuffled.counts.design == ordered.counts.design
    assert shuffled.counts.batches is None
    assert shuffled.notes == (
        "rows are out of order: shuffled rows, sorted by step; their order in time is unknown, so there are "
        "no batches",
    )


def test_episodes_written_backwards_are_turned_round(
    tmp_path: Path, model: ParametricMDP, walks: list[list[tuple[int, int, int, int]]]
) -> None:
    ordered = read(tmp_path, model, text([row for walk in walks for row in walk]))
    backwards = read(tmp_path, model, text([row for walk in walks for row in reversed(walk)]))
    assert backwards.counts == ordered.counts
    assert backwards.notes == ("rows are out of order: sorted by step within each episode",)


@pytest.mark.parametrize("has_steps", [True, False])
def test_episodes_at_the_same_time_are_told_apart(
    tmp_path: Path, model: ParametricMDP, walks: list[list[tuple[int, int, int, int]]], has_steps: bool
) -> None:
    rows = sorted((row for walk in walks for row in walk), key=lambda row: (row[1], row[0]))
    content = text(rows)
    if not has_steps:
        content = "\n".join(",".join(np.delete(line.split(","), 1)) for line in content.splitlines()) + "\n"
    reading = read(tmp_path, model, content)
    assert reading.counts.steps == len(rows)
    assert reading.counts.design.episodes == 40 and reading.counts.design.censored == ()
    assert reading.notes == ("several episodes at once, each followed by its name",)
    assert reading.counts.design.order.kept is Kept.UNKNOWN
    batches = reading.counts.batches
    assert batches is not None and [int(c.sum()) for _, c in batches][:3] == [1, 1, 1]


def test_next_states_are_those_of_the_sorted_row(
    tmp_path: Path, model: ParametricMDP, walks: list[list[tuple[int, int, int, int]]]
) -> None:
    rows = [(*row[:3], "walk") for walk in walks for row in walk]
    rows += [(walk[-1][0], len(walk), walk[-1][3], "") for walk in walks]
    order = np.random.default_rng(2).permutation(len(rows))
    lines = [",".join(map(str, rows[i])) for i in order]
    reading = read(tmp_path, model, "episode,step,state,action\n" + "\n".join(lines) + "\n")
    ordered = read(tmp_path, model, text([row for walk in walks for row in walk]))
    assert reading.counts.transition.tolist() == ordered.counts.transition.tolist()
    assert reading.counts.design.censored == ()


@pytest.mark.parametrize("form", ["{}", "{}.5", "2026-01-01T00:{:02d}:00", "2026-01-01 00:{:02d}:00.25Z"])
def test_times_order_rows_and_batches(tmp_path: Path, model: ParametricMDP, form: str) -> None:
    moves = [(3, 4), (4, 5), (5, 4), (4, 3), (3, 2), (2, 1), (1, 0)]
    lines = [
        f"a,{form.format(i + 10)},{state},walk,{following}" for i, (state, following) in enumerate(moves)
    ]
    ordered = read(tmp_path, model, "run,time,state,action,next_state\n" + "\n".join(lines) + "\n")
    assert ordered.notes == ()
    mixed = read(
        tmp_path,
        model,
        "run,time,state,action,next_state\n" + "\n".join(lines[i] for i in (4, 0, 6, 2, 1, 5, 3)) + "\n",
    )
    assert mixed.notes == ("rows are out of order: sorted by time",)
    assert mixed.counts == ordered.counts


def test_a_step_twice_is_refused_and_never_counted(tmp_path: Path, model: ParametricMDP) -> None:
    content = text([(0, 0, 3, 4), (0, 2, 5, 6), (0, 1, 4, 5), (0, 1, 4, 5)])
    with pytest.raises(InputError) as caught:
        read(tmp_path, model, content)
    assert caught.value.message == "row 4: step 1 of episode 0 is given twice"
    assert "--skip-invalid" not in (caught.value.hint or "")


def test_episode_names_of_two_files_may_be_the_same(tmp_path: Path, model: ParametricMDP) -> None:
    for number, walk in enumerate(episodes(2, 9)):
        (tmp_path / f"{number}.csv").write_text(text([(0, *row[1:]) for row in reversed(walk)]))
    reading = read_data(str(tmp_path / "?.csv"), model)
    assert reading.counts.design.episodes == 2
    assert reading.counts.steps == sum(len(walk) for walk in episodes(2, 9))


def test_an_episode_split_over_shuffled_files_is_put_together(tmp_path: Path, model: ParametricMDP) -> None:
    walk = episodes(1, 3)[0]
    assert len(walk) > 4
    (tmp_path / "0.csv").write_text(text(walk[3:]))
    (tmp_path / "1.csv").write_text(text(walk[:3]))
    reading = read_data(str(tmp_path / "?.csv"), model)
    assert reading.counts.design.episodes == 1 and reading.counts.design.censored == ()
    assert reading.counts.steps == len(walk)


def test_steps_alone_begin_episodes(tmp_path: Path, model: ParametricMDP) -> None:
    content = "t,s,a\n0,3,walk\n1,4,walk\n2,3,\n0,3,walk\n1,2,\n"
    reading = read(tmp_path, model, content)
    assert reading.counts.steps == 3 and reading.counts.design.episodes == 2
    assert reading.counts.design.censored == ()
    assert reading.read_as == (
        "states as the model's author calls them; state = s, action = a, step = t; next states from the next "
        "row of the episode",
    )


def test_what_is_assumed_of_a_log_travels_with_its_design() -> None:
    ends = Assumed(ENDS, Kept.STATED, "--ends complete")
    order = Assumed(ORDER, Kept.UNKNOWN, "no column holds the time")
    design = SamplingDesign(SamplingKind.ADAPTIVE, 3, 9, by_episodes=False, order=order, ends=ends)
    assert SamplingDesign.from_json(design.to_json()) == design
    own = SamplingDesign(SamplingKind.TRAJECTORIES, 2, 4)
    for both in (own.merged(design), design.merged(own)):
        assert (both.order, both.ends, both.by_episodes) == (order, ends, False)
    old = {"kind": "adaptive", "episodes": 1, "steps": 2, "repeats": True}
    assert not SamplingDesign.from_json(old).ends.holds and not SamplingDesign.from_json(old).order.holds
    with pytest.raises(InputError, match="not one of ours"):
        SamplingDesign.from_json({**old, "ends": {"kept": "perhaps", "why": ""}})
    anytime = Assumption.ADAPTIVE_ANYTIME
    assert assumed_of(anytime, design, tied=True)[0] == ends
    assert order not in assumed_of(anytime, design, tied=True)
    assert order in assumed_of(anytime, design, tied=True, ordered=True)
