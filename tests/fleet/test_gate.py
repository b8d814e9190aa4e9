"""The gate of continuous integration: the shell lines of `action.yml`, and the recipes beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ACTION = (ROOT / "action.yml").read_text()


def shell_lines() -> dict[str, str]:
    """What every step of the action runs, by its name."""
    steps = ACTION.partition("  steps:\n")[2].split("    - name: ")[1:]
    texts = {step.partition("\n")[0]: step.partition("      run: ")[2] for step in steps}
    return {name: textwrap.dedent(text.removeprefix("|\n")) for name, text in texts.items()}


def gate(folder: Path, command: str, arguments: str) -> tuple[int, str, str]:
    """(exit code, summary, outputs) of the step that runs the gate."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin" / "tightrope"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tightrope "$@"\n')
    program.chmod(0o755)
    files = {"GITHUB_STEP_SUMMARY": folder / "summary.md", "GITHUB_OUTPUT": folder / "outputs"}
    given = {"COMMAND": command, "ARGUMENTS": arguments, **{name: str(path) for name, path in files.items()}}
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", shell_lines()["Run the gate"]],
        cwd=folder,
        env={**os.environ, **given, "PATH": path},
        capture_output=True,
        check=False,
    )
    texts = [file.read_text() if file.exists() else "" for file in files.values()]
    return done.returncode, texts[0], texts[1]


def transcripts(path: Path, seed: int, good: int) -> None:
    path.mkdir()
    lines = [{"run": i, "tool": "search", "score": int((7 * i + seed) % 10 < good)} for i in range(200)]
    (path / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_shell_lines_take_their_inputs_from_the_environment_alone() -> None:
    lines = shell_lines()
    assert list(lines) == ["Install tightrope", "Run the gate"]
    for text in lines.values():
        assert text and "${{" not in text, "an input in a shell line could run commands"
    assert "value: ${{ steps.run.outputs.verdict }}" in ACTION


def test_the_gate_passes_and_fails_with_a_summary(tmp_path: Path) -> None:
    transcripts(tmp_path / "old runs", 0, 9)
    transcripts(tmp_path / "same", 3, 9)
    transcripts(tmp_path / "worse", 3, 4)
    words = "--before 'old runs' --after {} --margin 0.2 --delta 0.05"
    code, summary, outputs = gate(tmp_path, "compare", words.format("same"))
    assert (code, outputs) == (0, "verdict=PROVED\n")
    assert summary.startswith("### PROVED: success fell by at most 0.2")
    (tmp_path / "outputs").unlink()
    code, summary, outputs = gate(tmp_path, "compare", words.format("worse"))
    assert (code, outputs) == (1, "verdict=CONTRADICTED\n")
    assert "### CONTRADICTED: success fell by at least 0." in summary


@pytest.mark.parametrize(
    ("command", "arguments"), [("rm", "-rf x"), ("compare", "--before none --after '$(touch made)'")]
)
def test_wrong_inputs_have_exit_code_2_and_run_nothing(command: str, arguments: str, tmp_path: Path) -> None:
    assert gate(tmp_path, command, arguments)[0] == 2
    assert not (tmp_path / "made").exists()


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)
    assert run is not None
    listed = {line.strip("- \n").replace(" ", "") for line in run[1].splitlines()}
    needed = {one.replace("matplotlib", "matplotlib-base") for one in project["dependencies"]}
    assert listed == needed | {f"python{project['requires-python']}"}
    for name, place in project["scripts"].items():
        assert f"- {name} = {place}" in recipe
