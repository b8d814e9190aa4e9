"""What an ordinary run leaves out (`conftest.py`), and the tests that stand for it."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import conftest
from places import TESTS


def marks() -> dict[str, dict[str, list[Any]]]:
    """Arguments of the marks of each test function: "cli/test_app.py::test_x" → mark → arguments."""
    found: dict[str, dict[str, list[Any]]] = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[f"{path.relative_to(TESTS).as_posix()}::{node.name}"] = dict(mark_of(node))
    return found


def mark_of(node: ast.FunctionDef) -> list[tuple[str, list[Any]]]:
    calls = [d if isinstance(d, ast.Call) else ast.Call(d, [], []) for d in node.decorator_list]
    return [
        (call.func.attr, [a.value for a in call.args if isinstance(a, ast.Constant)])
        for call in calls
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "pytest.mark"
    ]


def test_a_test_that_every_run_tries_stands_for_each_costly_one() -> None:
    tests = marks()
    costly = {name: of["costly"] for name, of in tests.items() if "costly" in of}
    assert len(costly) > 30
    for name, (stand_in,) in costly.items():
        named = stand_in if "::" in stand_in else f"{name.partition('::')[0]}::{stand_in}"
        assert named in tests and not {"costly", "long"} & set(tests[named]), name


def item(name: str, **of: tuple[int, ...]) -> Any:
    at = {mark: SimpleNamespace(args=args) for mark, args in of.items()}
    return SimpleNamespace(nodeid=name, get_closest_marker=at.get)


def test_one_in_so_many_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "WHOLE", False)
    items = [item(f"tests/a.py::test_b[{i}]", thinned=(3,)) for i in range(7)]
    items += [item("tests/a.py::test_c[0]"), item("tests/a.py::test_c[1]")]
    items += [item("tests/a.py::test_d", long=()), item("tests/a.py::test_e", costly=())]
    names = [i.nodeid for i in items]
    left: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left.extend(items))
    config: Any = SimpleNamespace(args=["tests/a.py::test_b"], hook=hook)
    conftest.pytest_collection_modifyitems(config, items)
    assert len(items) == 11 and not left
    config.args = ["tests"]
    conftest.pytest_collection_modifyitems(config, items)
    assert [i.nodeid for i in items] == [names[i] for i in (0, 3, 6, 7, 8)] and len(left) == 6


def modules() -> list[Path]:
    """Files of the sources, relative to `src`."""
    source = TESTS.parent / "src"
    return [path.relative_to(source) for path in source.rglob("*.py") if path.name[:2] != "__"]


def test_every_module_has_its_tests() -> None:
    """A module has a test file of its name in its package's folder, or a test file names it."""
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    text = "\n".join(texts.values())
    for module in modules():
        package = (
            "checker" if "check" in module.parts[0] or "certificate" in module.parts else module.parts[1]
        )
        dotted = ".".join(module.with_suffix("").parts)
        parent, _, name = dotted.rpartition(".")
        path = module.as_posix().removeprefix("tightrope/")
        has_file = any((TESTS / package / f"test_{n}.py").exists() for n in (name, module.parent.name))
        assert (
            has_file or dotted in text or f"`{path}`" in text or f"from {parent} import {name}\n" in text
        ), path
