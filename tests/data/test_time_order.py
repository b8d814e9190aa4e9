"""Logs out of order lose no rows: sorted by step or time, or followed where several episodes run at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tightrope.data.counts import batch_ends
from tightrope.data.design import ENDS, ORDER, SamplingDesign, SamplingKind
from tightrope.data.read_options import LogReadOptions
from tightrope.data.reading import Reading, read_data
from tightrope.errors import InputError
from tightrope.model.builder import build_from_function
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.following import Following
from tightrope.statistics.bets import count_planned_episodes
from tightrope.statistics.confidence_budget import Assumption, assumed_of
from tightrope.verdict import Assumed, AssumptionStatus


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
def test_episodes_at_the_same_time_are_distinguished(
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
    assert reading.counts.design.order.kept is AssumptionStatus.UNKNOWN
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
    ends = Assumed.stated(ENDS, "--ends complete")
    order = Assumed.unverified(ORDER, "no column holds the time")
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


Unit = tuple[str, float, str, str]


@pytest.fixture(scope="module")
def machine() -> ParametricMDP:
    parameters = Parameters.box(p=(0.01, 0.99))
    (p,) = parameters.symbols()
    built = build_from_function("ok", lambda state: {"run": {"ok": 1 - p, "down": p}}, parameters)
    assert isinstance(built, ParametricMDP)
    return built


def units(number: int, hours: int, seed: int, share: float = 0.3) -> list[Unit]:
    """Hourly rows of several units, in time order."""
    random = np.random.default_rng(seed)
    rows: list[Unit] = []
    state = ["ok"] * number
    for hour in range(hours):
        for unit in range(number):
            rows.append((f"u{unit}", 100.0 + hour, state[unit], "run"))
            state[unit] = "down" if random.random() < share else "ok"
    return rows


def as_table(rows: list[Unit]) -> pa.Table:
    names = ("episode", "time", "state", "action")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def sizes(reading: Reading) -> list[int]:
    assert reading.counts.batches is not None
    return [int(count.sum()) for _, count in reading.counts.batches]


def test_batches_follow_times_over_files_and_episodes(machine: ParametricMDP) -> None:
    rows = units(3, 60, 1)
    whole = read_data(as_table(rows), machine, until_now=True)
    assert whole.counts.steps == 3 * 59 and whole.counts.design.order.kept is AssumptionStatus.YES
    by_unit = [[row for row in rows if row[0] == f"u{unit}"] for unit in range(3)]
    for data in (
        as_table([row for part in by_unit for row in part]),
        [as_table(part) for part in reversed(by_unit)],
    ):
        found = read_data(data, machine, until_now=True, order="time")
        assert found.counts.batches == whole.counts.batches
        assert found.counts.design.order.kept is AssumptionStatus.STATED
        assert read_data(data, machine, until_now=True).counts.design.order.kept is AssumptionStatus.UNKNOWN
    assert all(size % 3 == 0 for size in sizes(whole)), "rows of one instant are never parted"
    shifted = [as_table([(u, t + 0.1 * i, s, a) for u, t, s, a in part]) for i, part in enumerate(by_unit)]
    apart = read_data(shifted, machine, until_now=True)
    assert apart.counts.design.order.kept is AssumptionStatus.YES, (
        "different beginnings show that one clock runs"
    )
    assert sizes(apart)[:8] == [1] * 8


def test_ends_are_known_stated_or_unknown(machine: ParametricMDP) -> None:
    rows = units(3, 40, 2)

    def ends(rows: list[Unit], **words: object) -> AssumptionStatus:
        return read_data(as_table(rows), machine, **words).counts.design.ends.kept  # type: ignore[arg-type]

    assert ends(rows) is AssumptionStatus.UNKNOWN
    assert ends(rows, ends="complete") is AssumptionStatus.STATED
    assert ends(rows, until_now=True) is AssumptionStatus.YES
    assert ends(rows, watched_until=139.0) is ends(rows, watched_until="140") is AssumptionStatus.YES
    assert ends(rows, watched_until=150) is AssumptionStatus.NO
    assert ends([row for row in rows if row[0] == "u1"]) is AssumptionStatus.YES, (
        "one episode: all before some moment"
    )
    lost = [row for row in rows if row[:2] != ("u1", 139.0)]
    assert ends(lost, until_now=True) is AssumptionStatus.NO, (
        "the last row of a unit may be missing for what it was"
    )
    silent = [row for row in rows if row[0] != "u1" or row[1] < 120]
    assert ends(silent, until_now=True) is AssumptionStatus.NO
    random = np.random.default_rng(3)
    uneven = sorted(((u, t + random.random() / 2, s, a) for u, t, s, a in rows), key=lambda row: row[1])
    assert ends(uneven, until_now=True) is AssumptionStatus.STATED
    with pytest.raises(InputError, match="but the log has later rows"):
        ends(rows, watched_until=120.0)
    with pytest.raises(InputError, match="each state how episodes ended"):
        ends(rows, until_now=True, ends="complete")
    now = read_data(as_table(rows), machine, until_now=True).counts.design
    assert now.censored == () and not now.open_end, "actions without outcome are left out by rule"
    assert read_data(as_table(rows), machine).counts.design.censored == (
        "3 actions have no outcome in the log",
    )


def test_until_now_looks_at_the_clock_of_logs_with_steps(machine: ParametricMDP) -> None:
    """Units that fall silent are seen by their times, whether or not rows are numbered as well."""
    rows = [row for row in units(3, 40, 2) if row[0] != "u1" or row[1] < 120]
    numbered = as_table(rows).append_column("step", pa.array([int(row[1]) - 100 for row in rows]))
    assert read_data(numbered, machine, until_now=True).counts.design.ends.kept is AssumptionStatus.NO
    with pytest.raises(InputError, match="`until_now` needs times, and the log has none"):
        read_data(numbered.drop(["time"]), machine, until_now=True)
    with pytest.raises(InputError, match="`until_now` and `gaps` are about the rows of a log"):
        read_data([[("ok", "run", "down")]], machine, until_now=True, gaps="outage")


def test_rows_that_jitter_are_a_clock(machine: ParametricMDP) -> None:
    """Weekly rows, up to three hours early or late: what is missing shows, and so does a silent unit."""
    random = np.random.default_rng(5)
    weekly = [(u, (t - 100) * 168.0 + 6.0 * random.random() - 3.0, s, a) for u, t, s, a in units(3, 40, 2)]
    whole = read_data(as_table(weekly), machine, gaps="outage", until_now=True).counts.design
    assert whole.ends.kept is AssumptionStatus.YES and not whole.censored
    silent = [row for row in weekly if row[0] != "u1" or row[1] < 20 * 168.0]
    assert read_data(as_table(silent), machine, until_now=True).counts.design.ends.kept is AssumptionStatus.NO
    holed = [row for row in weekly if row[0] != "u1" or not 20 * 168.0 < row[1] < 23 * 168.0]
    assert read_data(as_table(holed), machine, until_now=True).counts.design.censored
    stated = read_data(as_table(holed), machine, until_now=True, gaps="outage").counts.design
    assert stated.ends.kept is AssumptionStatus.STATED and not stated.censored
    uneven = [(u, t * t, s, a) for u, t, s, a in units(3, 40, 2)]
    unknown = read_data(as_table(uneven), machine, until_now=True, gaps="outage").counts.design.ends
    assert (
        unknown.kept is AssumptionStatus.UNKNOWN and "neither step numbers nor a regular clock" in unknown.why
    )


def test_holes_and_instants_given_twice_are_named(machine: ParametricMDP) -> None:
    rows = units(2, 40, 4)
    holed = read_data(
        as_table([r for r in rows if r[0] != "u0" or not 110 < r[1] < 118]), machine, until_now=True
    )
    assert holed.counts.steps == 2 * 39 - 8, "no transition leads across"
    assert holed.counts.design.censored == (
        "1 silence is longer than the clock's usual step: rows are missing there "
        "(--gaps outage states that this had nothing to do with what happened)",
    )
    for doubled in ([row for row in rows for _ in range(3)], [*rows, *rows]):
        with pytest.raises(InputError, match="episode u0 has two rows at one instant, 100"):
            read_data(as_table(doubled), machine)
    tripled = as_table([row for row in rows for _ in range(3)])
    once = read_data(tripled, machine, until_now=True, drop_duplicates=True)
    plain = read_data(as_table(rows), machine, until_now=True)
    assert once.counts.transition.tolist() == plain.counts.transition.tolist()
    assert "160 rows that were logged twice were dropped, as was asked" in once.notes
    both = [r for row in rows for r in (row, (*row[:2], "down" if row[2] == "ok" else "ok", "run"))]
    with pytest.raises(InputError, match="two rows at one instant"):
        read_data(as_table(both), machine, drop_duplicates=True)
    changes = [r for i, r in enumerate(rows) if i < 2 or r[2] != rows[i - 2][2]]
    assert read_data(as_table(changes), machine, until_now=True).counts.design.censored


def test_a_plan_of_episodes_counts_on_any_log(machine: ParametricMDP) -> None:
    rows = [(f"e{e}", 10.0 * e + t, "ok" if t % 2 else "down", "run") for e in range(30) for t in range(4)]
    over = [i % 4 == 3 for i in range(len(rows))]
    blank = ["" if last else "run" for last in over]
    log = as_table(rows).append_column("truncated", pa.array(over)).set_column(3, "action", pa.array(blank))
    planned = read_data(log, machine, planned_episodes=30).counts
    assert planned.design.by_episodes and count_planned_episodes(planned) == 30
    assert [int(c.sum()) for _, c in planned.batches or ()] == (3 * np.diff([0, *batch_ends(30)])).tolist()
    assert planned.design.ends.kept is planned.design.order.kept is AssumptionStatus.YES
    unplanned = read_data(log, machine).counts
    assert not unplanned.design.by_episodes and count_planned_episodes(unplanned) is None
    fewer = read_data(log, machine, planned_episodes=31).counts.design
    assert fewer.censored and "31 episodes were planned" in fewer.censored[0]


def test_interleaved_units_are_watched_like_sorted_ones(machine: ParametricMDP, tmp_path: Path) -> None:
    """Two units whose rows alternate; the share of failures jumps."""
    rows = units(2, 300, 5, 0.1)
    later = units(2, 300, 6, 0.9)
    rows += [(u, t + 300, s, a) for u, t, s, a in later]
    events: list[np.ndarray] = []
    for name, data in (("mixed", rows), ("sorted", sorted(rows, key=lambda row: row[0]))):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(as_table(data), path)
        log = Following((str(path),), machine.structure, LogReadOptions(order="time", until_now=True))
        taken: list[np.ndarray] = []
        log.take_all(lambda part, taken=taken: taken.append(part.transition))  # type: ignore[misc]
        events.append(np.concatenate(taken))
        assert (
            len(events[-1]) == len(rows) - 2 and log.order.kept is AssumptionStatus.STATED and log.ends.holds
        )
    assert np.array_equal(*events)
    assert read_data(as_table(rows), machine, until_now=True).counts.steps == len(rows) - 2


def test_rows_of_a_log_are_sorted_as_they_were_when_they_were_counted(
    model: ParametricMDP, tmp_path: Path
) -> None:
    """A file in which a row is impossible, or breaks a chain, before it shows that its rows are shuffled."""
    walks = [row for one in episodes(6, 5) for row in one]
    jitter = np.random.default_rng(3).uniform(0.0, 1.0, len(walks))
    lines = [f"{k},{k * 1000 + j + e},{x},walk,{to}" for (k, j, x, to), e in zip(walks, jitter, strict=True)]
    shuffled = np.random.default_rng(1).permutation(len(lines)).tolist()
    for head, cut in (("episode,time,state,action,next_state", 5), ("episode,time,state,action", 4)):
        for number in range(3):
            part = [",".join(lines[k].split(",")[:cut]) for k in shuffled]
            (tmp_path / f"{cut}_{number}.csv").write_text("\n".join([head, *part]) + "\n")
            counts = read_data(tmp_path / f"{cut}_{number}.csv", model).counts
            seen = np.bincount(counts.log().transition, minlength=model.transitions)
            assert seen.tolist() == counts.transition.tolist()
            shuffled = np.random.default_rng(2 + number).permutation(len(lines)).tolist()


@pytest.mark.parametrize(
    ("role", "values", "words"),
    [
        ("episode", [1.0, np.nan], "column 'episode' has no value"),
        ("episode", ["1", " "], "column 'episode' has no value"),
        ("time", [1.0, np.nan], "column 'time' has no value"),
        ("time", [1.0, np.inf], "column 'time' holds inf, which is not a number"),
        ("time", pa.array([1, 2**63], pa.uint64()), "column 'time' holds 9223372036854775808"),
    ],
)
def test_names_and_times_that_are_none_are_refused(
    model: ParametricMDP, tmp_path: Path, role: str, values: object, words: str
) -> None:
    """Rows without a name are no episode, and a time that no clock shows comes neither first nor last."""
    rows = {"episode": [1, 1], "time": [1, 2], "state": [3, 4], "action": ["walk"] * 2, "next_state": [4, 5]}
    pq.write_table(pa.table({**rows, role: values}), tmp_path / "log.parquet")
    with pytest.raises(InputError, match=f"row 2: {words}"):
        read_data(tmp_path / "log.parquet", model)


def test_long_numbers_name_one_episode_beside_words_too(model: ParametricMDP, tmp_path: Path) -> None:
    """Chunks in which all names are numbers, and chunks in which some are words."""
    for name, other in (("1234567890123456789", "7"), ("-9223372036854775808", "7"), ("0007", "8")):
        head = "episode,step,state,action,next_state\n"
        (tmp_path / "a.csv").write_text(f"{head}{name},0,3,walk,4\n")
        (tmp_path / "b.csv").write_text(f"{head}{name},1,4,walk,5\n{other},0,3,walk,2\nword,0,3,walk,2\n")
        reading = read_data([tmp_path / "a.csv", tmp_path / "b.csv"], model)
        assert reading.counts.design.episodes == 3


def test_a_wrong_row_among_rows_out_of_order_is_named_with_its_file(
    model: ParametricMDP, tmp_path: Path
) -> None:
    head = "episode,time,state,action,next_state\n"
    (tmp_path / "a.csv").write_text(f"{head}1,5,4,walk,5\n1,2,3,walk,4\n")
    (tmp_path / "b.csv").write_text(f"{head}2,7,3,walk,4\n2,8,,walk,5\n")
    with pytest.raises(InputError, match=r"b\.csv:3: row 2: column 'state' has no value"):
        read_data([tmp_path / "a.csv", tmp_path / "b.csv"], model)
