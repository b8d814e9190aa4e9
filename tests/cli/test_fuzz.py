"""Whatever is typed behind an option, the answer is a result or a message, never an internal error."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from effort import CHARACTERS
from tightrope.cli.app import run

MODEL = """\
mdp
const int n;
const double p;
const double q;
module walk
  x : [0..n] init 1;
  [left] x=1 -> p : (x'=x-1) + 1-p : (x'=x+1);
  [right] x=1 -> p*q : (x'=x+1) + 1-p*q : (x'=x-1);
  [] x!=1 -> true;
endmodule
"""

NAMES = ["n", "p", "q", "x", "true", "é", "θ"]
NUMBERS = ["0", "1", "3", "0.5", "1e-3", "1e999999999", "-1", ".", "∞"]
SIGNS = [
    "=",
    "<=",
    ">=",
    "<",
    ":",
    ",",
    "+",
    "-",
    "*",
    "/",
    "(",
    ")",
    "'",
    '"',
    "[",
    "]",
    " ",
    "\n",
    "\t",
    "\x00",
]
PIECES = [*NAMES, *NUMBERS, *SIGNS]
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.text(CHARACTERS, max_size=12)
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz") / "walk.prism"
    path.write_text(MODEL)
    return path


def exit_code(*arguments: str) -> int:
    """The exit code; in case of an internal error its message is the test's."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["info", *arguments, "--json"])
    assert code in (0, 2), err.getvalue()
    assert (code == 0) == (out.getvalue() != "")
    assert code == 0 or "error: " in err.getvalue()
    return code


@given(constant=texts)
@example(constant="3")
@example(constant="-1")
@example(constant="9" * 5000)
def test_any_constant(constant: str, model: Path) -> None:
    assert exit_code(str(model), f"--const=n={constant}") in (0, 2)


@given(box=texts)
@example(box="p=0:1,q=1/3:1")
@example(box="p=1/0:1")
@example(box="p=" + "(" * 2000)
def test_any_box(box: str, model: Path) -> None:
    assert exit_code(str(model), "--const=n=3", f"--param={box}") in (0, 2)


@given(domain=texts)
@example(domain="0.1<=p<=0.9, p+q<=1")
@example(domain="p<=1/0")
@example(domain="-" * 3000 + "p<=1")
@example(domain="0<=1e999999999*p")
def test_any_domain(domain: str, model: Path) -> None:
    assert exit_code(str(model), "--const=n=3", f"--domain={domain}") in (0, 2)


@given(source=st.one_of(texts, texts.map("bench:betting(3,{})".format), texts.map("bench:{}".format)))
@example(source="bench:betting(999999999999)")
@example(source="a" * 5000)
@example(source="nul\x00byte.prism")
@example(source="nul\x00byte")
def test_any_source(source: str) -> None:
    assert exit_code("--", source) in (0, 2)
