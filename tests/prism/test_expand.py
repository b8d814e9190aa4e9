"""Expansion: constants, formulas, renamings, folding, parameters and the initial state."""

from __future__ import annotations

from fractions import Fraction

import pytest

from prism_text import parse_expression, shown
from tightrope.errors import InputError
from tightrope.prism.expand.constants import parse_value
from tightrope.prism.expand.expressions import Value, fold, value_of
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.parser import parse_model
from tightrope.prism.parse.syntax import Literal, ModelType, Type


def program(text: str, **constants: str) -> Program:
    return expand(parse_model(text, "m.prism"), constants)


def constant(text: str) -> Value:
    return value_of(fold(parse_expression(text, "test"), {}))


# --- values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1+0.2=0.3", True),
        ("7/2", Fraction(7, 2)),
        ("4/2", Fraction(2)),
        ("mod(-7,3)", 2),
        ("mod(7,3)", 1),
        ("floor(-1/2)", -1),
        ("ceil(-1/2)", 0),
        ("round(2.5)", 3),
        ("round(-2.5)", -2),
        ("round(1/3)", 0),
        ("pow(2,10)", 1024),
        ("pow(0,0)", 1),
        ("pow(2.0,-2)", Fraction(1, 4)),
        ("pow(4,0.5)", Fraction(2)),
        ("pow(9/4,1.5)", Fraction(27, 8)),
        ("log(8,2)", Fraction(3)),
        ("log(1/1000,10)", Fraction(-3)),
        ("log(8,4)", Fraction(3, 2)),
        ("min(3,1,2)", 1),
        ("max(3,1.5)", Fraction(3)),
        ("1-2-3", -4),
        ("24/4/2", Fraction(3)),
        ("true => false", False),
        ("false => 1/0>1", True),
        ("true | 1/0>1", True),
        ("false & 1/0>1", False),
        ("true <=> 1<2", True),
        ("true = (1>2)", False),
        ("1!=1.0", False),
        ("1>2 ? 1/0 : 5", 5),
        ("-(2)*3", -6),
        ("!(1=1)", False),
    ],
)
def test_arithmetic_is_exact_and_prisms(text: str, value: Value) -> None:
    result = constant(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("50", Type.INT, 50),
        ("-3", Type.INT, -3),
        ("0.1", Type.DOUBLE, Fraction(1, 10)),
        ("1/3", Type.DOUBLE, Fraction(1, 3)),
        ("1e-3", Type.DOUBLE, Fraction(1, 1000)),
        ("-.5", Type.DOUBLE, Fraction(-1, 2)),
        ("2", Type.DOUBLE, Fraction(2)),
        ("true", Type.BOOL, True),
        ("0.5", Type.INT, None),
        ("1/0", Type.DOUBLE, None),
        ("1", Type.BOOL, None),
        ("x", Type.DOUBLE, None),
        ("", Type.INT, None),
        ("1e99999", Type.DOUBLE, None),
        ("9" * 5000, Type.INT, None),
    ],
)
def test_values_given_as_text(text: str, type_: Type, value: Value | None) -> None:
    assert parse_value(text, type_) == value


# --- constants and parameters ----------------------------------------------------------------


def test_constants_refer_to_each_other_in_any_order() -> None:
    built = program(
        """mdp const int a = b+1; const int b = 2*c; const int c; const double d = a; const bool e = a>b;
        module m x:[0..a] init b; endmodule""",
        c="3",
    )
    assert dict(built.constants) == {"a": 7, "b": 6, "c": 3, "d": Fraction(7), "e": True}
    assert isinstance(built.constants["d"], Fraction)
    assert [(v.name, v.low, v.high, v.initial) for v in built.variables] == [("x", 0, 7, 6)]


def test_undefined_doubles_are_parameters_in_their_order() -> None:
    text = (
        "mdp const double q; const double p; module m x:bool; [] x -> p : true + 1-p : (x'=false); endmodule"
    )
    assert program(text).parameters == ("q", "p")
    built = program(text, p="1/3")
    assert built.parameters == ("q",)
    assert [u.probability for u in built.modules[0].commands[0].updates] == [
        Literal(Fraction(1, 3), Type.DOUBLE),
        Literal(Fraction(2, 3), Type.DOUBLE),
    ]


def test_constants_of_parameters_are_written_out() -> None:
    built = program(
        """dtmc const double p; const double q = 1-p; const double r = q*q/2;
        module m x:bool; [] true -> r : (x'=true) + 1-r : (x'=false); endmodule"""
    )
    first, second = built.modules[0].commands[0].updates
    assert shown(first.probability) == "(((1 - p) * (1 - p)) / 2)"
    assert shown(second.probability) == "(1 - (((1 - p) * (1 - p)) / 2))"
    assert dict(built.constants) == {}


