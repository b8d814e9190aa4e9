"""The PRISM grammar: precedence as in PRISM's manual, exact numbers, positions, and every construct."""

from __future__ import annotations

import runpy
from fractions import Fraction
from pathlib import Path

import pytest
from lark.exceptions import UnexpectedInput

from places import TESTS
from prism_text import parse_expression, shown
from tightrope.errors import InputError
from tightrope.prism.parse import parser
from tightrope.prism.parse.builders import ModelBuilder
from tightrope.prism.parse.parser import NotParsedError, parse_model, parse_properties
from tightrope.prism.parse.property_syntax import (
    PathFormula,
    PathOperator,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)
from tightrope.prism.parse.refusals import load_lark
from tightrope.prism.parse.syntax import (
    Binary,
    Complaint,
    Expression,
    Literal,
    ModelType,
    Module,
    ModuleRenaming,
    Position,
    Type,
    children,
)
from tightrope.prism.parse.tables import path_of

MODELS = TESTS / "models"
TOOL = runpy.run_path(str(TESTS.parent / "tools" / "parser_tables.py"))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a | b & c", "(a | (b & c))"),
        ("!a & b", "((!a) & b)"),
        ("!x=1", "(!(x = 1))"),
        ("!!a", "(!(!a))"),
        ("a => b => c", "((a => b) => c)"),
        ("a <=> b <=> c", "((a <=> b) <=> c)"),
        ("a <=> b => c", "((a <=> b) => c)"),
        ("a => b <=> c", "(a => (b <=> c))"),
        ("a | b <=> c", "((a | b) <=> c)"),
        ("a & b = c", "(a & (b = c))"),
        ("x<2 = a", "((x < 2) = a)"),
        ("x = 1 != a", "((x = 1) != a)"),
        ("x-y-1", "((x - y) - 1)"),
        ("8/2*x", "((8 / 2) * x)"),
        ("-x*y", "((-x) * y)"),
        ("2*-x", "(2 * (-x))"),
        ("x+y*2<z", "((x + (y * 2)) < z)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a => b ? c : d => e", "((a => b) ? c : (d => e))"),
        ("min(x, 2, y)+max(1,x)", "(min(x, 2, y) + max(1, x))"),
        ("(a | b) & c", "((a | b) & c)"),
        ("--x", "(-(-x))"),
        ("pow(x,2)/4>=floor(x/2) & true", "(((pow(x, 2) / 4) >= floor((x / 2))) & true)"),
    ],
)
def test_precedence_and_associativity(text: str, meaning: str) -> None:
    assert shown(parse_expression(text, "test")) == meaning


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("3", 3, Type.INT),
        ("0.1", Fraction(1, 10), Type.DOUBLE),
        (".5", Fraction(1, 2), Type.DOUBLE),
        ("1e-3", Fraction(1, 1000), Type.DOUBLE),
        ("2.5E+2", Fraction(250), Type.DOUBLE),
        ("1e2", Fraction(100), Type.DOUBLE),
        ("true", True, Type.BOOL),
        ("false", False, Type.BOOL),
    ],
)
def test_literals_are_exact(text: str, value: object, type_: Type) -> None:
    parsed = parse_expression(text, "test")
    assert isinstance(parsed, Literal)
    assert parsed.value == value
    assert parsed.type is type_


def test_long_chains_are_balanced_and_keep_their_meaning() -> None:
    names = [f"x{i}" for i in range(1000)]
    chain = parse_expression(" & ".join(names), "test")
    assert shown(chain).replace("(", "").replace(")", "") == " & ".join(names)
    assert depth(chain) <= 24
    signs = ["+" if i % 3 else "-" for i in range(999)]
    text = "1" + "".join(f" {sign} {i + 2}" for i, sign in enumerate(signs))
    total = parse_expression(text, "test")
    assert depth(total) <= 24
    assert value(total) == 1 + sum(i + 2 if sign == "+" else -(i + 2) for i, sign in enumerate(signs))


def depth(expression: Expression) -> int:
    return 1 + max((depth(child) for child in children(expression)), default=0)


def value(expression: Expression) -> int:
    if isinstance(expression, Literal):
        return int(expression.value)
    assert isinstance(expression, Binary)
    left, right = value(expression.left), value(expression.right)
    return left + right if expression.operator == "+" else left - right


