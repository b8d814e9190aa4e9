"""What has to be believed for each kind of certificate: the modules that checking one loads, in lines."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tightrope_check
from adversary.honest import ALL, Honest

ROOT = Path(tightrope_check.__file__).parents[1]
TABLE = Path(__file__).parents[2] / "docs" / "trust.md"
MOST = {"a": 1550, "the": 2400, "learned:": 2825, "coupled:": 3445, "rates:": 2920}
"""Lines, by the first word of a kind."""

BUDGET = "tightrope_check.budget"
SEARCH = "tightrope_check.search"
NO_PROOF = (BUDGET, SEARCH, "tightrope_check.arrays", "tightrope_check.errors")
"""No proof depends on these: what counts work, searches whose results are used whatever they are, names."""

CHAIN = """ctmc
const double lam;
module m
 s : [0..2] init 0;
 [] s<2 -> lam : (s'=s+1);
 [] s=2 -> 1 : true;
endmodule
label "end" = s=2;
"""
RATES = Honest(
    "kinds/rates", "learn", "chain.prism", CHAIN,
    ("--param", "lam=0.1:2", "--prop", 'P=? [ F<=3 "end" ]'), ("--delta", "0.05"),
    ("--param", "lam=0.1:2", "--at", "lam=0.5", "--episodes", "60", "--time", "10", "--seed", "1"),
)  # fmt: skip

KINDS: dict[str, Honest] = {
    "a value": ALL["point/cost"],
    "a long-run average": ALL["point/average"],
    "a temporal formula": ALL["point/temporal"],
    "the whole domain": ALL["domain/rectangular"],
    "learned: intervals": ALL["walk/events/tied"],
    "learned: polytope": ALL["spread/polytope/rectangular"],
    "learned: L1 balls": ALL["spread/l1/rectangular"],
    "learned: ellipsoid": ALL["spread/ellipsoid/rectangular"],
    "learned: likelihood": ALL["spread/likelihood/rectangular"],
    "learned: slab": ALL["spread/slab/rectangular"],
    "learned: polytope, with costs": ALL["newest/costs"],
    "learned: polytope, of quotients": ALL["walk/polytope/quotients"],
    "learned: a temporal formula, intervals": ALL["remembered/tied"],
    "learned: a temporal formula, likelihood": ALL["remembered/rectangular"],
    "coupled: polytope": ALL["spread/polytope/coupled"],
    "coupled: slab": ALL["spread/slab/coupled"],
    "rates: learned, until a time": RATES,
}

LOADED = """
import json, os, sys
from tightrope_check.checker import check
from tightrope_check.archive import load
for path in sys.argv[1:]:
    if os.fork() == 0:  # what one check loads the next one has not
        valid = check(load(path).certificate).valid
        names = [name for name in sys.modules if name.partition(".")[0].startswith("tightrope")]
        print(json.dumps({"valid": valid, "names": sorted(names)}), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


COMPARED = ("comparison", "verification")
"""What compares a file with the user's own model, property, data and policy."""


@functools.cache
def code_lines(path: Path) -> int:
    """Lines that are neither blank nor a comment nor within a docstring, nor count work: these can only
    refuse."""
    text = path.read_text(encoding="utf-8")
    words: set[int] = set()
    nodes = list(ast.walk(ast.parse(text)))
    counting = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == BUDGET]
    named = {alias.name for node in counting for alias in node.names if alias.name != "WorkBudget"}
    for node in nodes:
        said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        counts = call is not None and isinstance(call.func, ast.Name) and call.func.id in named
        if said or counts or node in counting:
            words |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and line[0] != "#" and number not in words for number, line in enumerate(lines, 1))


def size_of(module: str) -> int:
    path = ROOT.joinpath(*module.split("."))
    return code_lines(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """The modules of tightrope that a fresh process has loaded once it has checked one certificate."""
    files = [str(honest.certificate) for honest in KINDS.values()]
    done = subprocess.run([sys.executable, "-c", LOADED, *files], capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(one["valid"] for one in found)
    return {kind: set(one["names"]) for kind, one in zip(KINDS, found, strict=True)}


def test_each_kind_rests_on_few_lines_and_the_page_says_on_how_many(loaded: dict[str, set[str]]) -> None:
    sizes = {
        kind: sum(size_of(name) for name in names if "." in name and not name.startswith(NO_PROOF))
        for kind, names in loaded.items()
    }
    sources = (ROOT / "tightrope_check").rglob("*.py")
    whole = sum(code_lines(path) for path in sources if path.parent.name != "search")
    compared = sum(size_of(f"tightrope.certify.{name}") for name in COMPARED)
    every = {**sizes, "everything": whole, "any kind, beside your files": compared}
    rows = [f"| {kind} | {size:,} |" for kind, size in every.items()]
    said = re.findall(r"^\| [^|]* \| [0-9,]+ \|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert said == rows, "the table of docs/trust.md should be\n" + "\n".join(rows)
    assert sizes["a value"] <= 1400
    assert {kind: size for kind, size in sizes.items() if size > MOST[kind.split(" ")[0]]} == {}


def test_a_check_loads_nothing_of_tightrope(loaded: dict[str, set[str]]) -> None:
    for kind, names in loaded.items():
        assert {name.partition(".")[0] for name in names} == {"tightrope_check"}, kind
        predicted = "likelihood" in kind or "slab" in kind
        assert predicted or not any(name.startswith(SEARCH) for name in names), kind


def test_what_one_kind_needs_is_not_loaded_for_others(loaded: dict[str, set[str]]) -> None:
    def kinds_with(module: str) -> set[str]:
        return {kind for kind, names in loaded.items() if f"tightrope_check.{module}" in names}

    assert kinds_with("laws") == {kind for kind in KINDS if kind.startswith("a ")}
    assert kinds_with("product") == {kind for kind in KINDS if "temporal" in kind}
    assert kinds_with("special") == {"a long-run average"}
    assert kinds_with("coupled") == {kind for kind in KINDS if kind.startswith("coupled")}
    assert kinds_with("statistics.slab") == {kind for kind in KINDS if "slab" in kind}
    assert kinds_with("statistics.ellipsoid") == {"learned: ellipsoid"}
    assert kinds_with("statistics.balls") == {"learned: L1 balls"}
    assert kinds_with("statistics.costs") == {"learned: polytope, with costs"}
