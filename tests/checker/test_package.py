"""`tightrope_check` stands alone: it needs NumPy, its README names every file, its command is like verify."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import tightrope_check
from places import TESTS
from tightrope.cli.app import run
from tightrope_check import command

ROOT = TESTS.parent
SOURCE = Path(tightrope_check.__file__).parent
STORED = TESTS / "stored" / "slab-before.cert"


def test_the_readme_leads_through_every_file() -> None:
    listed = re.findall(r"`([a-z_/]+\.py)`", (SOURCE / "README.md").read_text(encoding="utf-8"))
    files = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    named = {name for name in listed if not name.startswith("tests/")}
    assert named == {name for name in files if not name.endswith("__init__.py")}
    assert len(named) == sum(name in named for name in listed), "each once"


def test_both_projects_have_the_command_and_the_checker_needs_numpy_alone() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    alone = tomllib.loads((ROOT / "checker" / "pyproject.toml").read_text())["project"]
    assert alone["dependencies"] == [one for one in whole["dependencies"] if one.startswith("numpy")]
    assert alone["scripts"].items() <= whole["scripts"].items()
    assert alone["requires-python"] == whole["requires-python"]


def test_numpy_is_all_it_needs(tmp_path: Path) -> None:
    """Every file is imported and a stored certificate checked in a process that sees the standard library,
    NumPy and the checker alone."""
    (tmp_path / "tightrope_check").symlink_to(SOURCE)
    numpy = Path(np.__file__).parent
    for folder in (numpy, numpy.with_name("numpy.libs")):
        if folder.exists():
            (tmp_path / folder.name).symlink_to(folder)
    names = [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in SOURCE.rglob("*.py")]
    code = f"import sys; sys.path.append({str(tmp_path)!r}); " + "; ".join(f"import {name}" for name in names)
    code += f"; tightrope_check.command.main([{str(STORED)!r}])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("VALID: ")


def left_with(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        command.main(arguments)
    assert isinstance(left.value.code, int)
    return left.value.code


def test_the_command_says_what_verify_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert left_with(str(STORED)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert run(["verify", str(STORED)]) == 0
    same = capsys.readouterr().out.splitlines()
    assert lines[0] == same[0] and lines[1].startswith(same[1])
    assert lines[0].startswith("VALID: ")
    assert any(" holds " in line for line in lines) and not any("FAILS" in line for line in lines)
    damaged = bytearray(STORED.read_bytes())
    damaged[200] ^= 1
    (tmp_path / "damaged.cert").write_bytes(damaged)
    for file in (tmp_path / "damaged.cert", tmp_path / "missing.cert"):
        assert left_with(str(file)) == run(["verify", str(file)]) == 2
        said = capsys.readouterr()
        assert said.out == "" and len(set(said.err.splitlines())) == 1 and said.err.startswith("error: ")


def test_a_budget_that_is_too_small_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_with(str(STORED), "--budget", "0.001s") == 1
    assert "budget" in capsys.readouterr().err
    assert left_with(str(STORED), "--budget", "none") == 2
    assert "600s, 10min or 10x" in capsys.readouterr().err


def test_an_internal_error_has_its_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(os.environ, "TIGHTROPE_DEBUG", raising=False)
    monkeypatch.setattr(command, "check", lambda *_: 1 / 0)
    assert left_with(str(STORED)) == 70
    assert capsys.readouterr().err.startswith("internal error: ZeroDivisionError")
