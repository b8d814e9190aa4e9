"""Wrong models, properties and constants: each has its message, its place and exit code 2.

In the tables ¦ marks where the error must point; it is taken out before the text is read.
"""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.errors import InputError
from tightrope.model.structure import RewardStructure, Structure
from tightrope.prism.expand.model import expand
from tightrope.prism.parse.parser import parse_model, parse_properties
from tightrope.prism.properties.query import pick, read_query


def unmarked(text: str) -> tuple[str, tuple[int, int] | None]:
    """The text without its mark, and the mark's line and column."""
    before, mark, after = text.partition("¦")
    if not mark:
        return text, None
    return before + after, (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def check(error: InputError, message: str, place: tuple[int, int] | None, file: str) -> None:
    shown = str(error)
    assert message in shown
    assert error.exit_code == 2
    if place is not None:
        assert shown.startswith(f"{file}:{place[0]}:{place[1]}: ")
        assert "\n    " in shown  # the offending line


def command(text: str) -> str:
    """A model around one command."""
    return f"mdp\nconst double p;\nmodule m\n  x : [0..3]; b : bool;\n  {text}\nendmodule\n"


UNSUPPORTED = [
    ("¦ctmdp\nmodule m x:bool; endmodule", "continuous-time MDPs (ctmdp) are not supported"),
    ("¦smg player p1 m endplayer", "stochastic games (smg) are not supported"),
    ("mdp ¦player p1 m endplayer", "players (stochastic games) are not supported"),
    (
        'mdp module m x:bool; endmodule ¦system "s" m endsystem system "t" m endsystem',
        "every system … endsystem has a name, so none is the model's",
    ),
    ('mdp module m x:bool; endmodule system m || ¦"s" endsystem', 'there is no system "s"'),
    ("mdp module ¦m x : clock; endmodule", "clocks and invariants are those of timed automata"),
    ("pta module m x : ¦clocks; endmodule", "unexpected 'clocks'"),
    ("pta module m x : clock; [] ¦x>1 -> true; endmodule", "clock 'x' is compared by >"),
    ("pta module m x : clock; y : clock; [] ¦x=y -> true; endmodule", "comparisons of two clocks"),
    ('mdp observable ¦"o" = x; module m x:bool; endmodule', "observables belong to models of type pomdp"),
    ("mdp ¦rate r = 2; module m x:bool; endmodule", "the old keyword rate is not supported"),
    ("mdp module m x : ¦double; endmodule", "a state has bool and integer variables only"),
]

SYNTAX = [
    ("mdp\nconst int N = 3\n¦module m x:bool; endmodule", "hint: is a ';' missing before it?"),
    ("mdp module m x:bool; endmodule ¦dtmc", "the model type is given twice"),
    ("mdp module m x:bool; endmodule init x endinit ¦init x endinit", "there is a second init … endinit"),
    ("mdp const int N = 3;", "the model has no module"),
    ("mdp module m x:bool;¦", "the text ends too early"),
    (command("[] x=¦=2 -> true;"), "hint: PRISM writes a single '='"),
    (command("[] b &¦& x=2 -> true;"), "hint: PRISM writes a single '&'"),
    (command("[] b = ¦!b -> true;"), "hint: put the negation in parentheses"),
    (command("[] x=¦3y -> true;"), "'3y' is not a number"),
    (command("[] x=2 -> (x'=¦x'+1);"), "x' may not be read"),
    (command("[] ¦#x=2 -> true;"), "unexpected character '#'"),
    (command("[] ¦foo(x)=2 -> true;"), "unknown function 'foo'"),
    (command("[] ¦flor(x)=2 -> true;"), "did you mean 'floor'?"),
    (command('[] ¦"done" -> true;'), "a label may not stand in a model's expressions"),
    (command("[] x=1 -> 0.5 : (x'=0) + (¦x'=1);"), "hint: in a sum, every update has its probability"),
    ('mdp label ¦"done = true; module m x:bool; endmodule', "a quoted name does not end on its line"),
    ('mdp label ¦"1st" = true; module m x:bool; endmodule', "cannot name a label"),
    ("mdp const int ¦max = 3; module m x:bool; endmodule", "'max' is a reserved word"),
    ("mdp const int ¦module = 3; module m x:bool; endmodule", "'module' is a reserved word"),
    ("mdp const double p = ¦" + "9" * 500 + ".0; module m x:bool; endmodule", "more than 400 digits"),
    ("mdp const double p = ¦1e999999; module m x:bool; endmodule", "more than 400 digits"),
]

NAMES = [
    ("mdp const int N = 1; const int ¦N = 2; module m x:bool; endmodule", "'N' is declared twice"),
    ("mdp const int x = 1; module m ¦x:bool; endmodule", "'x' is declared twice"),
    ("mdp formula f = true; formula ¦f = false; module m x:bool; endmodule", "'f' is declared twice"),
    ("mdp module m x:bool; endmodule module n ¦x:bool; endmodule", "'x' is declared twice"),
    ("mdp const double p; global ¦p:bool; module m x:bool; endmodule", "'p' is declared twice"),
    ("mdp module m x:bool; endmodule module ¦m y:bool; endmodule", "there are two modules 'm'"),
    ('mdp module m x:bool; endmodule label "a"=x; label ¦"a"=!x;', 'label "a" is defined twice'),
    ('mdp module m x:bool; endmodule label ¦"init"=x;', 'label "init" cannot be defined'),
    ('mdp module m x:bool; endmodule rewards "r" endrewards ¦rewards "r" endrewards', 'structures "r"'),
    (command("[] ¦y=2 -> true;"), "'y' is not declared"),
    (command("[] x>¦P -> true;"), "hint: did you mean 'p'?"),
    ("mdp formula f = ¦y; module m x:bool; endmodule", "'y' is not declared"),
    (
        "mdp formula f = ¦g; formula g = f; module m x:bool; endmodule",
        "formulas refer to each other in a circle",
    ),
    (
        "mdp const int a = ¦b; const int b = a; module m x:bool; endmodule",
        "constants refer to each other in a",
    ),
    ("mdp const int a = ¦a; module m x:bool; endmodule", "in a circle: a → a"),
    ("mdp const int a = 1+¦x; module m x:[0..1]; endmodule", "constant 'a' cannot depend on variable 'x'"),
    ("mdp module m x:bool; endmodule rewards ¦[go] x : 1; endrewards", "no command has the action 'go'"),
]

TYPES = [
    (command("[] ¦x -> true;"), "a guard must be a bool, but this is an int"),
    (command("[] x=1 -> (x'=¦x/2);"), "floor(…), ceil(…) and round(…) turn a double into an int"),
    (command("[] b -> (b'=¦1);"), "the new value of bool variable 'b' must be a bool, but this is an int"),
    (command("[] b -> ¦b : true;"), "a probability must be a number, but this is a bool"),
    (command("[] ¦b=x -> true;"), "'=' compares a bool with an int"),
    (command("[] x>0 & ¦x -> true;"), "'&' wants a bool, but this is an int"),
    (command("[] 1+¦b>0 -> true;"), "'+' wants numbers, but this is a bool"),
    (command("[] mod(x,¦0.5)=0 -> true;"), "mod takes ints only"),
    (command("[] ¦floor(x,2)=0 -> true;"), "floor takes 1 argument, not 2"),
    (command("[] (b ? x : ¦b)=1 -> true;"), "the branches of ? : are of types int and bool"),
    (command("[] !¦x -> true;"), "'!' wants a bool"),
    (command("[] -¦b=1 -> true;"), "'-' wants numbers"),
    ("mdp const int N = ¦1.5; module m x:bool; endmodule", "the value of int constant 'N' must be an int"),
    ("mdp module m x:[0..¦2.5]; endmodule", "a bound of the range of 'x' must be whole, but this is 5/2"),
    ("mdp module m x:bool init ¦1; endmodule", "the initial value of 'x' must be a bool"),
    ('mdp module m x:[0..1]; endmodule label "l" = ¦x+1;', 'label "l" must be a bool, but this is an int'),
    ("mdp module m x:bool; endmodule rewards x : ¦x; endrewards", "a reward must be a number"),
]

PARAMETERS = [
    (command("[] x>¦p -> true;"), "parameter 'p' may not occur in a guard"),
    (command("[] b -> (x'=floor(¦p));"), "parameter 'p' may not occur in an update"),
    (command("[] b -> max(¦p,0.5) : true;"), "max(…) of a parameter"),
    (command("[] b -> (¦p>0.5 ? 1 : 0) : true;"), "'>' of a parameter"),
    (command("[] b -> pow(p,¦0.5) : true;"), "the exponent 1/2 is not a whole number"),
    (command("[] b -> pow(2,¦p) : true;"), "pow(…) of a parameter"),
    (command("[] b -> log(¦p,2) : true;"), "log(…) of a parameter"),
    (
        command("[] b -> [¦p,0.9] : true;"),
        "parameter 'p' may not occur in a model with interval probabilities",
    ),
    ("mdp const double p; const bool c = ¦p>0; module m x:bool; endmodule", "cannot depend on parameter 'p'"),
    ("mdp const double p; module m x:[0..floor(¦p)]; endmodule", "may not occur in the range of a variable"),
    ("mdp const double p; module m x:[0..1] init ceil(¦p); endmodule", "may not occur in an initial value"),
    ('mdp const double p; module m x:[0..1]; endmodule label "l" = x>¦p;', "may not occur in a label"),
    (
        "mdp const double p; module m x:bool; endmodule rewards x : 1/¦p; endrewards",
        "a reward is not a polynomial in the parameters: division by a parameter",
    ),
]

VARIABLES = [
    ("mdp module m x:[¦3..1]; endmodule", "the range [3..1] of 'x' is empty"),
    ("mdp module m x:[0..3] init ¦4; endmodule", "the initial value 4 of 'x' is outside its range [0..3]"),
    ("mdp module m x:[0..¦3000000000]; endmodule", "beyond 32-bit integers"),
    ("mdp module m x:[0..3]; y:[0..¦x]; endmodule", "must be constant, but depends on variable 'x'"),
    ("mdp module m x:[0..¦1/0]; endmodule", "division by zero"),
    ("mdp module m x:[0..floor(¦1/0)]; endmodule", "division by zero"),
    ("mdp const int N = ¦mod(3,0); module m x:bool; endmodule", "mod needs a positive divisor, not 0"),
    ("mdp const int N = ¦pow(2,-1); module m x:bool; endmodule", "pow of two ints needs a natural exponent"),
    ("mdp const int N = ¦pow(10,100000); module m x:bool; endmodule", "more than 20000 bits"),
    ("mdp const double d = ¦log(0,2); module m x:bool; endmodule", "log of 0"),
    ("mdp module ¦m endmodule", "the model has no variables"),
    (command("[] b -> (¦z'=1);"), "'z' is not a variable, so it cannot be assigned"),
    (command("[] b -> (¦p'=1);"), "'p' is not a variable, so it cannot be assigned"),
    (command("[] b -> (x'=1) & (¦x'=2);"), "one update assigns 'x' twice"),
    (command("[] b -> ¦[0.9,0.1] : true;"), "the interval [9/10, 1/10] is empty"),
    (
        "mdp module m x:bool; endmodule module n y:bool; [] y -> (¦x'=true); endmodule",
        "module 'n' may not assign 'x', a variable of module 'm'",
    ),
    (
        "mdp global g:bool; module m x:bool; [a] x -> (¦g'=x); endmodule\n"
        "module n y:bool; [a] y -> true; endmodule",
        "global variable 'g' may not be assigned in a synchronised command",
    ),
    ("mdp module m x:bool init ¦true; endmodule init !x endinit", "has init … endinit as well"),
]

RENAMING = [
    ("mdp module ¦n = m [x=y] endmodule", "there is no module 'm' to rename"),
    ("mdp module ¦n = n [x=y] endmodule", "module 'n' is, through renamings, a copy of itself"),
    ("mdp module m x:bool; z:bool; endmodule module ¦n = m [x=y] endmodule", "without a new name: z"),
    ("mdp module m x:bool; endmodule module ¦n = m [x=y,x=z] endmodule", "'x' is renamed twice"),
    (
        "mdp module m x:bool; endmodule module ¦n = m [x=y,go=z] endmodule",
        "renames 'go', which is not a variable",
    ),
    ("mdp formula f=true; module m x:bool; endmodule module ¦n=m [x=y,f=g] endmodule", "'f' is a formula"),
    ("mdp module m x:bool; endmodule module ¦n = m [x=x] endmodule", "'x' is declared twice"),
    ("mdp const int c=1; module m x:bool; endmodule\nmodule ¦n = m [x=c] endmodule", "'c' is declared twice"),
    (
        "mdp global i:[0..1]; global j:bool; module m x:bool; [] ¦j -> true; endmodule\n"
        "module n = m [x=y, j=i] endmodule",
        "a guard must be a bool, but this is an int (in module 'n', renamed from 'm')",
    ),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [*UNSUPPORTED, *SYNTAX, *NAMES, *TYPES, *PARAMETERS, *VARIABLES, *RENAMING],
)
def test_wrong_models(text: str, message: str) -> None:
    model, place = unmarked(text)
    with pytest.raises(InputError) as caught:
        expand(parse_model(model, "m.prism"))
    check(caught.value, message, place, "m.prism")


OPEN = "mdp const int N; const bool b; const double p; const int K = 2; module m x:[0..b ? N : 1]; endmodule"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "m.prism:1:15: undefined constants: int N, bool b"),
        ({}, 'hint: give a value:  `const={"N": …, "b": …}`'),
        ({"N": "1"}, "m.prism:1:29: undefined constant: bool b"),
        ({"n": "1", "b": "true"}, "`const`: the model has no constant 'n'\nhint: did you mean 'N'?"),
        ({"K": "3"}, "`const`: constant 'K' has a value in the file already (line 1)"),
        ({"N": "1.5", "b": "true"}, "`const`: '1.5' is not a value for the int constant 'N'"),
        ({"N": "1", "b": "yes"}, "`const`: 'yes' is not a value for the bool constant 'b'"),
        ({"N": "1", "b": "true", "p": "1/0"}, "`const`: '1/0' is not a value for the double constant 'p'"),
    ],
)
def test_wrong_constants(given: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        expand(parse_model(OPEN, "m.prism"), given)
    check(caught.value, message, None, "m.prism")


PROPERTIES = [
    (
        'P=? [ ¦G F "goal" ]',
        "general LTL (temporal operators inside others, or combined) is not supported here",
    ),
    ('P=? [ F "goal" & ¦X "goal" ]', "the path formula X … stands in parentheses here: (X …)"),
    ('P=? [ F ¦P>0.5 [ X "goal" ] ]', "P inside another formula is not supported here"),
    ('P=? [ "goal" ¦Rmax "goal" ]', "unexpected 'Rmax'"),
    ('¦S=? [ "goal" ]', "long-run averages are not supported here"),
    ('¦S>=0.5 [ "goal" ]', "long-run averages are not supported here"),
    ("R=? [ ¦S ]", "long-run averages are not supported here"),
    ("¦T [ F x=1 ]", "an expected time is written"),
    ("S>=2 [ ¦F x=1 ]", "F … stands in parentheses here"),
    ("R=? [ ¦I=3 ]", "instantaneous rewards I=k are not supported here"),
    ("R=? [   ¦I ]", "an instantaneous reward is written I=k, directly behind the bracket"),
    ("R=? [ ¦cosafe F x=1 ]", "the word cosafe is not known: write the path formula alone"),
    ("R=? [ ¦F x=1 & (X x=0) ]", "rewards until a path formula is satisfied are not supported here"),
    ("R=? [ C<=(¦X x=0) ]", "a step bound must be constant"),
    ('¦filter(max, P=? [ F "goal" ])', "one P or R is required here"),
    ('filter(¦mix, P=? [ F "goal" ])', "unknown filter 'mix'"),
    ('P=? [ F "goal" {"init"}{¦most} ]', "unknown filter 'most'"),
    (
        "¦multi(Pmax=? [ F x=1 ], P>0.5 [ F x=2 ])",
        "one P or R is required here, not a formula made of several",
    ),
    ('¦E [ F "goal" ]', "one P or R is required here, not a formula made of several or of none"),
    ('P=? [ F ¦A [ G "goal" ] ]', "A inside another formula is not supported here"),
    ('P=? [ X "goal" ] ¦x=1', "a property begins directly after another one"),
    ('¦F "goal"', "F is about paths: it stands inside P=? [ … ], A [ … ] or E [ … ]"),
    (
        "const int k = ¦P=? [ F x=1 ]; P=? [ F<=k x=1 ]",
        "operators of properties (P, R, A, E, filter, F, G, …)",
    ),
    ("P>=(¦P=? [ F x=1 ]) [ F x=1 ]", "a threshold must be constant"),
    ("P=? [ ¦C<=3 ]", "C cannot stand here: P takes X, F, G, U, W, R"),
    ('R=? [ ¦G "goal" ]', "rewards until a path formula is satisfied are not supported here"),
    ('R=? [ ¦F<=3 "goal" ]', "R [ F … ] takes no bound on steps"),
    ('P=? [ F "goal"¦ ', "the text ends too early"),
    ('Pmax [ F "goal" ]', "unexpected '['"),
    ('Pmaxi=? [ F "goal" ]', "unknown operator 'Pmaxi'"),
    ('R{"cost"}¦best=? [ C ]', "unexpected 'best' after R"),
    (
        'P=? [ F ¦"gaol" ]',
        'there is no label "gaol"\n    P=? [ F "gaol" ]\n            ^\nhint: did you mean \'goal\'',
    ),
    ("P=? [ F ¦goal ]", 'hint: a label is quoted: "goal"'),
    ("P=? [ F ¦y=1 ]", "'y' is not declared"),
    ("P=? [ F ¦x ]", "a state formula must be a bool, but this is an int"),
    ("P=? [ F ¦1/x>0 ]", "division by zero"),
    ('¦R{"cots"}=? [ C ]', 'there is no reward structure "cots"'),
    ("¦R{7}=? [ C ]", "there is no reward structure 7; the model has 1"),
    ("P=? [ F<=¦x x=1 ]", "a step bound must be constant, but depends on variable 'x'"),
    ("P=? [ F<=¦2.5 x=1 ]", "a step bound must be an int"),
    ("P=? [ F<¦0 x=1 ]", "no step is < 0"),
    ("P=? [ F<=(¦-1) x=1 ]", "no step is <= -1"),
    ("P=? [ F>=(¦-1) x=1 ]", "a step bound cannot be negative"),
    ("P=? [ F[3,¦2] x=1 ]", "the step bound [3,2] is empty"),
    ("P>¦1.5 [ F x=1 ]", "the threshold of P must lie in [0, 1]"),
    ("P>=¦x [ F x=1 ]", "a threshold must be constant"),
    ("P>=¦true [ F x=1 ]", "a threshold must be a number, but this is a bool"),
    ("const int ¦k; P=? [ F<=k x=1 ]", "undefined constant: int k"),
    ("const double ¦u; P>=u [ F x=1 ]", "undefined constant: double u"),
    ("const int ¦x = 2; P=? [ F x=1 ]", "'x' is declared twice"),
    ('label ¦"goal" = x=1; P=? [ F "goal" ]', 'the model has a label "goal" already'),
    ('label "a" = "b"; label "b" = ¦"a"; P=? [ F "a" ]', "labels refer to each other in a circle: a → b → a"),
    ('"one": P=? [ X x=1 ] "one": ¦P=? [ F x=1 ]', 'there are two properties "one"'),
    ("", "one property is required, not 0"),
]


@pytest.mark.parametrize(("text", "message"), PROPERTIES)
def test_wrong_properties(text: str, message: str) -> None:
    property_text, place = unmarked(text)
    chain = Structure(
        choice_start=np.arange(3),
        transition_start=np.arange(3),
        successor=np.array([1, 0], dtype=np.int32),
        labels={"goal": np.array([False, True])},
        rewards={"cost": RewardStructure(state=np.ones(2))},
        valuations={"x": np.array([0, 1], dtype=np.int32)},
    )
    with pytest.raises(InputError) as caught:
        file = parse_properties(property_text, "p.props")
        query = read_query(pick(file), file, chain)
        if not query.is_plain:
            raise query.refusal()
    check(caught.value, message, place, "p.props")
