"""Formats of model files are found in one registry, those of other packages by their entry points.

Also of `io/formats.py`.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.io.formats import format_of, formats, writing_format

MODULE = '''
"""States and probabilities, a line per transition: from, action, to, probability."""

from pathlib import Path

import tightrope as tr
from tightrope.io.formats import Capabilities, ModelFormat


class Rows(ModelFormat):
    name = "rows"
    suffixes = (".rows",)
    holds = Capabilities()

    def read(self, path, options):
        chosen = {}
        for line in path.read_text().splitlines():
            state, action, successor, probability = line.split()
            chosen.setdefault((int(state), action), {})[int(successor)] = float(probability)
        rows = [(state, action, successors) for (state, action), successors in chosen.items()]
        return tr.build_from_rows(rows).instantiate()

    def write(self, model, path):
        structure, lines = model.structure, []
        for transition, choice in enumerate(structure.transition_choice.tolist()):
            action = structure.action_names[structure.action[choice]]
            ends = structure.choice_state[choice], structure.successor[transition]
            lines.append(f"{ends[0]} {action} {ends[1]} {model.probability[transition]}")
        Path(path).write_text("\\n".join(lines) + "\\n")
        return [Path(path)]
'''


def test_every_ending_belongs_to_one_format() -> None:
    assert [form.name for form in formats()] == ["PRISM", "JANI", "DRN", "UMB", "explicit"]
    endings = [suffix for form in formats() for suffix in form.suffixes]
    assert len(endings) == len(set(endings)) == 9
    compressed = [suffix for form in formats() if form.holds.compressed for suffix in form.suffixes]
    assert compressed == [".prism", ".nm", ".pm", ".sm", ".ma", ".jani", ".drn"]
    for path, name in (("a/m.nm", "PRISM"), ("m.drn.gz", "DRN"), ("m.tra", "explicit"), ("m.umb", "UMB")):
        form = format_of(path)
        assert form is not None and form.name == name
    assert format_of("m") is None and format_of("m.txt") is None
    assert writing_format("m").name == writing_format("m.tra").name == "explicit"


def test_models_are_saved_in_the_format_of_the_ending(tmp_path: Path) -> None:
    model = tr.build_from_rows([(0, "go", {0: 0.25, 1: 0.75}), (1, "stay", {1: 1})]).instantiate()
    for name in ("m.drn", "m.tra", "m.umb", "m.jani"):
        written = model.save(tmp_path / name)
        assert tmp_path / name in written and all(file.is_file() for file in written)
        assert tr.load(tmp_path / name).states == 2
    assert tmp_path / "n.tra" in model.save(tmp_path / "n")
    with pytest.raises(InputError, match=r"cannot tell which format .*m\.txt should have"):
        model.save(tmp_path / "m.txt")
    with pytest.raises(InputError, match="cannot tell which format"):
        model.save(tmp_path / "m.prism")
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    open_one = tr.build_from_rows([(0, "go", {0: p, 1: 1 - p}), (1, "stay", {1: 1})], parameters)
    for name in ("p.umb", "p.tra"):
        with pytest.raises(InputError, match="numbers only, and this model has parameters"):
            open_one.save(tmp_path / name)
    assert not list(tmp_path.glob("p.*"))


def test_another_package_brings_a_format(tmp_path: Path) -> None:
    """A distribution on the path, with its entry point: `load`, `save`, `export` and messages know it."""
    (tmp_path / "row_format.py").write_text(MODULE)
    about = tmp_path / "row_format-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: row-format\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tightrope.formats]\nrows = row_format:Rows\n")
    script = """
        import tightrope as tr
        from tightrope.cli.app import run

        model = tr.build_from_rows([(0, "go", {0: 0.25, 1: 0.75}), (1, "stay", {1: 1})]).instantiate()
        assert [file.name for file in model.save("m.rows")] == ["m.rows"]
        assert open("m.rows").read().splitlines()[0] == "0 go 0 0.25"
        assert tr.load("m.rows").probability.tolist() == [0.25, 0.75, 1.0]
        assert run(["export", "m.rows", "-o", "m.drn"]) == 0
        assert run(["export", "m.drn", "-o", "again.rows"]) == 0
        assert open("again.rows").read() == open("m.rows").read()
        assert run(["export", "m.drn", "-o", "again.rows"]) == 2  # it has no mark of ours
        try:
            tr.load("m.rows", params={"p": (0, 1)})
        except tr.InputError as error:
            print(error)
        try:
            tr.load("missing.file")
        except tr.InputError as error:
            print(error.hint)
    """
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{textwrap.dedent(script)}",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "`params` cannot be used with m.rows: rows files have no parameters" in done.stdout
    assert ".rows (rows)" in done.stdout
