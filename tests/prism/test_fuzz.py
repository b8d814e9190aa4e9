"""No text makes the PRISM front end fail in any way but an `InputError`.

Three sources: models and properties grown from the language's own constructs (most of them wrong in
some way), the test models with tokens deleted, doubled, swapped or replaced, and arbitrary characters.
`HYPOTHESIS_PROFILE=explore` searches longer, with fresh examples.
"""

from __future__ import annotations

import re
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from effort import CHARACTERS, FUZZED
from places import TESTS
from prism_text import parse_expression
from tightrope.errors import InputError
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.expand.constants import parse_value
from tightrope.prism.expand.expressions import Value, fold, literal, value_of
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program
from tightrope.prism.explore.compile import evaluate
from tightrope.prism.explore.search import explore_until
from tightrope.prism.parse.parser import parse_model, parse_properties
from tightrope.prism.parse.syntax import Complaint, Type
from tightrope.prism.properties.query import read_query
from tightrope.prism.properties.resolve import PropertyOptions

MOST_STATES = 2000
"""Larger state spaces are not explored here."""


def build(text: str) -> bool:
    """Whether the text is a model; explores it if it is small."""
    try:
        program = expand(parse_model(text, "fuzz.prism"))
        if is_small(program):
            explore_until(program, None)
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

Text = st.SearchStrategy[str]
OPERATORS = ["+", "-", "*", "/", "<", "<=", ">", ">=", "=", "!=", "&", "|", "=>", "<=>"]
FUNCTIONS = ["min", "max", "floor", "ceil", "round", "pow", "mod", "log"]


def filled(template: str, *holes: Text) -> Text:
    """The template with `{}` filled from the strategies."""
    return st.tuples(*holes).map(lambda parts: template.format(*parts))


def any_compound(inner: Text) -> Text:
    """Operators and functions on whatever there is, mostly of the wrong types."""
    return st.one_of(
        filled("({} {} {})", inner, st.sampled_from(OPERATORS), inner),
        filled("{}{}{}", inner, st.sampled_from(OPERATORS), inner),
        filled("{}{}", st.sampled_from("-!"), inner),
        filled("({} ? {} : {})", inner, inner, inner),
        filled("{}({},{})", st.sampled_from(FUNCTIONS), inner, inner),
        filled("{}({})", st.sampled_from(FUNCTIONS), inner),
    )


ATOMS = st.sampled_from(
    ["x", "y", "b", "c", "N", "p", "q", "f", "g", "undeclared", "0", "1", "2", "-1", "0.5", "1e-2", "true"]
)
EXPRESSIONS = st.recursive(ATOMS, any_compound, max_leaves=6)


def typed(levels: int) -> tuple[Text, Text, Text]:
    """Ints, reals and bools of the right types, nested a few levels deep."""
    if levels == 0:
        return (
            st.sampled_from(["x", "y", "N", "g", "0", "1", "2", "-3", "7"]),
            st.sampled_from(["0.5", "1/3", "x/2", "N/4", "0.0", "y", "1.5"]),
            st.sampled_from(["b", "c", "true", "x<2", "y=x", "f", "x!=N"]),
        )
    ints, reals, bools = typed(levels - 1)
    more_ints = st.one_of(
        ints,
        filled("({}{}{})", ints, st.sampled_from("+-*"), ints),
        filled("{}({},{})", st.sampled_from(["min", "max", "mod", "pow"]), ints, ints),
        filled("{}({})", st.sampled_from(["floor", "ceil", "round"]), reals),
        filled("({} ? {} : {})", bools, ints, ints),
        filled("-{}", ints),
    )
    more_reals = st.one_of(
        reals,
        filled("({}{}{})", reals, st.sampled_from("+-*/"), ints),
        filled("{}({},{})", st.sampled_from(["min", "max", "pow", "log"]), reals, ints),
        filled("({} ? {} : {})", bools, reals, ints),
    )
    more_bools = st.one_of(
        bools,
        filled("({}{}{})", reals, st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), ints),
        filled("({}{}{})", bools, st.sampled_from(["&", "|", "=>", "<=>", "=", "!="]), bools),
        filled("(!{})", bools),
        filled("({} ? {} : {})", bools, bools, bools),
    )
    return more_ints, more_reals, more_bools


INTS, REALS, BOOLS = typed(2)
PAIRS = {
    "parametric": ["p {} 1-p", "p*q {} 1-p*q", "p/2 {} 1-p/2", "pow(p,x) {} 1-pow(p,x)", "x/3 {} 1-x/3"],
    "interval": ["[0.1,0.6] {} [0.4,0.9]", "[x/4,1] {} [0,1]", "0.5 {} [0.5,1/2]", "[1/3,1/3] {} 2/3"],
}


@st.composite
def commands(draw: st.DrawFn, kind: str, variable: str, flag: str) -> str:
    """A command of a module with an int and a bool variable."""

    def update() -> str:
        value = draw(INTS)
        value = draw(st.sampled_from([f"min(3,max(0,{value}))", f"mod({value},4)", value]))
        assignments = [f"({variable}'={value})", f"({flag}'={draw(BOOLS)})", "true"]
        return draw(st.sampled_from([*assignments, " & ".join(assignments[:2])]))

    head = f"[{draw(st.sampled_from(['', '', 'a', 'd']))}] {draw(BOOLS)} -> "
    if draw(st.booleans()):
        return f"{head}{update()};"
    first, second = draw(st.sampled_from(PAIRS[kind])).split(" {} ")
    return f"{head}{first} : {update()} + {second} : {update()};"


