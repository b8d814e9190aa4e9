"""What is said about texts that cannot be read, word for word: place, reason, what to do.

Also of `numerics/text.py`, `prism/parse/refusals.py`.
"""

from __future__ import annotations

import pytest

from tightrope.errors import InputError
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.parser import parse_properties

PROPERTIES = [
    (
        "Pmax=? [ F^{rew} s=2 ]",
        ["--prop:1:16: unexpected '}'", "hint: expected '<', '<=', '=', '>', '>=', '[' or '{'"],
    ),
    (
        "Pmax=? [ F^{sum<=2} s=2 ]",
        [
            "--prop:1:13: unknown bound 'sum'",
            'hint: F^{rew{"cost"}<=5} bounds a reward, F^{steps<=5} steps',
        ],
    ),
    ("Pmax=? [ F s=2 & G s=1 ]", ["--prop:1:18: the path formula G … stands in parentheses here: (G …)"]),
    (
        "Pmax=? [ F ]",
        [
            "--prop:1:12: unexpected ']'",
            "hint: expected an expression, '<', '<=', '=', '>', '>=', '[' or '{'",
        ],
    ),
    (
        "Pmax=?",
        ["--prop:1:7: the text ends too early", "hint: expected '['"],
    ),
    (
        "Pmax [ F s=2 ]",
        ["--prop:1:6: unexpected '['", "hint: expected '<', '<=', '=?', '>' or '>='"],
    ),
    (
        "Pmax=? F s=2",
        [
            "--prop:1:8: the path formula stands in brackets: [ F … ]",
            'hint: a property looks like  Pmax=? [ F "goal" ]',
        ],
    ),
    (
        "Pmax=? [ F s==2 ]",
        ["--prop:1:14: unexpected '='", "hint: PRISM writes a single '='"],
    ),
    (
        "Pmax=? [ F s=2 && s=1 ]",
        ["--prop:1:17: unexpected '&'", "hint: PRISM writes a single '&'"],
    ),
    (
        "Pmax=? [ F s=2 || s=1 ]",
        ["--prop:1:19: the condition after || is a path", "hint: PRISM writes 'or' as a single |"],
    ),
    (
        "Pmax=? [ F s!=2 ",
        [
            "--prop:1:16: the text ends too early",
            "hint: expected an operator, ']' or '||'",
        ],
    ),
    (
        "quantile(s, Pmax>=0.5 [ F s=2 ])",
        [
            '--prop:1:1: a quantile is written quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])',
            'hint: a property looks like  Pmax=? [ F "goal" ]',
        ],
    ),
    (
        "<<1>> Pmax=? [ F s=2 ]",
        [
            "--prop:1:1: coalitions <<…>> (stochastic games) are not supported",
            'hint: a property looks like  Pmax=? [ F "goal" ]',
        ],
    ),
    ("R=? [ LTL ]", ["--prop:1:7: unexpected 'LTL'", "hint: R takes F, C<=k, C, I=k, or a path formula"]),
    ("Pmax=? [ !F s=2 ]", ["--prop:1:11: the path formula F … stands in parentheses here: (F …)"]),
    (
        "Pmax=? [ F s=2 ] ; Pmin",
        ["--prop:1:24: the text ends too early", "hint: expected '<', '<=', '=?', '>' or '>='"],
    ),
    (
        "pmax=? [ F s=2 ]",
        ["--prop:1:1: unexpected 'pmax'", "hint: did you mean Pmax?"],
    ),
    (
        'Pmax=?[F "goal ]',
        ["--prop:1:10: a quoted name does not end on its line", 'hint: the closing " is missing'],
    ),
    (
        "Pmaxmid=? [ F s=2 ]",
        [
            "--prop:1:1: unknown operator 'Pmaxmid'",
            "hint: agent and nature are named by max and min: Pmax, Pmaxmin, Pmaxmax",
        ],
    ),
    (
        "Pmax=? [ F[1,2) s=2 ]",
        ["--prop:1:15: unexpected ')'", "hint: expected ']'"],
    ),
    (
        "Rmax=? [ C=3 ]",
        ["--prop:1:11: unexpected '='", "hint: expected '<', '<=', '>', '>=', '[' or ']'"],
    ),
    (
        "Pmax=? [ F s'=2 ]",
        [
            "--prop:1:13: a property refers to the states, which have no primed variables",
            "hint: leave the ' out",
        ],
    ),
    (
        "Pmax=? [ F @ ]",
        ["--prop:1:12: unexpected character '@'"],
    ),
    (
        "Rmax=? [ F<=3 s=2 ]",
        ["--prop:1:10: R [ F … ] takes no bound on steps", "hint: R [ C<=k ] adds up the rewards of k steps"],
    ),
    (
        "Pmax=? [ C ]",
        ["--prop:1:10: C cannot stand here: P takes X, F, G, U, W, R and R takes F, C<=k, C, I=k"],
    ),
]

