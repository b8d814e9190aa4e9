"""The repository keeps its word: public names resolve, documents run, pins are what is installed."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import tightrope
import tightrope_campaigns
import tightrope_check
from places import TESTS
from tightrope.cli.commands import COMMANDS

ROOT = TESTS.parent
SOURCE = ROOT / "src" / "tightrope"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CAMPAIGNS = ROOT / "campaigns" / "src" / "tightrope_campaigns"
CHECKER = ROOT / "src" / "tightrope_check"
MODULES = [path for folder in (SOURCE, CHECKER, CAMPAIGNS) for path in sorted(folder.rglob("*.py"))]


def test_public_names_resolve_and_type_checkers_see_the_same() -> None:
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    listed = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(alias.asname == alias.name for alias in listed), "names imported as themselves"
    names = [alias.name for alias in listed]
    assert len(set(names)) == len(names)
    assert set(names) == set(tightrope.__all__) == set(dir(tightrope))
    for name in names:
        value = getattr(tightrope, name)
        home = value.__name__ if isinstance(value, ModuleType) else value.__module__
        assert home.partition(".")[0] in ("tightrope", "tightrope_check")


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    name = "nosuch"
    with pytest.raises(AttributeError, match="tightrope has no name `nosuch`"):
        getattr(tightrope, name)
    name = "lern"
    with pytest.raises(AttributeError, match="did you mean `learn`"):
        getattr(tightrope, name)


def test_the_python_of_the_readme_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    model, result = names["model"], names["result"]
    assert isinstance(model, tightrope.ParametricMDP)
    assert (model.states, model.choices, model.transitions) == (5, 8, 11)
    assert isinstance(result, tightrope.LearningResult)
    truth = 0.55**2 / (0.55**2 + 0.45**2)
    assert 0.5 < result.guarantee <= truth <= result.interval.upper < 0.7


def test_links_of_the_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_no_file_is_too_long_and_nothing_is_left_open() -> None:
    for path in MODULES:
        text = path.read_text()
        assert text.count("\n") <= 900, f"{path.name} is too long to hold one concept"
        assert not re.search(r"\b(TODO|FIXME|XXX)\b|raise NotImplementedError", text), path.name


def test_commands_are_thin() -> None:
    for command in COMMANDS:
        module = command.module or f"tightrope.cli.{command.name.replace('-', '_')}"
        in_core = SOURCE.parent / f"{module.replace('.', '/')}.py"
        assert in_core.is_file() == (command.extra is None)
        assert command.extra is None or command.extra in PROJECT["project"]["optional-dependencies"]
        assert command.summary.endswith(".")
        assert len(command.summary) <= 60


def test_development_tools_are_pinned_to_what_runs_here() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert "tightrope[docs]" in extras["dev"]
    for requirement in [*extras["docs"], *extras["dev"]]:
        if requirement == "tightrope[docs]":
            continue
        name, equals, version = requirement.partition("==")
        assert equals, f"{requirement} is not pinned"
        assert importlib.metadata.version(name) == version


def test_the_lowest_versions_that_are_tested_are_the_bounds() -> None:
    lines = (ROOT / "tools" / "lowest.txt").read_text().splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    for requirement in PROJECT["project"]["dependencies"]:
        name, at_least, bound = requirement.partition(">=")
        assert at_least, requirement
        assert (lowest[name.replace("_", "-")] + ".").startswith(bound + "."), requirement


def test_the_version_is_said_once() -> None:
    """Where it is said again, for readers, it is the same; what is cited is the last release."""
    assert tightrope_campaigns.__version__ == tightrope_check.__version__ == tightrope.__version__
    cited, changes = (ROOT / "CITATION.cff").read_text(), (ROOT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## (\d\S*) – ", changes, re.MULTILINE)[0]
    assert f"\nversion: {released}\n" in cited
    if ".dev" in tightrope.__version__:
        assert "\n## Unreleased\n" in changes and tightrope.__version__.partition(".dev")[0] > released
    else:
        assert tightrope.__version__ == released


def test_the_layers_are_the_packages() -> None:
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {
        "atomic",
        "errors",
        "problem",
        "provenance",
        "loading",
        "saved",
        "verdict",
    }
    assert set(layers) == packages


def test_make_knows_its_targets_and_ci_runs_the_tests() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^#   make (\S+) ", text, re.MULTILINE)
    assert {"setup", "demo", "test", "quick", "system-deps", "coverage", "dist", "docs"} <= set(targets)
    for target in targets:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text().splitlines()


PROGRAMS = "make sh cat mkdir rm cp mv touch test sed grep true"


def make_test(folder: Path, programs: list[str], fails: str = "", **words: str) -> tuple[int, str]:
    """The end of `make test` as a user without root rights who has these programs; every tool is a stand-in,
    and that of the name `fails` fails."""
    own, tools = folder / "own", folder / ".venv" / "bin"
    for place in (own, tools, folder / "tools", folder / "campaigns"):
        place.mkdir(parents=True)
    for name in ("Makefile", "tools/system_deps.sh", "pyproject.toml", "campaigns/pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    for name in PROGRAMS.split():
        (own / name).symlink_to(str(shutil.which(name)))
    for name in ("python", "ruff", "mypy", "lint-imports", "tightrope"):
        (tools / name).write_text("#!/bin/sh\nexit 1\n" if name == fails else "#!/bin/sh\n")
    (own / "id").write_text("#!/bin/sh\necho 1000\n")
    for name in programs:
        (own / name).write_text("#!/bin/sh\n")
    for file in (*own.iterdir(), *tools.iterdir()):
        if not file.is_symlink():
            file.chmod(0o755)
    (folder / ".mypy_cache").mkdir()
    (folder / ".venv" / ".installed").touch()
    (folder / "proved").mkdir()
    (folder / "proved" / "Makefile").write_text("checker:\n")
    variables = {"PATH": str(own), "HOME": str(folder), **words}
    done = subprocess.run(["make", "test"], cwd=folder, env=variables, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_make_test_passes_without_programs_that_only_root_can_install(tmp_path: Path) -> None:
    """It says which groups were not run; in continuous integration that is an error."""
    groups = ["tests of pages", "tests of the CUDA kernels", "tests of the proved checker"]
    groups += ["tests of the proved checker's JavaScript", "tests of logs on Spark"]
    code, said = make_test(tmp_path / "none", [])
    assert code == 0 and all(f"not run on this machine: {group}" in said for group in groups), said
    code, said = make_test(tmp_path / "ci", [], CI="true")
    assert code != 0 and all(f"not run on this machine: {group}" in said for group in groups), said
    code, said = make_test(tmp_path / "some", ["chromium", "ocamlopt", "ocamlfind", "node", "java"])
    named = [f"not run on this machine: {group} (" in said for group in groups]
    assert code == 0 and named == [False, True, False, False, False]
    programs = ["chromium", "g++", "ocamlopt", "ocamlfind", "node", "java"]
    code, said = make_test(tmp_path / "all", programs, CI="true")
    assert code == 0 and "not run" not in said, said
    assert make_test(tmp_path / "wrong", ["chromium"], fails="tightrope")[0] != 0


def test_changelog_has_a_section_for_what_is_to_come() -> None:
    assert "\n## Unreleased\n" in (ROOT / "CHANGELOG.md").read_text()
