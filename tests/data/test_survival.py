"""Wide tables of survival: one row per subject, with a time and a status for each event."""

from __future__ import annotations

from pathlib import Path

import pytest

import tightrope as tr
from tightrope.errors import InputError

PARAMETERS = tr.Parameters.box(a=(0.001, 10), b=(0.001, 10), c=(0.001, 10))
A, B, C = PARAMETERS.symbols()
ILLNESS = tr.build_ctmc_from_rows(
    [(0, {1: A, 2: B}), (1, {2: C})], PARAMETERS, state_names=["well", "ill", "dead"], labels={"gone": [2]}
)
COLUMNS = "enter ill=illt:ills, enter dead=dt:ds"
WIDE = "id,illt,ills,dt,ds,sex\n7,2,1,5,1,f\n8,4,0,4,1,m\n9,3,1,10,0,m\n4,6,0,6,0,f\n"


def _file(folder: Path, text: str = WIDE) -> Path:
    path = folder / "wide.csv"
    path.write_text(text)
    return path


def test_a_wide_table_is_the_log_that_it_stands_for(tmp_path: Path) -> None:
    seen = tr.read_exposure(_file(tmp_path), ILLNESS, columns=COLUMNS)
    long = tmp_path / "long.csv"
    long.write_text(
        "episode,time,state\n7,0,well\n7,2,ill\n7,5,dead\n8,0,well\n8,4,dead\n"
        "9,0,well\n9,3,ill\n9,10,ill\n4,0,well\n4,6,well\n"
    )
    same = tr.read_exposure(long, ILLNESS)
    assert seen.jumps.tolist() == same.jumps.tolist() == [2, 1, 1, 0]
    assert seen.waited[:2].tolist() == same.waited[:2].tolist() == [15.0, 10.0]
    assert seen.ends.kept.value == "yes" and seen.episodes == 4 and seen.files[0].endswith("wide.csv")
    assert seen.pieces is not None
    assert seen.pieces().columns["sex"].labels == ("f", "m") and "id" in seen.pieces().columns


def test_an_event_that_was_looked_for_too_briefly_is_refused(tmp_path: Path) -> None:
    """Ill was looked for until 3, and the subject lived until 10: it may have been ill."""
    with pytest.raises(InputError, match="looked for until 3, and the subject was watched until 10"):
        tr.read_exposure(_file(tmp_path, "illt,ills,dt,ds\n3,0,10,1\n"), ILLNESS, columns=COLUMNS)
    seen = tr.read_exposure(_file(tmp_path, "illt,ills,dt,ds\n5,0,4,1\n"), ILLNESS, columns=COLUMNS)
    assert seen.jumps.tolist()[:2] == [0, 1]


def test_watching_may_begin_later_and_subjects_have_names(tmp_path: Path) -> None:
    text = "id,from,illt,ills,dt,ds\n7,1,2,1,5,1\n8,3,4,0,4,0\n"
    seen = tr.read_exposure(_file(tmp_path, text), ILLNESS, columns=f"{COLUMNS}, time=from, episode=id")
    assert seen.waited[:2].tolist() == [2.0, 3.0] and seen.jumps.tolist() == [1, 0, 1, 0]


def test_a_saved_reading_says_it_too_and_labels_name_states(tmp_path: Path) -> None:
    reading = tmp_path / "wide.reading.toml"
    reading.write_text('reading = 1\n\n[columns]\n"enter 1" = "illt:ills"\n"enter gone" = "dt:ds"\n')
    seen = tr.read_exposure(_file(tmp_path), ILLNESS, reading=reading)
    assert seen == tr.read_exposure(_file(tmp_path), ILLNESS, columns=COLUMNS)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("7,2,1,2,1,f", "two events happen at one instant"),
        ("7,0,1,2,1,f", "not after watching began"),
        ("7,3,1,2,1,f", "nothing leaves"),
        ("7,3,2,4,1,f", "ills is neither 0 nor 1"),
        ("7,,1,4,1,f", "illt has no time"),
        ("7,soon,1,4,1,f", "is 'soon', not a time"),
    ],
)
def test_what_cannot_have_happened_is_refused(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tr.read_exposure(_file(tmp_path, WIDE + row + "\n"), ILLNESS, columns=COLUMNS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("enter ill=illt", "not two"),
        ("enter lost=illt:ills", "not a state of the model nor a label"),
        ("enter ill=when:ills", "no column 'when'"),
        ("enter ill=illt:ills, enter 1=dt:ds", "twice"),
        ("enter ill=illt:ills, action=sex", "one row per subject does not have"),
    ],
)
def test_words_that_do_not_fit_are_refused(tmp_path: Path, columns: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tr.read_exposure(_file(tmp_path), ILLNESS, columns=columns)
