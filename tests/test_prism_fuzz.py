"""No text makes the PRISM front end fail in any way but an `InputError`.

Three sources: models and properties grown from the language's own constructs (most of them wrong in
some way), the test models with tokens deleted, doubled, swapped or replaced, and arbitrary characters.
`HYPOTHESIS_PROFILE=explore` searches longer, with fresh examples.
"""

from __future__ import annotations

import re
from math import prod
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import InputError
from tightrope.model.structure import RewardStructure, Structure
from tightrope.prism.constants import parse_value
from tightrope.prism.expand import expand
from tightrope.prism.explore import explore
from tightrope.prism.parser import parse_expression, parse_model, parse_properties
from tightrope.prism.program import Program
from tightrope.prism.properties import PropertyOptions, resolve
from tightrope.prism.syntax import Type

MOST_STATES = 2000
"""Larger state spaces are not explored here."""


def build(text: str) -> bool:
    """Whether the text is a model; explores it if it is small."""
    try:
        program = expand(parse_model(text, "fuzz.prism"), {})
        if is_small(program):
            explore(program)
    except InputError as error:
        assert error.exit_code == 2
        assert str(error)
        return False
    return True


def is_small(program: Program) -> bool:
    states = prod(variable.high - variable.low + 1 for variable in program.variables)
    commands = sum(len(module.commands) for module in program.modules)
    return states <= MOST_STATES and commands <= 60


# --- grown from the language -----------------------------------------------------------------------

NAMES = st.sampled_from(["x", "y", "b", "c", "N", "p", "q", "f", "g", "undeclared"])
NUMBERS = st.sampled_from(["0", "1", "2", "3", "-1", "0.5", "1/3", "1e-2", "0.0", "7", "100000000000"])
ATOMS = NAMES | NUMBERS | st.sampled_from(["true", "false"])
OPERATORS = ["+", "-", "*", "/", "<", "<=", ">", ">=", "=", "!=", "&", "|", "=>", "<=>"]
FUNCTIONS = ["min", "max", "floor", "ceil", "round", "pow", "mod", "log"]


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(lambda t: f"{t[0]}{t[1]}{t[2]}"),
        st.tuples(st.sampled_from("-!"), inner).map("".join),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})"),
        st.tuples(st.sampled_from(FUNCTIONS), inner, inner).map(lambda t: f"{t[0]}({t[1]},{t[2]})"),
        st.tuples(st.sampled_from(FUNCTIONS), inner).map(lambda t: f"{t[0]}({t[1]})"),
    )


EXPRESSIONS = st.recursive(ATOMS, compound, max_leaves=6)
CONDITIONS = st.sampled_from(["true", "x<3", "b", "x=y", "!b | x>1", "f", "mod(x,2)=0"]) | EXPRESSIONS
INTEGERS = st.sampled_from(["x", "0", "1", "min(x+1,3)", "y", "N", "3-x", "floor(x/2)"]) | EXPRESSIONS
PROBABILITIES = st.sampled_from(
    ["p", "1-p", "0.5", "1/2", "p*q", "1-p*q", "[0.1,0.6]", "[0.4,0.9]", "x/3", "1-x/3", "pow(p,x)"]
)
ASSIGNMENTS = st.one_of(
    st.tuples(st.sampled_from(["x", "y"]), INTEGERS).map(lambda t: f"({t[0]}'={t[1]})"),
    st.tuples(st.sampled_from(["b", "c"]), CONDITIONS).map(lambda t: f"({t[0]}'={t[1]})"),
)
UPDATES = st.lists(ASSIGNMENTS, min_size=1, max_size=2).map(" & ".join) | st.just("true")
SUMS = st.one_of(
    UPDATES,
    st.tuples(PROBABILITIES, UPDATES, PROBABILITIES, UPDATES).map(
        lambda t: f"{t[0]} : {t[1]} + {t[2]} : {t[3]}"
    ),
    st.tuples(UPDATES, UPDATES).map(lambda t: f"p : {t[0]} + 1-p : {t[1]}"),
)
ACTIONS = st.sampled_from(["", "", "a", "d"])
COMMANDS = st.tuples(ACTIONS, CONDITIONS, SUMS).map(lambda t: f"[{t[0]}] {t[1]} -> {t[2]};")


@st.composite
def models(draw: st.DrawFn) -> str:
    """Two modules over x, y, b, c with constants, formulas, labels and rewards."""
    first = " ".join(draw(st.lists(COMMANDS, max_size=3)))
    parts = [
        draw(st.sampled_from(["mdp", "dtmc"])),
        draw(st.sampled_from(["const int N = 2;", "const int N;", f"const int N = {draw(INTEGERS)};"])),
        "const double p; const double q = 1-p/2;",
        f"formula f = {draw(CONDITIONS)};",
        f"formula g = {draw(INTEGERS)};",
        f"module m x:[0..{draw(st.sampled_from(['3', 'N', '2*N']))}] init {draw(st.sampled_from('01'))};"
        f" b:bool; {first} endmodule",
        draw(
            st.sampled_from(
                [
                    "module n = m [x=y, b=c, a=d] endmodule",
                    "module n = m [x=y, b=c] endmodule",
                    "module n y:[0..2]; c:bool; [a] y<2 -> (y'=y+1); [a] c -> true; endmodule",
                    "module n y:[-1..1]; c:bool; endmodule",
                ]
            )
        ),
    ]
    if draw(st.booleans()):
        parts.append(f'label "l" = {draw(CONDITIONS)};')
    if draw(st.booleans()):
        parts.append(
            f'rewards "r" {draw(CONDITIONS)} : {draw(INTEGERS)}; [a] true : {draw(INTEGERS)}; endrewards'
        )
    if draw(st.integers(0, 5)) == 0:
        parts.append(f"init {draw(CONDITIONS)} & x=0 & y=0 & !b & !c endinit")
    return "\n".join(parts)


