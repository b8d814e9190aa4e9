"""Syntax errors in words: what stands in the way, why, and what PRISM wants instead.

Words of the PRISM language that tightrope does not support are refused by name, with the reason.
"""

from __future__ import annotations

import re

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from tightrope.errors import InputError
from tightrope.prism.diagnostics import Source
from tightrope.prism.expression_builder import RESERVED, at
from tightrope.prism.syntax import Position

_DISCRETE = "only DTMCs and MDPs (keywords dtmc and mdp) are"
_MODEL_WORDS = {
    "ctmc": f"continuous-time Markov chains (ctmc) are not supported: {_DISCRETE}",
    "stochastic": f"continuous-time Markov chains (stochastic) are not supported: {_DISCRETE}",
    "ctmdp": f"continuous-time MDPs (ctmdp) are not supported: {_DISCRETE}",
    "ma": f"Markov automata (ma) are not supported: {_DISCRETE}",
    "pta": f"probabilistic timed automata (pta) are not supported: {_DISCRETE}",
    "popta": f"partially observable timed automata (popta) are not supported: {_DISCRETE}",
    "pomdp": f"partially observable MDPs (pomdp) are not supported: {_DISCRETE}",
    "smg": f"stochastic games (smg) are not supported: {_DISCRETE}",
    "csg": f"concurrent stochastic games (csg) are not supported: {_DISCRETE}",
    "tptg": f"timed games (tptg) are not supported: {_DISCRETE}",
    "system": "system … endsystem compositions are not supported: all modules synchronise on common actions",
    "player": "players (stochastic games) are not supported",
    "clock": "clocks (timed automata) are not supported",
    "invariant": "invariants (timed automata) are not supported",
    "observable": "observables (partially observable models) are not supported",
    "observables": "observables (partially observable models) are not supported",
    "prob": "the old keyword prob is not supported: write const double",
    "rate": "rates are not supported: the model has no continuous time; write const double",
    "func": "the old form func(f, …) is not supported: write f(…)",
}
_PROPERTY_WORDS = {
    "S": "the steady-state operator S is not supported",
    "LRA": "long-run averages are not supported",
    "E": "the CTL operator E is not supported",
    "A": "the CTL operator A is not supported",
    "I": "instantaneous rewards I=k are not supported: use F, C<=k or C",
    "T": "expected times T are not supported: use a reward structure that gives 1 to every step",
    "filter": "filters are not supported: a property is answered for the initial state",
    "multi": "multi-objective properties (multi) are not supported",
    "quantile": "quantiles are not supported",
    "cosafe": "co-safe LTL rewards (cosafe) are not supported: use F with a state formula",
    "sim": "simulation properties are not supported",
}
_TEMPORAL = frozenset(["F", "G", "X", "U", "W"])

_TOKEN_NAMES = {
    "NAME": "a name",
    "INT": "an integer",
    "DECIMAL": "a number",
    "STRING": "a quoted name",
    "PRIMED": "a primed name such as x'",
    "MODEL_TYPE": "dtmc or mdp",
    "NUMBER_TYPE": "int or double",
    "$END": "the end of the text",
}
_MOST_EXPECTATIONS = 5


def syntax_error(error: UnexpectedInput, source: Source, spelling: dict[str, str]) -> InputError:
    """The user's error for a parser's; `spelling` gives the text of keyword and operator tokens."""
    if isinstance(error, UnexpectedToken):
        return _unexpected_token(error, source, spelling)
    if isinstance(error, UnexpectedCharacters):
        return _unexpected_character(error, source)
    return source.error("the text cannot be read", None)