def test_polynomials_may_divide_by_variables_and_branch_on_them() -> None:
    built = program(
        """dtmc const double p; const int N = 4;
        module m x:[1..N]; [] true -> (x>2 ? p/x : pow(p,2)/N) : true + 1-(x>2 ? p/x : pow(p,2)/N) : (x'=1);
        endmodule"""
    )
    assert (
        shown(built.modules[0].commands[0].updates[0].probability) == "((x > 2) ? (p / x) : (pow(p, 2) / 4))"
    )


# --- formulas and folding ---------------------------------------------------------------------


def test_formulas_are_written_out_and_folded() -> None:
    built = program(
        """mdp const int N = 2; formula f = g & x<N+1; formula g = N>1 | x=0; formula big = x+N*3;
        module m x:[0..9]; [] f -> (x'=min(big,9)); endmodule label "l" = !f;"""
    )
    command = built.modules[0].commands[0]
    assert shown(command.guard) == "(x < 3)"
    assert shown(command.updates[0].assignments[0].value) == "min((x + 6), 9)"
    assert shown(built.labels[0].expression) == "(!(x < 3))"
    assert shown(built.formulas["big"]) == "(x + 6)"


def test_what_a_constant_decides_is_never_evaluated() -> None:
    text = """mdp const int N; module m x:[0..9];
      [] N>0 & x>1/N -> (x'=N=0 ? 0 : floor(9/N)); endmodule"""
    zero = program(text, N="0").modules[0].commands[0]
    assert zero.guard == Literal(False, Type.BOOL)
    assert zero.updates[0].assignments[0].value == Literal(0, Type.INT)
    assert shown(program(text, N="3").modules[0].commands[0].guard) == "(x > 1/3)"


def test_a_failing_constant_part_fails_only_where_it_is_evaluated() -> None:
    built = program("mdp module m x:[0..9]; [] x>9 & 1/0>x -> true; endmodule")
    assert shown(built.modules[0].commands[0].guard) == "((x > 9) & ((1 / 0) > x))"


# --- modules ---------------------------------------------------------------------------------


def test_renaming_reaches_into_formulas_constants_and_actions() -> None:
    built = program(
        """mdp const int A = 1; const int B = 5; const double p; formula free = x<A & !busy;
        global busy : bool;
        module one x:[0..A] init A; [go] free -> p : (x'=x+1) + 1-p : true; [] x=0 -> (busy'=true); endmodule
        module two = one [ x=y, go=run, A=B ] endmodule
        module three = two [ y=z, run=jump ] endmodule
        rewards [jump] free : z; endrewards"""
    )
    assert [m.name for m in built.modules] == ["one", "two", "three"]
    assert [(v.name, v.high, v.initial, v.module) for v in built.variables] == [
        ("busy", 1, 0, None),
        ("x", 1, 1, "one"),
        ("y", 5, 5, "two"),
        ("z", 5, 5, "three"),
    ]
    guards = [shown(m.commands[0].guard) for m in built.modules]
    assert guards == ["((x < 1) & (!busy))", "((y < 5) & (!busy))", "((z < 5) & (!busy))"]
    assert [m.commands[0].action for m in built.modules] == ["go", "run", "jump"]
    assert built.modules[2].commands[0].updates[0].assignments[0].name == "z"
    assert shown(built.rewards[0].items[0].guard) == "((x < 1) & (!busy))"


def test_names_can_be_swapped() -> None:
    built = program(
        """mdp module a x:[0..3]; [] x<y -> (x'=y); endmodule
        module b = a [ x=y, y=x ] endmodule"""
    )
    command = built.modules[1].commands[0]
    assert shown(command.guard) == "(y < x)"
    assert (command.updates[0].assignments[0].name, shown(command.updates[0].assignments[0].value)) == (
        "y",
        "x",
    )


def test_globals_come_first_and_one_module_may_write_them_with_an_action() -> None:
    built = program(
        """dtmc module m x:bool init true; [a] x -> (g'=3); endmodule global g : [2..5];
        module n y:bool; [b] y -> true; endmodule"""
    )
    assert [(v.name, v.type, v.low, v.high, v.initial) for v in built.variables] == [
        ("g", Type.INT, 2, 5, 2),
        ("x", Type.BOOL, 0, 1, 1),
        ("y", Type.BOOL, 0, 1, 0),
    ]
    assert built.type is ModelType.DTMC


def test_interval_models_are_recognised() -> None:
    text = (
        "dtmc const double e; module m x:bool; [] true -> [0.5-e, 0.5+e] : true + {} : (x'=true); endmodule"
    )
    built = program(text.format("[1/4,0.9]"), e="1/10")
    assert built.is_interval
    first, second = built.modules[0].commands[0].updates
    assert (first.probability, first.upper) == (
        Literal(Fraction(2, 5), Type.DOUBLE),
        Literal(Fraction(3, 5), Type.DOUBLE),
    )
    assert second.upper == Literal(Fraction(9, 10), Type.DOUBLE)
    with pytest.raises(
        InputError, match="parameter 'e' may not occur in a model with interval probabilities"
    ):
        program(text.format("0.5"))