@given(models())
def test_grown_models(text: str) -> None:
    build(text)


@given(EXPRESSIONS, st.sampled_from(["guard", "update", "probability", "range", "reward", "constant"]))
def test_grown_expressions(expression: str, place: str) -> None:
    holes = {"guard": "true", "update": "x", "probability": "1", "range": "3", "reward": "1", "constant": "2"}
    holes[place] = expression
    build(
        f"""mdp const int N = {holes["constant"]}; const double p; const double q;
        formula f = b; formula g = x+1;
        module m x:[0..{holes["range"]}]; b:bool;
        [] {holes["guard"]} -> {holes["probability"]} : (x'={holes["update"]}); endmodule
        module n y:[0..2]; c:bool; endmodule
        rewards true : {holes["reward"]}; endrewards"""
    )


# --- mutated -----------------------------------------------------------------------------------------

TOKEN = re.compile(r'"[^"\n]*"|[A-Za-z_]\w*\'?|\d+(?:\.\d+)?|\.\.|->|<=>|<=|>=|!=|=>|\s+|//[^\n]*|.')
STRAY = [
    "(",
    ")",
    "[",
    "]",
    ";",
    ":",
    "'",
    '"',
    "->",
    "..",
    "x",
    "mdp",
    "init",
    "endmodule",
    "0",
    "1",
    "-",
    "/",
    "é",
]
MODELS = Path(__file__).parent / "models"
SOURCES = [
    (MODELS / name).read_text(encoding="utf-8")
    for name in (
        "biased_die.prism",
        "functions.prism",
        "interval_chain.prism",
        "init_block.prism",
        "merging.prism",
    )
]
STRUCTURE = Structure(
    choice_start=np.arange(5),
    transition_start=np.arange(5),
    successor=np.array([1, 2, 3, 3], dtype=np.int32),
    labels={"goal": np.array([False, False, False, True])},
    rewards={"r": RewardStructure(state=np.ones(4)), "s": RewardStructure(choice=np.ones(4))},
    valuations={"x": np.arange(4, dtype=np.int32), "b": np.array([True, False, True, False])},
)
QUESTIONS = """const int k = 3; const double u; label "near" = x>1 | "goal";
"one": Pmax=? [ x<2 U<=k "goal" ]; Pminmax=? [ G[1,k+1] !("near" & b) ] P>=u/2 [ X x=1 ]
R{"r"}min=? [ F "goal" ]; R{2}<=3.5 [ C<=2*k ] Rmax=? [ C ] P<1 [ b W (x=3) ] Pmax=? [ F>k mod(x,2)=0 ]
"""


@st.composite
def mutations(draw: st.DrawFn, sources: list[str]) -> str:
    """A text with up to four tokens deleted, doubled, swapped or replaced."""
    tokens = TOKEN.findall(draw(st.sampled_from(sources)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(tokens) - 1))
        other = draw(st.integers(0, len(tokens) - 1))
        kind = draw(st.sampled_from(["delete", "double", "swap", "copy", "stray"]))
        if kind == "delete":
            tokens[place] = ""
        elif kind == "double":
            tokens[place] *= 2
        elif kind == "swap":
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif kind == "copy":
            tokens[place] = tokens[other]
        else:
            tokens[place] = draw(st.sampled_from(STRAY))
    return "".join(tokens)


@given(mutations(SOURCES))
def test_mutated_models(text: str) -> None:
    build(text)


def answer(text: str) -> None:
    try:
        file = parse_properties(text, "fuzz.props")
        for property_ in file.properties:
            resolve(property_, file, STRUCTURE, PropertyOptions(constants={"u": "0.7"}))
    except InputError as error:
        assert error.exit_code == 2
        assert str(error)


@given(mutations([QUESTIONS]))
def test_mutated_properties(text: str) -> None:
    answer(text)


@given(
    st.sampled_from(["P=?", "Pmax=?", "P>=0.5", "Pmin<{}", "R=?", 'R{{"r"}}max=?', "R>{}"]),
    st.sampled_from(
        ["F {}", "G<={} {}", "{} U[{},{}] {}", "X {}", "{} W {}", "C<={}", "C", "F>{} {}", "F=k {}"]
    ),
    st.lists(EXPRESSIONS, min_size=5, max_size=5),
)
def test_grown_properties(operator: str, path: str, holes: list[str]) -> None:
    answer(f"const int k = 2; {operator.format(holes[4])} [ {path.format(*holes)} ]")


# --- arbitrary -----------------------------------------------------------------------------------------


@given(st.text() | st.text(alphabet="mdp module[]()';:=<>&|!+-*/.,?0123xyPRFGUXWC{}\"\n", max_size=60))
def test_arbitrary_text(text: str) -> None:
    assert not build(text)
    answer(text)
    try:
        parse_expression(text, "fuzz")
    except InputError as error:
        assert str(error)
    for type_ in Type:
        parse_value(text, type_)