@st.composite
def models(draw: st.DrawFn) -> str:
    """Two modules over x, y, b, c with constants, formulas, labels and rewards."""
    kind = draw(st.sampled_from(["parametric", "parametric", "interval"]))
    has_init = draw(st.integers(0, 4)) == 0
    start = "" if has_init else "init 1"
    first = " ".join(draw(st.lists(commands(kind, "x", "b"), min_size=1, max_size=3)))
    second = " ".join(draw(st.lists(commands(kind, "y", "c"), max_size=2)))
    parts = [
        draw(st.sampled_from(["mdp", "dtmc"])),
        f"const int N = {draw(st.sampled_from(['2', '3', '-1', 'K+1', 'pow(K,2)']))}; const int K = 2;",
        "const double p; const double q = 1-p/2;",
        f"formula f = {draw(st.sampled_from(['x<2', 'b & g>1', 'true', 'c <=> x=y']))};",
        f"formula g = {draw(st.sampled_from(['x+1', 'min(x,y)', 'N', 'floor(x/2)*K']))};",
        f"module m x:[0..3] {start}; b:bool; {first} endmodule",
        draw(
            st.sampled_from(
                ["module n = m [x=y, b=c] endmodule"] * 2 + ["module n = m [x=y,b=c,y=x] endmodule"]
            )
        )
        if draw(st.booleans())
        else f"module n y:[-1..3]; c:bool; {second} endmodule",
        f'label "l" = {draw(BOOLS)};',
        f'rewards "r" {draw(BOOLS)} : {draw(REALS)}; [] {draw(BOOLS)} : {draw(INTS)}; endrewards',
        f"init {draw(BOOLS)} & x=0 & y=0 & !b & !c endinit" if has_init else "",
    ]
    return "\n".join(parts)


@FUZZED
@given(models())
def test_grown_models(text: str) -> None:
    build(text)


@FUZZED
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
MODELS = TESTS / "models"
SOURCES = [
    (MODELS / name).read_text(encoding="utf-8").replace("const int START;", "const int START = 0;")
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


def alike(token: str) -> int:
    """Tokens of one class are exchanged most easily without breaking the grammar."""
    return next(
        i for i, kind in enumerate((r"\s|//", r"[A-Za-z_]\w*$", r"\d", ".", "")) if re.match(kind, token)
    )


@st.composite
def mutations(draw: st.DrawFn, sources: list[str]) -> str:
    """A text with up to three tokens deleted, doubled, swapped or replaced."""
    tokens = TOKEN.findall(draw(st.sampled_from(sources)))
    solid = [place for place, token in enumerate(tokens) if alike(token)]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(solid))
        kind = draw(st.sampled_from(["delete", "double", "swap", "copy", "copy", "copy", "stray"]))
        other = draw(st.sampled_from([p for p in solid if alike(tokens[p]) == alike(tokens[place])] or solid))
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


@FUZZED
@given(mutations(SOURCES))
def test_mutated_models(text: str) -> None:
    build(text)


def answer(text: str) -> None:
    try:
        file = parse_properties(text, "fuzz.props")
        for property_ in file.properties:
            read_query(property_, file, STRUCTURE, PropertyOptions(constants={"u": "0.7"}))
    except InputError as error:
        assert error.exit_code == 2
        assert str(error)


@FUZZED
@given(mutations([QUESTIONS]))
def test_mutated_properties(text: str) -> None:
    answer(text)


@FUZZED
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


@FUZZED
@given(
    st.text(CHARACTERS) | st.text(alphabet="mdp module[]()';:=<>&|!+-*/.,?0123xyPRFGUXWC{}\"\n", max_size=60)
)
def test_arbitrary_text(text: str) -> None:
    assert not build(text)
    answer(text)
    try:
        parse_expression(text, "fuzz")
    except InputError as error:
        assert str(error)
    for type_ in Type:
        parse_value(text, type_)


# --- two evaluators --------------------------------------------------------------------------------------

STATES = [
    (x, y, b, c) for x in range(-2, 4) for y in (-1, 0, 3) for b in (False, True) for c in (False, True)
]
COLUMNS = {
    name: np.array([state[i] for state in STATES], dtype=np.bool_ if name in "bc" else np.int64)
    for i, name in enumerate("xybc")
}
KNOWN = "const int N = 3; const double p = 0.5; formula f = x<y; formula g = y-1;"


@FUZZED
@given(st.one_of(INTS, REALS, BOOLS))
def test_one_state_at_a_time_and_all_at_once_agree(text: str) -> None:
    """Constants are folded by one evaluator, states by another: same values, same failures."""
    try:
        written = expand(
            parse_model(
                f"mdp {KNOWN} formula it = {text}; module m x:[-2..3]; y:[-1..3]; b:bool; c:bool; endmodule",
                "m",
            )
        ).formulas["it"]
    except InputError:
        return
    expected: list[Value | None] = []
    for state in STATES:
        named = {name: literal(value, None) for name, value in zip("xybc", state, strict=True)}
        try:
            expected.append(value_of(fold(written, named)))
        except Complaint:
            expected.append(None)
    try:
        values = evaluate(written, COLUMNS, len(STATES))
    except Complaint:
        assert None in expected
        return
    found = values.to_fractions() if isinstance(values, RationalArray) else values.tolist()
    assert found == expected
