"""Reading that explains itself: what values look like, dates, unused columns, and readings that are saved."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io.log_words import load_reading, reading_text
from tightrope.io.table.columns import look
from tightrope.prism.load import load_prism_text
from tightrope.verdict import AssumptionStatus

PUMP = """mdp
const double p;
const double q;
module pump
  wear : [0..3] init 0;
  [run] wear<2 -> p:(wear'=wear+1) + (1-p):(wear'=wear);
  [run] wear=2 -> q:(wear'=3) + (1-q):(wear'=2);
  [service] wear>0 & wear<3 -> (wear'=0);
  [broken] wear=3 -> (wear'=3);
endmodule
label "failed" = wear=3;
"""
RANGES = ["--param", "p=0.01:0.5,q=0.01:0.5"]
COLUMNS = "wear=Verschleiss, action=Befehl, episode=Pumpe, time=Zeit"
MAPS = "action: B=run, W=service"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pump.prism").write_text(PUMP)


@pytest.fixture(scope="module")
def pump() -> tr.ParametricMDP:
    model = load_prism_text(PUMP, "pump.prism", box="p=0.01:0.5,q=0.01:0.5")
    assert isinstance(model, tr.ParametricMDP)
    return model


def fleet(units: int = 12, hours: int = 300, doubled: float = 0.01, holes: bool = True) -> str:
    """Pumps that are logged every hour, sorted as text: dates in the German way, rows logged twice, silences,
    and most of them still running in the end."""
    drawn, rows = random.Random(7), []
    for unit in range(units):
        time, wear = datetime(2024, 1, 30, 6) + timedelta(minutes=5 * unit), 0
        for hour in range(hours):
            action = "B" if wear < 2 or drawn.random() < 0.5 else "W"
            rows.append((time, f"P{unit + 1:02d}", wear, action))
            if action == "W":
                wear = 0
            elif drawn.random() < (0.1 if wear < 2 else 0.02):
                wear += 1
            time += timedelta(hours=9 if holes and hour == hours // 2 and unit % 4 == 0 else 1)
            if wear == 3:
                rows.append((time, f"P{unit + 1:02d}", 3, ""))
                break
    rows += [row for row in rows if drawn.random() < doubled]
    last = max(time for time, *_ in rows) - timedelta(hours=8 if holes else 0)
    kept = [row for row in rows if row[0] <= last]
    kept.sort(key=lambda row: (f"{row[0]:%d.%m.%Y %H:%M}", row[1]))
    lines = [f"{time:%d.%m.%Y %H:%M};{unit};{wear};{action};Tag" for time, unit, wear, action in kept]
    return "\n".join(["Zeit;Pumpe;Verschleiss;Befehl;Schicht", *lines, ""])


def test_values_are_described_as_they_look() -> None:
    assert look(["2024-01-31", "2024-02-01 12:00"]) == look(["31.01.2024 06:00"]) == "dates"
    assert look(["01/02/2024"]) == "dates" and look(["12:30", "08:15:01"]) == "times of day"
    assert look(["0,5", "1.250,75"]) == "numbers with a decimal comma"
    assert look(["1", "-2"]) == "whole numbers" and look(["1", "2.5"]) == "numbers"
    assert look(["Nacht", "Tag"]) == "text" and look([]) == look([None, " "]) == "nothing"


def test_the_column_that_fails_is_named_with_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pumps.csv").write_text(fleet())
    wrong = COLUMNS.replace("time=", "step=")
    command = ["data", "pumps.csv", "--model", "pump.prism", *RANGES, "--columns", wrong, "--map", MAPS]
    assert run(command) == 2
    said = capsys.readouterr().err
    assert "column 'Zeit', read as step: '01.02.2024 00:00', '01.02.2024 00:05'" in said
    assert "look like dates" in said and "Verschleiss" not in said
    assert 'say --columns "time=Zeit"' in said
    assert (
        run(["learn", "pump.prism", *command[4:], "--prop", 'Pmin=? [ F "failed" ]', "--data", "pumps.csv"])
        == 2
    )
    said = capsys.readouterr().err
    assert (
        "column 'Zeit' holds '01.02.2024 00:00', which is not a number" in said and "look like dates" in said
    )


def test_decimal_commas_are_named(pump: tr.ParametricMDP) -> None:
    Path("log.csv").write_text("wear;action;wear_next\n0,0;run;1,0\n1,0;run;2,0\n")
    with pytest.raises(InputError, match="'0,0', '1,0' look like numbers with a decimal comma") as refused:
        tr.read_data("log.csv", pump)
    assert refused.value.hint == "write the numbers of 'wear' with a point: 0.5, not 0,5"


@pytest.mark.parametrize(
    ("times", "columns"),
    [
        (["31.01.2024 22:00", "31.01.2024 23:00", "01.02.2024 00:00"], "time=Zeit"),
        (["31.01.2024 22:00:10", "31.01.2024 23:00:10", "01.02.2024 00:00:10"], "time=Zeit"),
        (["2024-01-31 22:00", "2024-01-31 23:00", "2024-02-01 00:00"], "time=Zeit"),
        (["31/01/2024", "01/02/2024", "02/02/2024"], "time=Zeit:%d/%m/%Y"),
        (["Jan 31 2024 22h", "Jan 31 2024 23h", "Feb 01 2024 00h"], "time=Zeit:%b %d %Y %Hh"),
    ],
)
def test_dates_put_rows_in_order(pump: tr.ParametricMDP, times: list[str], columns: str) -> None:
    rows = list(zip(times, ["0", "1", "2"], ["run", "run", "service"], strict=True))
    lines = [";".join(row) for row in (rows[2], rows[0], rows[1])]  # the last one first
    Path("log.csv").write_text("\n".join(["Zeit;wear;action", *lines, ""]))
    counts = tr.read_data("log.csv", pump, columns=[columns], until_now=True).counts
    assert counts.steps == 2 and counts.transition.sum() == 2
    assert counts.transition[: len(counts.transition)].max() == 1


def test_dates_that_mean_two_days_are_refused_with_both(pump: tr.ParametricMDP) -> None:
    Path("log.csv").write_text("Zeit,wear,action\n01/02/2024 06:00,0,run\n02/02/2024 06:00,1,run\n")
    with pytest.raises(
        InputError, match="01/02/2024 06:00 is day 1 of month 2, or day 2 of month 1"
    ) as refused:
        tr.read_data("log.csv", pump, columns="time=Zeit")
    assert refused.value.hint is not None
    assert "time=Zeit:%d/%m/%Y %H:%M" in refused.value.hint and "%m/%d/%Y %H:%M" in refused.value.hint
    Path("log.csv").write_text("Zeit,wear,action\nfrüh,0,run\nspät,1,run\n")
    with pytest.raises(InputError, match="not a time: 'früh', 'spät' look like text"):
        tr.read_data("log.csv", pump, columns="time=Zeit")


def test_times_that_do_not_fit_their_format_are_bad_values(pump: tr.ParametricMDP) -> None:
    Path("log.csv").write_text("Zeit,wear,action\n2024-01-31,0,run\n01.02.2024,1,run\n02.02.2024,2,run\n")
    with pytest.raises(InputError, match="row 1"):
        tr.read_data("log.csv", pump, columns="time=Zeit:%d.%m.%Y")


def test_unused_columns_that_look_like_something_are_pointed_at(
    pump: tr.ParametricMDP, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pumps.csv").write_text(fleet(doubled=0))
    columns = "wear=Verschleiss, action=Befehl, episode=Pumpe"
    with pytest.raises(InputError, match=r"no transition from state|has no value") as refused:
        tr.read_data("pumps.csv", pump, columns=columns, maps=MAPS)
    assert "no transition" not in str(refused.value) or "looks like times" in str(refused.value)
    notes = tr.read_data("pumps.csv", pump, columns=columns, maps=MAPS, skip_invalid=True).notes
    assert any("column 'Zeit' is not used and looks like times (01.02.2024 00:00" in note for note in notes)
    assert run(["data", "pumps.csv", "--model", "pump.prism", *RANGES]) == 2
    said = capsys.readouterr().err
    assert (
        'looks like times (01.02.2024 00:00, 01.02.2024 00:05, 01.02.2024 00:10): --columns "time=Zeit"'
        in said
    )
    assert "looks like names of episodes (P01, P02, P03)" in said
    Path("log.csv").write_text("wear,action,wear_next,ist_ende\n0,run,1,0\n1,run,1,1\n")
    notes = tr.read_data("log.csv", pump).notes
    assert any("column 'ist_ende' is not used and looks like ends (0, 1)" in note for note in notes)


def test_a_reading_is_saved_and_used_again(
    pump: tr.ParametricMDP, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pumps.csv").write_text(fleet())
    timed = COLUMNS.replace("time=Zeit", "time=Zeit:%d.%m.%Y %H:%M")
    told = ["--columns", timed, "--map", MAPS, "--drop-duplicates", "--until-now", "--gaps", "outage"]
    command = ["data", "pumps.csv", "--model", "pump.prism", *RANGES]
    assert run([*command, *told, "-o", "pump.reading.toml", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (
        first["verdict"] == "proved" and first["order"]["kept"] == "yes" and first["ends"]["kept"] == "stated"
    )
    assert Path("pump.reading.toml").read_text() == (
        'reading = 1\nstates = "variables"\nuntil_now = true\ngaps = "outage"\ndrop_duplicates = true\n\n'
        '[columns]\nwear = "Verschleiss"\naction = "Befehl"\nepisode = "Pumpe"\n'
        'time = "Zeit:%d.%m.%Y %H:%M"\n\n[maps]\naction = "B=run, W=service"\n'
    )
    assert run([*command, "--reading", "pump.reading.toml", "-o", "again.toml", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    del first["seconds"], second["seconds"]
    assert first == second
    assert Path("again.toml").read_text() == Path("pump.reading.toml").read_text()
    counts = tr.read_data("pumps.csv", pump, reading="pump.reading.toml").counts
    assert counts.steps == first["steps"] and not counts.design.censored
    again = tr.read_data(
        "pumps.csv",
        pump,
        reading="pump.reading.toml",
        maps={"action": {"B": "run", "W": "run"}},
        skip_invalid=True,
    )
    assert "maps: action is not as the reading pump.reading.toml has it" in again.notes
    assert again.counts.steps > 0 and not np.array_equal(again.counts.transition, counts.transition)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("columns = 1\n", "x.toml", "it does not begin with reading = 1"),
        ("reading = 1\ncolums = 'a'\n", "x.toml:2", "import settings have no key 'colums'"),
        ("reading = 1\nuntil_now = 'yes'\n", "x.toml:2", "'until_now' is 'yes', which is not a value"),
        ("reading = 1\nplanned_episodes = true\n", "x.toml:2", "'planned_episodes' is True"),
        ("reading = 1\n[columns]\nwear = 3\n", "x.toml:2", "'columns' is not a table of texts"),
        ("reading = 1\n[columns\n", "x.toml:2", "the import settings are not TOML"),
        ("reading = 1\nends = 'whole'\n", None, "`ends` is 'whole', and it may be 'complete'"),
    ],
)
def test_readings_that_are_none_are_refused_with_their_place(
    pump: tr.ParametricMDP, text: str, place: str | None, words: str
) -> None:
    Path("x.toml").write_text(text)
    with pytest.raises(InputError) as refused:
        tr.read_data([[(0, "run", 1)]], pump, reading="x.toml")
    assert words in refused.value.message
    assert place is None or str(refused.value.location).startswith(place)


def test_readings_round_trip_whatever_names_are(tmp_path: Path) -> None:
    given = {
        "states": "own",
        "planned_episodes": 12,
        "watched_until": 3.5,
        "columns": {"wear'": 'näch"ste\\r', "state": "a\nb\x7f"},
        "maps": {"action": "'=run, ä=b"},
    }
    (tmp_path / "x.toml").write_text(reading_text(given), encoding="utf-8")
    assert load_reading(tmp_path / "x.toml") == given


def test_from_the_first_command_to_a_certified_answer_in_four(capsys: pytest.CaptureFixture[str]) -> None:
    """German dates, rows logged twice, holes and a running end; each command tells the next."""
    Path("pumps.csv").write_text(fleet(hours=200))
    first = ["data", "pumps.csv", "--model", "pump.prism", *RANGES]
    assert run(first) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in ("Verschleiss", "Befehl", '"time=Zeit"', '"episode=Pumpe"'))

    assert run([*first, "--columns", COLUMNS]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the model has no such actions: " in said and "B (" in said and "W (" in said

    assert run([*first, "--columns", COLUMNS, "--map", MAPS, "-o", "pump.reading.toml", "--verbose"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("NOMINAL: ")
    assert all(option in said for option in ("--drop-duplicates", "--until-now", "--gaps outage"))
    assert "written pump.reading.toml" in said

    asked = [
        "learn",
        "pump.prism",
        *RANGES,
        "--prop",
        'Pmax=? [ !"failed" U<=20 wear=2 ]',
        "--data",
        "pumps.csv",
    ]
    stated = ["--drop-duplicates", "--until-now", "--gaps", "outage"]
    assert run([*asked, "--reading", "pump.reading.toml", *stated, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "proved"
    assert any("--gaps outage" in one["why"] for one in answer["assumptions"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--watched-until", "soon"], "--watched-until requires"),
        (["--until-now"], "--until-now requires"),
        (["--gaps", "outage", "--drop-duplicates"], "--gaps and --drop-duplicates require"),
        (["--order", "time"], "--order time requires"),
        (["--columns", "time=when"], "the column of the time (--columns) requires"),
    ],
)
def test_words_about_rows_are_refused_for_a_table_of_counts(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("counts.csv").write_text("wear,action,wear_next,count,when\n0,run,1,10,1\n0,run,0,90,2\n")
    asked = ["learn", "pump.prism", *RANGES, "--prop", 'Pmin=? [ F "failed" ]', "--data", "counts.csv"]
    assert run([*asked, *options]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "this is a table of counts" in said and words in said and "--ends complete states" in said
    assert run(["data", "counts.csv", "--model", "pump.prism", *RANGES, *options]) == 2
    capsys.readouterr()
    assert run([*asked, "--ends", "complete", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "proved"


def watched(rows: list[tuple[str, float, int, str, float | None]]) -> pa.Table:
    names = ("episode", "time", "wear", "action", "until")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def test_a_column_says_until_when_each_episode_was_watched(pump: tr.ParametricMDP) -> None:
    """Two pumps that are logged every hour, one until hour 6 and one until hour 9."""
    rows: list[tuple[str, float, int, str, float | None]] = [
        (unit, float(hour), 0, "run", end)
        for unit, end in (("a", 6.0), ("b", 9.0))
        for hour in range(int(end))
    ]
    counts = tr.read_data(watched(rows), pump, watched_until="until").counts
    assert counts.design.ends.kept is AssumptionStatus.YES and not counts.design.censored
    assert counts.steps == 13  # the last actions have no outcome yet
    assert "the column until says until when each episode was watched" in counts.design.ends.why
    lost = [row for row in rows if not (row[0] == "a" and row[1] == 5)]
    assert (
        tr.read_data(watched(lost), pump, watched_until="until").counts.design.ends.kept
        is AssumptionStatus.NO
    )
    at_end = [*rows, ("b", 9.0, 0, "run", 9.0)]  # then a row is missing for a at hour 6
    assert (
        tr.read_data(watched(at_end), pump, watched_until="until").counts.design.ends.kept
        is AssumptionStatus.NO
    )
    both = [*at_end, ("a", 6.0, 0, "run", 6.0)]
    assert (
        tr.read_data(watched(both), pump, watched_until="until").counts.design.ends.kept
        is AssumptionStatus.YES
    )
    blank = [(*row[:4], None if row[0] == "a" else row[4]) for row in rows]
    assert (
        tr.read_data(watched(blank), pump, watched_until="until").counts.design.ends.kept
        is AssumptionStatus.UNKNOWN
    )
    with pytest.raises(InputError, match="row 6: the episode goes on after it was watched"):
        tr.read_data(watched([(*row[:4], 4.0) for row in rows]), pump, watched_until="until")
    with pytest.raises(InputError, match="the log has none of the episode"):
        tr.read_data(watched(rows).drop_columns(["episode"]), pump, watched_until="until")
    with pytest.raises(InputError, match="`watched_until` is 'soon'"):
        tr.read_data(watched(rows), pump, watched_until="soon")


def test_times_of_all_files_are_of_one_kind(pump: tr.ParametricMDP) -> None:
    """Whole numbers in one file and decimals in the next are compared as numbers, or refused."""
    rows: list[tuple[str, float, int, str, float | None]] = [
        ("a", float(t), 0, "run", None) for t in range(20)
    ]
    early, late = watched(rows[:10]), watched([("b", *row[1:]) for row in rows[5:]])
    whole = pa.array([int(time) for time in early["time"].to_pylist()])
    early = early.set_column(1, "time", whole)
    one = tr.read_data([late, early], pump, until_now=True, order="time").counts
    same = watched([*rows[:10], *(("b", *row[1:]) for row in rows[5:])])
    other = tr.read_data(same, pump, until_now=True, order="time").counts
    assert one.batches is not None and other.batches is not None
    assert [count.sum() for _, count in one.batches] == [count.sum() for _, count in other.batches]
    assert tr.read_data([early, late], pump, until_now=True).counts.steps == one.steps
    half = late.set_column(1, "time", pa.array([time + 0.5 for time in late["time"].to_pylist()]))
    with pytest.raises(InputError, match="holds numbers here, and the times of the rows before are whole"):
        tr.read_data([early, half], pump, until_now=True)
