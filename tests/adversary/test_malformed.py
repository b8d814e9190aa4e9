"""Malformed archives: exit code 2 in at most 10 s and 1 GiB, words and no traceback, whatever they hold.

In ordinary runs the reader has an eighth of its room, files are as much smaller, and memory is bound by less.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adversary import measured
from adversary.archive import Forgery
from adversary.honest import ALL
from adversary.hostile import AUTOMATA, HOSTILE, NEWEST
from adversary.malformed import MALFORMED, SMALLER

MOST_SECONDS = 10.0
MOST_MEBIBYTES = 1024.0 if SMALLER == 1 else 256.0
TAILS = "2^50 trials"
"""Sums terms up to a limit, which is a tenth of the usual one in the process that is measured."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """What became of each file, in one process: its peak of memory is the peak of all of them."""
    place = tmp_path_factory.mktemp("malformed")
    honest = Forgery.of(ALL["point/reach"].certificate)
    names = {}
    made = {name: make(honest.copy()) for name, make in MALFORMED.items()}
    made |= {
        name: make(Forgery.of(ALL[base].certificate)) for name, (base, make) in (HOSTILE | NEWEST).items()
    }
    temporal = Forgery.of(ALL["point/temporal"].certificate)
    made |= {f"automaton: {name}": make(temporal.copy()) for name, make in AUTOMATA.items()}
    for number, (name, content) in enumerate(made.items()):
        path = place / f"{number}.cert"
        path.write_bytes(content)
        names[str(path)] = name
    command = [sys.executable, measured.__file__, str(SMALLER), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for path in place.iterdir():
        path.unlink()
    assert len(found) == len(names), f"the process ended at {list(names.values())[len(found)]}: {done.stderr}"
    return {names[record["path"]]: record for record in found}


@pytest.mark.parametrize("name", [*MALFORMED, *NEWEST, *(f"automaton: {name}" for name in AUTOMATA)])
def test_malformed_files_are_refused_quickly(records: dict[str, dict], name: str) -> None:
    record = records[name]
    assert record["code"] == 2, record
    assert record["seconds"] <= MOST_SECONDS and record["peak"] <= MOST_MEBIBYTES, record
    assert "Traceback" not in record["err"] and "error" in record["err"] and record["out"] == ""
    assert "\x1b" not in record["err"], "control sequences of the file reach the terminal"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_take_no_longer(records: dict[str, dict], name: str) -> None:
    record = records[name]
    assert record["code"] in (1, 2), record
    most = MOST_SECONDS / 10 if name == TAILS else MOST_SECONDS
    assert record["seconds"] <= most and record["peak"] <= MOST_MEBIBYTES, record
    assert "Traceback" not in record["err"]


def test_what_is_no_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tightrope.cli.app import run

    sparse = tmp_path / "sparse.cert"
    with sparse.open("wb") as file:
        file.truncate(200 << 30)
    for path in (tmp_path, tmp_path / "nowhere.cert", sparse, Path("/dev/zero")):
        assert run(["verify", str(path)]) == 2
        captured = capsys.readouterr()
        assert path.name in captured.err and captured.out == ""
