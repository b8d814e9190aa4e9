"""The measures of the house (`tools/house.py`) only improve."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
from functools import cache
from pathlib import Path
from types import ModuleType

from places import TESTS

ROOT = TESTS.parent
TOOL = ROOT / "tools" / "house.py"
SOURCE = ROOT / "src" / "tightrope"
CAMPAIGNS = ROOT / "campaigns" / "src" / "tightrope_campaigns"
MODULES = sorted(SOURCE.rglob("*.py")) + sorted(CAMPAIGNS.rglob("*.py"))


@cache
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
    assert worse == {}, "the house grew: merge or delete something"
    assert set(measured) <= set(house.GOALS)
    budgets = sum(house.GOALS[f"lines of {package}"] for package in house.PACKAGES)
    assert budgets <= house.GOALS["lines"] == 111_600
    assert sum(measured[f"lines of {package}"] for package in house.PACKAGES) == measured["lines"]


def test_tokens_are_those_of_python_without_comments_and_docstrings() -> None:
    house = load_tool()
    text = (
        '"""Module."""\nimport os  # a "comment"\n\n\nclass A:\n    """Class."""\n\n    x: int = 0x1F\n'
        '    """Of x."""\n    y = 1.5e-3 ** -.5 // 2 != len(r\'it\\\'s\' "#") and {...: a[1:]} @ b\n'
        "    z: Any = lambda *, k: k\n"
    )
    tokens = house.tokens_of(text, ast.parse(text))
    kinds = {tokenize.NAME, tokenize.OP, tokenize.STRING, tokenize.NUMBER}
    expected = [
        each.string for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type in kinds
    ]
    assert house.every_token(text) == expected
    assert len(tokens) == len(expected) - 3 and tokens.count("Any") == 1


def test_imports_inside_functions_close_circles() -> None:
    house = load_tool()
    known = {"a", "b"}
    one, other = ast.parse("import b"), ast.parse("def f():\n    if x:\n        import a")
    top = {"a": house.imports_of(one, known, False), "b": house.imports_of(other, known, False)}
    assert house.circles(top) == []
    inner = {"a": set(), "b": house.imports_of(other, known, True)}
    assert len(house.circles({name: top[name] | inner[name] for name in known})) == 1


def test_the_walk_names_functions_where_they_are() -> None:
    root = TOOL.parents[1]
    stops = re.findall(
        r"^\| (\d+) \| `([\w/]+\.py):(\d+)` `(\w+)`", (root / "ARCHITECTURE.md").read_text(), re.M
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


def test_upward_imports_inside_functions_and_for_types_are_distinguished() -> None:
    house = load_tool()
    text = (
        "from x import a\nif TYPE_CHECKING:\n    import y\ndef f():\n    import z\n    from x.deep import b\n"
    )
    tree = house.ast.parse(text)
    known = {"x", "x.deep", "y", "z"}
    assert house.imports_of(tree, known, False) == {"x"}
    assert house.imports_of(tree, known, False, types=True) == {"x", "y"}
    assert house.imports_of(tree, known, True) == {"z", "x.deep"}


def test_every_module_says_what_it_is_for() -> None:
    tree_of = load_tool().tree_of
    silent = [str(path) for path in MODULES if ast.get_docstring(tree_of(path)) is None]
    assert silent == []


def test_docstrings_name_modules_and_functions_that_exist() -> None:
    house = load_tool()
    trees = {name.removeprefix("tightrope."): tree for name, tree in house.modules().items()}
    packages = {name.partition(".")[0] for name in trees} - {"tightrope"}

    def exists(reference: str) -> bool:
        parts = reference.split(".")
        known = next(k for k in range(len(parts), -1, -1) if k == 0 or ".".join(parts[:k]) in trees)
        text = (SOURCE / Path(*parts[:known])).with_suffix(".py")
        inside = text if text.exists() else SOURCE / Path(*parts[:known]) / "__init__.py"
        return known > 0 and all(re.search(rf"\b{part}\b", inside.read_text()) for part in parts[known:])

    dead = set()
    for path in sorted(SOURCE.rglob("*.py")):
        for prefix, reference in re.findall(r"`(tightrope\.)?([a-z_]+(?:\.[A-Za-z_]+)+)`", path.read_text()):
            is_ours = reference.partition(".")[0] in packages and (prefix or reference.count(".") > 1)
            if is_ours and not exists(reference):
                dead.add((path.relative_to(SOURCE).as_posix(), reference))
    assert dead == set()


MOST_PARAMETERS = 8

MORE_PARAMETERS: dict[str, str] = {}
"""Files and functions that take more than `MOST_PARAMETERS`, and why."""


def test_functions_take_few_parameters() -> None:
    house = load_tool()
    many, public = set(), set()
    for path in MODULES:
        for node in house.statements_of(house.tree_of(path)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if len(house.parameters_of(node)) <= MOST_PARAMETERS:
                continue
            positional = [*node.args.posonlyargs, *node.args.args]
            file = path.relative_to(SOURCE if SOURCE in path.parents else CAMPAIGNS.parent).as_posix()
            many.add(file if file in MORE_PARAMETERS else f"{file}: {node.name}")
            if MORE_PARAMETERS.get(f"{file}: {node.name}", "").startswith("options"):
                public.add((f"{file}: {node.name}", len(positional) <= MOST_PARAMETERS))
    assert many - set(MORE_PARAMETERS) == set(), "what travels together goes into one record"
    assert set(MORE_PARAMETERS) - many == set(), "exceptions that are none any more"
    assert all(by_keyword for _, by_keyword in public)


def test_inlined_kernels_hand_no_array_back() -> None:
    """They count no references to arrays (`numerics.jit.inlined`)."""
    house = load_tool()
    returned = {
        node.name: ast.unparse(node.returns)
        for path in MODULES
        for node in house.statements_of(house.tree_of(path))
        if isinstance(node, ast.FunctionDef) and node.returns is not None
        if any(getattr(decorator, "id", "") == "inlined" for decorator in node.decorator_list)
    }
    assert len(returned) > 15
    assert {name for name, kind in returned.items() if set(re.findall(r"\w+", kind)) - HELD} == set()


HELD = {"None", "bool", "int", "float", "tuple", "np", "uint64"}


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
    house = load_tool()
    found: set[str] = set()
    for node in house.statements_of(house.tree_of(path), for_checkers=False):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found