MODELS = [
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> 1 : (s'=func(mud,s,2));\nendmodule\n",
        ["m.prism:4:25: unknown function 'mud'", "hint: did you mean 'mod'?"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> 1 : s'=1;\nendmodule\n",
        [
            (
                "m.prism:4:16: s' may not be read: a primed name stands only on the left of an "
                "update, as in (x'=x+1)"
            ),
            "hint: an update stands in parentheses: (s'=…)",
        ],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> 0.5 (s'=1) + 0.5 : (s'=2);\nendmodule\n",
        ["m.prism:4:16: unexpected '('", "hint: expected an operator or ':'"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s==0 -> 1:(s'=1);\nendmodule\n",
        ["m.prism:4:7: unexpected '='", "hint: PRISM writes a single '='"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> (s'=1)\nendmodule\n",
        ["m.prism:5:1: unexpected 'endmodule'", "hint: is a ';' missing before it?"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 => (s'=1);\nendmodule\n",
        [
            "m.prism:4:13: '=>' is an implication, so the guard does not end here",
            "hint: a command is written  [a] guard -> …",
        ],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n s=0 -> (s'=1);\nendmodule\n",
        ["m.prism:4:3: unexpected '='", "hint: expected ':'"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> 1:(s'=1) & 0.5:(s'=2);\nendmodule\n",
        ["m.prism:4:23: unexpected '0.5'", "hint: expected '('"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 && true -> (s'=1);\nendmodule\n",
        ["m.prism:4:10: unexpected '&'", "hint: PRISM writes a single '&'"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 || true -> (s'=1);\nendmodule\n",
        ["m.prism:4:9: unexpected '||'", "hint: PRISM writes a single '|'"],
    ),
    (
        "",
        ["m.prism: the model has no module", "hint: a model looks like  mdp module m … endmodule"],
    ),
    (
        "module m endmodule",
        ["m.prism:1:8: the model has no variables"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0\nendmodule",
        ["m.prism:4:1: unexpected 'endmodule'", "hint: is a ';' missing before it?"],
    ),
    (
        "dtmc\nmodule m\n s : int;\n [] true -> (s'=3*s+1);\nendmodule",
        [
            "m.prism:4:14: command []: 's' becomes 5230176601, beyond what a state can hold, "
            "in state (s=1743392200)"
        ],
    ),
    (
        "dtmc\nmodule m\n s : [0..2] = 0;\nendmodule",
        ["m.prism:3:13: unexpected '='", "hint: expected ';' or 'init'"],
    ),
    (
        "dtmc\nconst float p;\nmodule m s:[0..1]; endmodule",
        ["m.prism:2:13: unexpected 'p'", "hint: a constant is int, double or bool"],
    ),
    (
        "dtmc\nconst int N=;\nmodule m s:[0..1]; endmodule",
        ["m.prism:2:13: unexpected ';'", "hint: expected an expression"],
    ),
    (
        "dtmc\nlabel goal = s=1;\nmodule m s:[0..1]; endmodule",
        [
            "m.prism:2:7: unexpected 'goal'",
            'hint: names of labels and reward structures stand in quotes: label "goal"',
        ],
    ),
    (
        "dtmc\nrewards steps true : 1; endrewards\nmodule m s:[0..1]; endmodule",
        [
            "m.prism:2:15: unexpected 'true'",
            'hint: names of labels and reward structures stand in quotes: rewards "steps"',
        ],
    ),
    (
        'dtmc\nrewards "steps" true 1; endrewards\nmodule m s:[0..1]; endmodule',
        ["m.prism:2:22: unexpected '1'", "hint: expected an operator or ':'"],
    ),
    (
        "dtmc\nmodule m s:[0..1]; ",
        ["m.prism:2:19: the text ends too early", "hint: expected '<', '[', 'endmodule' or a name"],
    ),
    (
        ("dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> [0.1,0.2 : (s'=1) + 0.5 : (s'=2);\nendmodule\n"),
        ["m.prism:4:21: unexpected ':'", "hint: expected ']'"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> (s'=1),(s'=2);\nendmodule\n",
        ["m.prism:4:18: unexpected ','", "hint: expected '&' or ';'"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> (s=1);\nendmodule\n",
        ["m.prism:4:17: unexpected ';'", "hint: expected ':'"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [a s=0 -> (s'=1);\nendmodule\n",
        ["m.prism:4:5: unexpected 's'", "hint: expected ']'"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> s++ ;\nendmodule\n",
        ["m.prism:4:14: unexpected '+'", "hint: expected an expression"],
    ),
    (
        "ctmdp\nmodule m s:[0..1]; endmodule",
        [
            (
                "m.prism:1:1: continuous-time MDPs (ctmdp) are not supported: only dtmc, mdp, pomdp, ctmc, "
                "ma, pta and popta are"
            )
        ],
    ),
    (
        "pomdp\nmodule m s:[0..1]; endmodule",
        [
            "m.prism: a pomdp says what is observed",
            'hint: write observables x, y endobservables, or observable "near" = x<3;',
        ],
    ),
    (
        "dtmc\nformula f = ;\nmodule m s:[0..1]; endmodule",
        ["m.prism:2:13: unexpected ';'", "hint: expected an expression"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s%2=0 -> (s'=1);\nendmodule\n",
        [
            "m.prism:4:6: unexpected character '%'",
            "hint: there is no operator for remainders: write mod(x, 2)",
        ],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> 1/0 : (s'=1);\nendmodule\n",
        ["m.prism:4:12: division by zero in state (s=0)"],
    ),
    (
        "dtmc\nmodule m\n s : bool;\nendmodule\nsystem m || n endsystem",
        ["m.prism:5:13: there is no module 'n'", "hint: the modules are: m"],
    ),
    (
        "dtmc\nmodule m s:[0..1]; endmodule\nmodule n = m [s=t endmodule",
        ["m.prism:3:19: unexpected 'endmodule'", "hint: expected ',' or ']'"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> rand : (s'=1);\nendmodule\n",
        ["m.prism:4:12: 'rand' is not declared", "hint: the names are: s"],
    ),
    (
        "dtmc\nmodule m\n s:[0..2] init 0;\n [] s=0 -> p:=1;\nendmodule\n",
        ["m.prism:4:14: unexpected '='", "hint: expected '(' or 'true'"],
    ),
    (
        "dtmc\nmodule 2m s:[0..1]; endmodule",
        [
            "m.prism:2:8: '2m' is not a number",
            "hint: names start with a letter or '_'; numbers look like 3, 0.25 or 1e-3",
        ],
    ),
    (
        "dtmc;\nmodule m s:[0..1]; endmodule",
        ["m.prism:1:5: unexpected ';'"],
    ),
]


def told(error: InputError) -> list[str]:
    """The message without the excerpt of the text."""
    first, *others = str(error).split("\n")
    return [first, *(line for line in others if line.startswith("hint"))]


@pytest.mark.parametrize(("text", "message"), PROPERTIES)
def test_properties(text: str, message: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        parse_properties(text, "--prop")
    assert told(caught.value) == message


@pytest.mark.parametrize(("text", "message"), MODELS)
def test_models(text: str, message: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        load_prism_text(text, "m.prism")
    assert told(caught.value) == message


def test_no_message_has_an_empty_spelling() -> None:
    for _, message in [*PROPERTIES, *MODELS]:
        assert "''" not in " ".join(message)
