"""Dates as people write them, and states of chains in continuous time by their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.errors import InputError

PARAMETERS = tr.Parameters.box(p=(0, 1))
(P,) = PARAMETERS.symbols()
MODEL = tr.build_from_rows([(0, "go", {0: 1 - P, 1: P}), (1, "", {1: 1})], PARAMETERS)


def _log(folder: Path, dates: list[str]) -> Path:
    path = folder / "log.csv"
    states = [0] * len(dates)
    path.write_text(
        "date,episode,state\n" + "".join(f"{d},1,{s}\n" for d, s in zip(dates, states, strict=True))
    )
    return path


@pytest.mark.parametrize(
    ("dates", "form"),
    [
        (["28 Jul 11", "29 Jul 11", "1 Aug 11"], "%d %b %y"),
        (["28-Jul-2011", "29-Jul-2011", "01-Aug-2011"], "%d-%b-%Y"),
        (['"July 28, 2011"', '"July 29, 2011"', '"August 1, 2011"'], "%b %d, %Y"),
        (["07/28/2011 3:05 PM", "07/29/2011 3:05 PM", "08/01/2011 3:05 PM"], "%m/%d/%Y %I:%M %p"),
        (["2011/07/28", "2011/07/29", "2011/08/01"], "%Y/%m/%d"),
    ],
)
def test_forms_of_dates_are_known(tmp_path: Path, dates: list[str], form: str) -> None:
    reading = tr.read_data(_log(tmp_path, dates), MODEL, columns="time=date")
    assert f"values mapped: time: {form}" in reading.read_as and reading.counts.steps == 2
    assert reading.counts.log is not None
    time = reading.counts.log().time
    assert time is not None and np.diff(time).tolist() == [86400.0]


def test_two_forms_that_both_fit_are_named_and_refused(tmp_path: Path) -> None:
    path = _log(tmp_path, ["01/02/2011", "01/03/2011", "01/04/2011"])
    with pytest.raises(InputError, match=r"two ways.*%d/%m/%Y and %m/%d/%Y"):
        tr.read_data(path, MODEL, columns="time=date")
    given = tr.read_data(path, MODEL, columns="time=date:%m/%d/%Y")
    assert given.counts.steps == 2
    with pytest.raises(InputError, match="not a time"):
        tr.read_data(_log(tmp_path, ["28 Jul 11", "soon"]), MODEL, columns="time=date")


def test_a_later_row_decides_between_two_forms(tmp_path: Path) -> None:
    reading = tr.read_data(
        _log(tmp_path, ["01/02/2011", "01/03/2011", "13/03/2011"]), MODEL, columns="time=date"
    )
    assert "values mapped: time: %d/%m/%Y" in reading.read_as


@pytest.mark.parametrize(
    ("dates", "row", "odd"),
    [
        (["2024-01-31", "2024-02-01", "2024-02-02", "03/02/2024"], 4, "03/02/2024"),
        (["31/01/2024", "2024-02-01", "02/02/2024"], 2, "2024-02-01"),
        (["13/01/2024", "14/01/2024", "01/15/2024", "16/01/2024"], 3, "01/15/2024"),
        (["2024-01-31", "7", "2024-02-02"], 2, "7"),
        (["2024-01-02 10:00", "2024-13-09 10:00", "2024-01-16 10:00"], 2, "2024-13-09 10:00"),
    ],
)
def test_the_odd_date_is_named_and_not_the_others(
    tmp_path: Path, dates: list[str], row: int, odd: str
) -> None:
    with pytest.raises(InputError, match=f"column 'date', row {row}: '{odd}' is not written as the other"):
        tr.read_data(_log(tmp_path, dates), MODEL, columns="time=date")


RATES = tr.Parameters.box(lam=(0.01, 10))
(LAM,) = RATES.symbols()
CHAIN = tr.build_ctmc_from_rows(
    [(0, {1: LAM}), (1, {0: 1})], RATES, state_names=["up", "down"], labels={"off": [1]}
)


def test_states_of_chains_in_continuous_time_by_name(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("episode,time,state\n1,0,up\n1,2,down\n1,3,up\n1,7,up\n")
    seen = tr.read_exposure(path, CHAIN)
    assert seen.jumps.tolist() == [1, 1] and seen.waited.tolist() == [6.0, 1.0]
    path.write_text("episode,time,state\n1,0,0\n1,2,1\n1,3,0\n1,7,0\n")
    assert tr.read_exposure(path, CHAIN) == tr.read_exposure(path, CHAIN, states="index")
    path.write_text("episode,time,state\n1,0,up\n1,2,broken\n")
    with pytest.raises(InputError, match=r"row 2.*broken"):
        tr.read_exposure(path, CHAIN)
    rows = tr.simulate_times(CHAIN.instantiate(lam=2), 3, seed=1, time=10)
    assert rows.table()["state"].to_pylist()[:2] == ["up", "down"]
    assert int(tr.read_exposure(rows, CHAIN).jumps.sum()) == rows.jumps


def test_dates_of_chains_in_continuous_time(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("episode,time,state\n1,28 Jul 11,up\n1,30 Jul 11,down\n1,1 Aug 11,up\n1,4 Aug 11,up\n")
    seen = tr.read_exposure(path, CHAIN, maps="time: /86400")
    assert seen.waited.tolist() == [5.0, 2.0]


def test_dates_beyond_nanoseconds_are_refused(tmp_path: Path) -> None:
    """They wrapped around: the year 2300 came before 2250."""
    with pytest.raises(InputError, match="holds dates that cannot be read") as caught:
        tr.read_data(_log(tmp_path, ["2250-01-01", "2300-01-01"]), MODEL, columns="time=date")
    assert caught.value.hint == "years go from 1678 to 2261"


def test_dates_with_and_without_a_time_zone_are_not_compared(tmp_path: Path) -> None:
    """They were, as if both stood at Greenwich."""
    tables = [
        pa.table({"episode": [k], "state": [0], "action": ["go"], "next_state": [0], "time": [time]})
        for k, time in enumerate(("2026-01-01T10:00Z", "2026-01-01 11:00"))
    ]
    with pytest.raises(InputError, match=r"holds dates here, and .* are dates with a time zone"):
        tr.read_data(tables, MODEL)
    assert tr.read_data([tables[0], tables[0].set_column(0, "episode", [[7]])], MODEL).rows == 2