MODEL = """\
// a comment
mdp
const int N = 3; const K; const double p; const bool flag = false;
formula busy = x>0;
label "done" = x=N;
global g : bool init true;
module m
  x : [0..N] init 1; // another
  y : bool;
  [go] x<N & !y -> p : (x'=x+1) & (y'=true) + 1-p : true;
  []   y        -> (y'=false);
  [go] false    -> true;
  []   x=2      -> [0.1, 0.3] : (x'=0) + [0.7, 1] : true;
endmodule
module n = m [ x=z, y=w, go=stop ] endmodule
rewards "time" true : 1; [go] y : 2*x; [] true : 0.5; endrewards
rewards x=1 : 3; endrewards
init x=0 & !y endinit
"""


def test_every_part_of_a_model() -> None:
    model = parse_model(MODEL, "m.prism")
    assert model.type is ModelType.MDP
    assert [(c.name, c.type, c.value is None) for c in model.constants] == [
        ("N", Type.INT, False),
        ("K", Type.INT, True),
        ("p", Type.DOUBLE, True),
        ("flag", Type.BOOL, False),
    ]
    assert [(f.name, shown(f.expression)) for f in model.formulas] == [("busy", "(x > 0)")]
    assert [(g.name, g.type) for g in model.globals] == [("g", Type.BOOL)]
    first, second = model.modules
    assert isinstance(first, Module) and isinstance(second, ModuleRenaming)
    assert [v.name for v in first.variables] == ["x", "y"]
    assert [c.action for c in first.commands] == ["go", None, "go", None]
    updates = first.commands[0].updates
    assert [shown(u.probability) for u in updates] == ["p", "(1 - p)"]
    assert [[a.name for a in u.assignments] for u in updates] == [["x", "y"], []]
    assert first.commands[1].updates[0].probability == Literal(1, Type.INT)
    interval = first.commands[3].updates[0]
    assert interval.upper == Literal(Fraction(3, 10), Type.DOUBLE)
    assert (second.base, second.renaming) == ("m", (("x", "z"), ("y", "w"), ("go", "stop")))
    assert [r.name for r in model.rewards] == ["time", None]
    assert [(i.is_choice, i.action) for i in model.rewards[0].items] == [
        (False, None),
        (True, "go"),
        (True, None),
    ]
    assert model.init is not None and shown(model.init) == "((x = 0) & (!y))"


def test_positions_are_those_of_the_file() -> None:
    model = parse_model(MODEL, "m.prism")
    module = model.modules[0]
    assert isinstance(module, Module)
    lines = MODEL.split("\n")
    assert model.constants[2].position == Position(3, lines[2].index("p;") + 1)
    command = module.commands[0]
    assert command.position == Position(10, 3)
    second = getattr(command.updates[1].probability, "position", None)
    assert second == Position(10, lines[9].index("1-p") + 1)
    assert command.updates[0].assignments[1].position == Position(10, lines[9].index("y'=") + 1)


@pytest.mark.parametrize(
    ("keyword", "type_"),
    [
        ("dtmc", ModelType.DTMC),
        ("probabilistic", ModelType.DTMC),
        ("mdp", ModelType.MDP),
        ("nondeterministic", ModelType.MDP),
        ("", ModelType.MDP),
    ],
)
def test_model_types_and_their_old_names(keyword: str, type_: ModelType) -> None:
    assert parse_model(f"module m x:bool; endmodule {keyword}", "m").type is type_


def test_words_of_properties_may_be_names_in_a_model() -> None:
    model = parse_model("dtmc const int W = 2; const int F = 1; module clock x:[F..W]; endmodule", "m")
    assert [c.name for c in model.constants] == ["W", "F"]


PROPERTIES = """\
// what we ask
const int k; const double bound = 0.9;
label "safe" = x<3 | "init";
"reach": Pmaxmin=? [ F "goal" ];
Pmax>=bound [ !"bad" U<=k+1 (x=3) ]
P=? [ X y ]; Pmin=? [ G[2,5] x>0 & y ]
P<0.1 [ a W b ]
R{"cost"}min=? [ F "goal" ]
"steps": R{2}max<=7/2 [ C<=10 ]
Rminmax=? [ C ]
R=? [ C<k ]
"""