# --- the initial state -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicate", "state"),
    [
        ("x=3 & y=0 & b", (3, 0, 1)),
        ("!b & 2=x & y=x-1", (2, 1, 0)),
        ("x*x=9 & y=x & b=(x>2)", (3, 3, 1)),
        ("x+y=10 & b=false", (5, 5, 0)),
        ("(b <=> x=0) & x<1 & y>4", (0, 5, 1)),
        ("x=y & y=4 & !(b | x<1)", (4, 4, 0)),
    ],
)
def test_init_determines_one_state(predicate: str, state: tuple[int, ...]) -> None:
    built = program(f"mdp module m x:[0..5]; y:[0..5]; b:bool; endmodule init {predicate} endinit")
    assert built.initial_values == (state,)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("x=3 & x=4 & y=0 & b", "no state satisfies"),
        ("x=7 & y=0 & b", "no state satisfies"),
        ("x*x=2 & y=0 & b", "no state satisfies"),
        ("false", "no state satisfies"),
    ],
)
def test_init_must_hold_somewhere(predicate: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        program(f"mdp module m x:[0..5]; y:[0..5]; b:bool; endmodule init {predicate} endinit")


@pytest.mark.parametrize(
    ("predicate", "states"),
    [
        ("x=3 & y=0", [(3, 0, 0), (3, 0, 1)]),
        ("x>=4 & y=x-4 & b", [(4, 0, 1), (5, 1, 1)]),
        ("(b & x=y & x<2) | (!b & x+y=10)", [(0, 0, 1), (1, 1, 1), (5, 5, 0)]),
    ],
)
def test_init_with_several_states(predicate: str, states: list[tuple[int, ...]]) -> None:
    built = program(f"mdp module m x:[0..5]; y:[0..5]; b:bool; endmodule init {predicate} endinit")
    assert list(built.initial_values) == states


def test_init_with_millions_of_states_is_refused() -> None:
    with pytest.raises(InputError, match="holds in 1,002,001 states: x, y can have any value"):
        program("mdp module m x:[0..1000]; y:[0..1000]; endmodule init true endinit")


def test_init_over_too_many_states_is_refused() -> None:
    with pytest.raises(InputError, match="leaves 1002001 states to try for x, y"):
        program("mdp module m x:[0..1000]; y:[0..1000]; endmodule init x*y=35 & x<y endinit")


# --- size --------------------------------------------------------------------------------------


def test_formulas_that_explode_are_refused() -> None:
    formulas = "".join(f"formula f{i} = f{i + 1}+f{i + 1};" for i in range(40))
    with pytest.raises(InputError, match="more than 200000 parts"):
        program(f"mdp {formulas} formula f40 = x; module m x:[0..1]; [] f0>0 -> true; endmodule")


def test_long_definitions_in_a_row_do_not_recurse() -> None:
    constants = "".join(f"const int c{i} = c{i + 1}+1;" for i in range(2000))
    built = program(f"mdp {constants} const int c2000 = 0; module m x:[0..c0]; endmodule")
    assert built.variables[0].high == 2000


def test_deep_nesting_is_refused_in_words() -> None:
    deep = "(" * 400 + "x" + "+1)" * 400
    with pytest.raises(InputError, match="nested more than 250 deep"):
        program(f"mdp module m x:[0..1]; [] {deep}>0 -> true; endmodule")
    with pytest.raises(InputError, match="nested more than 250 deep"):
        program("mdp module m x:bool; [] " + "!" * 5000 + "x -> true; endmodule")


GUARDED = """dtmc
const double p; const int K = 0;
module m
  s : [0..2];
  [] s=0 & ({}) -> p : (s'=1) + 1-p : (s'=2);
  [] s=0 & !({}) -> (s'=2);
  [] s>0 -> true;
endmodule"""


@pytest.mark.parametrize(
    ("guard", "holds"),
    [
        ("p>0.1", True),
        ("p>=0.2", True),
        ("p<0.2", False),
        ("p!=2", True),
        ("0.9<p*2-1", False),
        ("min(p, 0.1)=0.1", True),
        ("1/p>1", True),
        ("p=0.5 & K=1", False),
        ("K=1 & p=0.5", False),
        ("p>0.5 | K=0", True),
        ("K=1 => p=0.5", True),
        ("!(p<=0)", True),
    ],
)
def test_domains_decide_parameters_in_guards(guard: str, holds: bool) -> None:
    model = load_prism_text(GUARDED.replace("{}", guard), domain="0.2<=p<=0.9")
    assert model.states == (3 if holds else 2)


@pytest.mark.parametrize("guard", ["p>0.5", "p>0.2", "p=0.5", "1/(p-0.5)>0", "(p>0.5)=false"])
def test_guards_that_a_domain_leaves_open_are_refused(guard: str) -> None:
    with pytest.raises(
        InputError, match=r"in a guard that its domain, \[1/5, 9/10\], does not decide"
    ) as raised:
        load_prism_text(GUARDED.replace("{}", guard), domain="0.2<=p<=0.9")
    assert "narrow the domain" in str(raised.value.hint)