def _unexpected_token(error: UnexpectedToken, source: Source, spelling: dict[str, str]) -> InputError:
    token: Token = error.token
    expected = set(error.accepts or error.expected)
    if token.type == "$END":
        return source.error(
            "the text ends too early",
            _end(source),
            _expectation(expected, spelling) or "something is missing",
        )
    position = at(token)
    is_property = "P_OPERATOR" in spelling
    refused = _PROPERTY_WORDS if is_property else _MODEL_WORDS
    before = source.text[: token.start_pos or 0]
    if refusal := refused.get(str(token)):
        return source.error(refusal, position)
    # `invariant x>0`: the first word passes for a name, the second shows that it was none.
    word = re.search(r"([A-Za-z]+)[ \t]+$", before)
    if word and word[1] in refused and str(token)[0].isalpha():
        return source.error(refused[word[1]], Position(position.line, position.column - len(word[0])))
    if is_property and (special := _unexpected_in_property(token, expected, source, position)):
        return special
    if token.type == "PRIMED":
        return source.error(
            f"{token} may not be read: a primed name stands only on the left of an update, as in (x'=x+1)",
            position,
            "in a sum, every update has its probability: 0.5 : (x'=1)" if before.endswith("(") else None,
        )
    if "NAME" in expected and token in RESERVED:
        return source.error(
            f"'{token}' is a reserved word of the PRISM language and cannot be a name",
            position,
            "choose another name",
        )
    return source.error(
        f"unexpected {token if token.type == 'STRING' else repr(str(token))}",
        position,
        _hint(token, expected, source, spelling),
    )


def _unexpected_in_property(
    token: Token, expected: set[str], source: Source, position: Position
) -> InputError | None:
    if token == "{" and "AND" in expected:
        return source.error(_PROPERTY_WORDS["filter"], position)
    if token.type == "R_OPERATOR" and "AND" in expected:
        return source.error("the release operator R is not supported", position, "a R b is b W (a & b)")
    nested = "NOT" in expected or "AND" in expected
    if token.type in ("P_OPERATOR", "R_OPERATOR") and nested:
        return source.error(
            f"{token.type[0]} operators inside other formulas are not supported",
            position,
            "ask for the inner and the outer property one by one",
        )
    if token in _TEMPORAL and nested:
        return source.error(
            f"temporal operator {token} not supported here: general LTL is left out, one of F G U X W stands"
            " directly between [ and ] over formulas without temporal operators",
            position,
        )
    if token in _TEMPORAL or (token.type == "C" and "CLOSE" not in expected):
        return source.error(
            f"{token} cannot stand here: P takes X, F, G, U, W and R takes F, C<=k, C", position
        )
    return None


def _unexpected_character(error: UnexpectedCharacters, source: Source) -> InputError:
    position = Position(error.line, error.column)
    rest = source.text[error.pos_in_stream or 0 :]
    if rest.startswith('"'):
        return source.error("a quoted name does not end on its line", position, 'the closing " is missing')
    if malformed := re.match(r"[0-9][\w.]*", rest):
        return source.error(
            f"'{malformed.group()[:40]}' is not a number",
            position,
            "names start with a letter or '_'; numbers look like 3, 0.25 or 1e-3",
        )
    hint = "comments start with //" if rest.startswith("#") else None
    return source.error(f"unexpected character {rest[:1]!r}", position, hint)


def _hint(token: Token, expected: set[str], source: Source, spelling: dict[str, str]) -> str | None:
    before = source.text[: token.start_pos or 0]
    doubled = before[-1:] == str(token)
    if doubled and token in ("=", "&", "|"):
        return f"PRISM writes a single '{token}'"
    if token == "!":
        return "put the negation in parentheses: !(…)"
    if "SEMICOLON" in expected and "\n" in before[len(before.rstrip()) :]:
        return "is a ';' missing before it?"
    return _expectation(expected, spelling)


def _expectation(expected: set[str], spelling: dict[str, str]) -> str | None:
    if not 0 < len(expected) <= _MOST_EXPECTATIONS:
        return None
    names = sorted(_TOKEN_NAMES.get(name) or f"'{spelling.get(name, name)}'" for name in expected)
    return "expected " + (" or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0])


def _end(source: Source) -> Position:
    """Just behind the last character that is not a blank."""
    text = source.text.rstrip()
    return Position(text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)
