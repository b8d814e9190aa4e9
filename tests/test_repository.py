"""The repository keeps its word: public names resolve, documents run, pins are what is installed."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tightrope
import tightrope_campaigns
from tightrope.cli.commands import COMMANDS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tightrope"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CAMPAIGNS = ROOT / "campaigns" / "src" / "tightrope_campaigns"
MODULES = sorted(SOURCE.rglob("*.py")) + sorted(CAMPAIGNS.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def statements_of(path: Path, for_checkers: bool = True) -> Iterator[ast.AST]:
    """All statements, not the expressions in them; those for type checkers alone if wanted."""
    todo: list[ast.AST] = [tree_of(path)]
    while todo:
        node = todo.pop()
        if not for_checkers and isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield node
        inside = (ast.stmt, ast.ExceptHandler, ast.match_case)
        todo.extend(each for each in ast.iter_child_nodes(node) if isinstance(each, inside))


def test_public_names_resolve_and_type_checkers_see_the_same() -> None:
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    listed = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(alias.asname == alias.name for alias in listed), "names imported as themselves"
    names = [alias.name for alias in listed]
    assert len(set(names)) == len(names)
    assert set(names) == set(tightrope.__all__) == set(dir(tightrope))
    for name in names:
        assert getattr(tightrope, name).__module__.partition(".")[0] == "tightrope"


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    name = "nosuch"
    with pytest.raises(AttributeError, match="No tightrope attribute nosuch"):
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


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path) for path in MODULES if ast.get_docstring(tree_of(path)) is None]
    assert silent == []


def test_no_file_is_too_long_and_nothing_is_left_open() -> None:
    for path in MODULES:
        text = path.read_text()
        assert text.count("\n") <= 900, f"{path.name} is too long to hold one concept"
        assert not re.search(r"\b(TODO|FIXME|XXX)\b|raise NotImplementedError", text), path.name


MOST_PARAMETERS = 8

MORE_PARAMETERS = {
    "ambiguity/o_maximization.py": "innermost steps: with records these take 1.1 to 1.3 times as long",
    "ambiguity/rectangular_inner.py": "as o-maximization",
    "solver/solve.py: solve": "options of a public function, by keyword",
    "model/builder.py: build_from_rows": "options of a public function, by keyword",
    "model/builder.py: build_ctmc_from_rows": "options of a public function, by keyword",
    "data/steps.py: count_environment": "options of a public function, by keyword",
    "certify/verification.py: verify": "options of a public function, by keyword",
    "learning/doctor.py: doctor": "options of a public function, by keyword",
    "learning/solve.py: solve": "options of a public function, by keyword",
    "design/exploration.py: online": "options of a public function, by keyword",
    "learning/online/learner.py: __init__": "options of a public class, by keyword",
}
"""Files and functions that take more than `MOST_PARAMETERS`, and why."""


def test_functions_take_few_parameters() -> None:
    many, public = set(), set()
    for path in MODULES:
        for node in statements_of(path):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            own = [*node.args.posonlyargs, *node.args.args]
            given = [each.arg for each in (*own, *node.args.kwonlyargs) if each.arg not in ("self", "cls")]
            if len(given) <= MOST_PARAMETERS:
                continue
            file = path.relative_to(SOURCE if SOURCE in path.parents else CAMPAIGNS.parent).as_posix()
            many.add(file if file in MORE_PARAMETERS else f"{file}: {node.name}")
            if MORE_PARAMETERS.get(f"{file}: {node.name}", "").startswith("options"):
                public.add((f"{file}: {node.name}", len(own) <= MOST_PARAMETERS))
    assert many - set(MORE_PARAMETERS) == set(), "what travels together goes into one record"
    assert set(MORE_PARAMETERS) - many == set(), "exceptions that are none any more"
    assert all(by_keyword for _, by_keyword in public)


def test_commands_are_thin() -> None:
    for command in COMMANDS:
        in_core = SOURCE / "cli" / f"{command.name.replace('-', '_')}.py"
        assert in_core.is_file() == (command.module is None)
        assert command.module is None or command.extra in PROJECT["project"]["optional-dependencies"]
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
    assert tightrope_campaigns.__version__ == tightrope.__version__
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
        "loading",
        "saved",
        "verdict",
    }
    assert set(layers) == packages
    assert layers.index("solver") < layers.index("certificate")


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


def test_changelog_has_a_section_for_what_is_to_come() -> None:
    assert "\n## Unreleased\n" in (ROOT / "CHANGELOG.md").read_text()


def test_no_two_files_import_each_other() -> None:
    """Not even inside functions; what only type checkers read does not count."""
    names = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path
        for path in MODULES
        if SOURCE in path.parents
    }
    imports = {name: _imported(path) & set(names) for name, path in names.items()}
    circles = {
        frozenset((one, other))
        for one, others in imports.items()
        for other in others
        if one in imports[other]
    }
    assert circles == set()


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in statements_of(path, for_checkers=False):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found