def test_property_files() -> None:
    file = parse_properties(PROPERTIES, "a.props")
    assert [c.name for c in file.constants] == ["k", "bound"]
    assert [label.name for label in file.labels] == ["safe"]
    operators = [p.formula for p in file.properties if isinstance(p.formula, ValueOperator)]
    asked = [
        (p.name, o.is_reward, o.reward_name, o.agent, o.nature, o.comparison)
        for p, o in zip(file.properties, operators, strict=True)
    ]
    assert asked == [
        ("reach", False, None, "max", "min", None),
        (None, False, None, "max", None, ">="),
        (None, False, None, None, None, None),
        (None, False, None, "min", None, None),
        (None, False, None, None, None, "<"),
        (None, True, "cost", "min", None, None),
        ("steps", True, "2", "max", None, "<="),
        (None, True, None, "min", "max", None),
        (None, True, None, None, None, None),
    ]
    paths = [operator.path for operator in operators[:5]]
    assert [p.operator for p in paths if isinstance(p, PathFormula)] == [
        PathOperator.EVENTUALLY,
        PathOperator.UNTIL,
        PathOperator.NEXT,
        PathOperator.GLOBALLY,
        PathOperator.WEAK_UNTIL,
    ]
    until = file.properties[1]
    assert until.text == 'Pmax>=bound [ !"bad" U<=k+1 (x=3) ]'
    assert until.position == Position(5, 1)
    rewards = [operator.path for operator in operators[5:]]
    assert [(r.operator, r.bound_strict) for r in rewards if isinstance(r, RewardFormula)] == [
        (RewardOperator.REACH, False),
        (RewardOperator.CUMULATIVE, False),
        (RewardOperator.TOTAL, False),
        (RewardOperator.CUMULATIVE, True),
    ]


@pytest.mark.parametrize(
    ("bound", "lower", "upper", "strict"),
    [
        ("<=5", None, "5", (False, False)),
        ("<5", None, "5", (False, True)),
        (">=k", "k", None, (False, False)),
        (">k", "k", None, (True, False)),
        ("=3", "3", "3", (False, False)),
        ("[k,2*k]", "k", "(2 * k)", (False, False)),
        ("<=(k+1)", None, "(k + 1)", (False, False)),
        ("<=k", None, "k", (False, False)),
    ],
)
def test_step_bounds(bound: str, lower: str | None, upper: str | None, strict: tuple[bool, bool]) -> None:
    operator = parse_properties(f"P=? [ F{bound} (x=1) ]", "p").properties[0].formula
    assert isinstance(operator, ValueOperator)
    path = operator.path
    assert isinstance(path, PathFormula) and path.bound is not None
    ends = [None if end is None else shown(end) for end in (path.bound.lower, path.bound.upper)]
    assert ends == [lower, upper]
    assert (path.bound.lower_strict, path.bound.upper_strict) == strict
    assert shown(path.right) == "(x = 1)"


def test_errors_show_place_line_and_hint() -> None:
    with pytest.raises(InputError) as caught:
        parse_model("mdp\nconst int N = 3\nmodule m endmodule", "m.prism")
    assert str(caught.value) == (
        "m.prism:3:1: unexpected 'module'\n    module m endmodule\n    ^\nhint: is a ';' missing before it?"
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.prism")), ids=lambda path: path.stem)
def test_the_tables_read_what_lark_reads(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    try:
        expected = TOOL["read_by_lark"]("model", ModelBuilder(), text)
    except (UnexpectedInput, Complaint):
        with pytest.raises((NotParsedError, Complaint)):
            parser._parser("model").parse(text)
        return
    assert repr(parser._parser("model").parse(text)) == repr(expected)


@pytest.mark.parametrize("start", TOOL["STARTS"])
def test_the_tables_are_those_of_the_grammar(start: str) -> None:
    """Else: `make schemas`."""
    assert path_of(start).read_text("utf-8") == TOOL["as_text"](TOOL["compute_tables"](start))


def test_the_tables_leave_wrong_texts_to_lark() -> None:
    for text in ("mdp module m", "mdp module m x : [0..1; endmodule", "mdp § module", "mdp endmodule"):
        with pytest.raises(NotParsedError):
            parser._parser("model").parse(text)


def test_the_parser_that_says_what_is_wrong_is_made_once() -> None:
    """It takes a third of a second, and every wrong text had one of its own, which stayed."""
    made = []
    for text in ("mdp module", "mdp endmodule", "dtmc ("):
        with pytest.raises(InputError):
            parse_model(text, "wrong.prism")
        made.append(load_lark.cache_info().misses)
    assert made[0] == made[-1]
