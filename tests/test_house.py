"""The measures of the house (`tools/house.py`) only improve."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

TOOL = Path(__file__).parents[1] / "tools" / "house.py"


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_has_been_reached_is_kept() -> None:
    house = load_tool()
    measured = house.static_measures()
    assert set(measured) == set(house.REACHED)
    worse = {name: value for name, value in measured.items() if value > house.REACHED[name]}
    assert worse == {}, "the house grew: merge or delete something, or say in tools/house.py why it must"


def test_the_walk_names_functions_where_they_are() -> None:
    root = TOOL.parents[1]
    stops = re.findall(
        r"^\| (\d+) \| `([\w/]+\.py):(\d+)` `(\w+)`", (root / "docs" / "walk.md").read_text(), re.M
    )
    assert [int(number) for number, *_ in stops] == list(range(1, 17))
    for _, file, line, name in stops:
        tree = ast.parse((root / "src" / "tightrope" / file).read_text())
        lines = [
            node.lineno for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        assert any(abs(int(line) - place) <= 60 for place in lines), (file, name, lines)


def test_circles_are_found_whatever_their_length() -> None:
    house = load_tool()
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"d"}}
    assert [sorted(group) for group in house.circles(graph)] == [["a", "b", "c"]]


def test_upward_imports_inside_functions_and_for_types_are_told_apart() -> None:
    house = load_tool()
    text = (
        "from x import a\nif TYPE_CHECKING:\n    import y\ndef f():\n    import z\n    from x.deep import b\n"
    )
    tree = house.ast.parse(text)
    known = {"x", "x.deep", "y", "z"}
    assert house.imports_of(tree, known, False) == {"x"}
    assert house.imports_of(tree, known, False, types=True) == {"x", "y"}
    assert house.imports_of(tree, known, True) == {"z", "x.deep"}
