"""Syntax errors in words: what stands in the way, why, and what PRISM wants instead.

Words of the PRISM language that tightrope does not support are refused by name, with the reason.
"""

from __future__ import annotations

import re

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from tightrope.errors import InputError
from tightrope.prism.parse.diagnostics import Source
from tightrope.prism.parse.expression_builder import RESERVED, at
from tightrope.prism.parse.syntax import Position

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
_CHARACTER_HINTS = {
    "#": "comments start with //",
    "^": "there is no operator for powers: write pow(0.5, 2)",
    "%": "there is no operator for remainders: write mod(x, 2)",
}
_FORM = 'a property looks like  Pmax=? [ F "goal" ]'
_EXTREMA_SPELLED = ("max", "min", "maxmax", "maxmin", "minmax", "minmin")
_TEMPORAL = frozenset(["F", "G", "X", "U", "W"])

_TOKEN_NAMES = {
    "NAME": "a name",
    "INT": "an integer",
    "DECIMAL": "a number",
    "STRING": "a quoted name",
    "PRIMED": "a primed name such as x'",
    "MODEL_TYPE": "dtmc or mdp",
    "NUMBER_TYPE": "int or double",
    "QUESTION": "'=?'",
    "P_OPERATOR": "a property such as Pmax=? [ … ]",
    "R_OPERATOR": "a property such as Rmax=? [ … ]",
    "$END": "the end of the text",
}
_STARTS = frozenset(["NAME", "INT", "DECIMAL", "STRING", "TRUE", "FALSE", "MINUS", "NOT", "LPAR"])
"""What an expression may begin with; where a quoted name is expected alone, it is none."""
_CONTINUES = frozenset(
    ["PLUS", "MINUS", "TIMES", "DIVIDE", "AND", "OR", "IMPLIES", "IFF", "EQ", "NE", "LT", "LE", "GT", "GE"]
)
_MOST_EXPECTATIONS = 6
_CALCULATING = frozenset(
    ["+", "-", "*", "/", "(", ")", "&", "|", "!", "<", "<=", ">", ">=", "=", "!=", "=>", "<=>"]
)


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
        return source.error(refusal, position, _FORM if is_property else None)
    # `invariant x>0`: the first word passes for a name, the second shows that it was none.
    word = re.search(r"([A-Za-z]+)[ \t]+$", before)
    if word and word[1] in refused and str(token)[0].isalpha():
        return source.error(refused[word[1]], Position(position.line, position.column - len(word[0])))
    if is_property and (special := _unexpected_in_property(token, expected, source, position)):
        return special
    if token.type == "PRIMED":
        return _unexpected_prime(token, before, source, position)
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


def _unexpected_prime(token: Token, before: str, source: Source, position: Position) -> InputError:
    if re.search(r"=>\s*\($", before):
        return source.error(
            "'=>' is an implication, so this guard goes on", position, "a command is written  [a] guard -> …"
        )
    hint = f"an update stands in parentheses: ({token}=…)"
    if before.endswith("("):
        hint = "in a sum, every update has its probability: 0.5 : (x'=1)"
    return source.error(
        f"{token} may not be read: a primed name stands only on the left of an update, as in (x'=x+1)",
        position,
        hint,
    )


def _beside_a_property(token: Token, source: Source, position: Position) -> InputError | None:
    """Something where a property begins, or behind a whole one."""
    word = str(token)
    if word.lower().startswith(("p", "r")) and word[1:].lower() in _EXTREMA_SPELLED:
        return source.error(
            f"unexpected '{word}'", position, f"did you mean {word[0].upper()}{word[1:].lower()}?"
        )
    if re.fullmatch(r"[PR](max|min)\w*", word):
        return source.error(
            f"unknown operator '{word}'",
            position,
            f"agent and nature are named by max and min: {word[:4]}, {word[:4]}min, {word[:4]}max",
        )
    if word in ("<", "<=") and source.text[: token.start_pos or 0].strip() == "":
        return source.error("coalitions <<…>> (stochastic games) are not supported", position, _FORM)
    if word in _CALCULATING or token.type in ("INT", "DECIMAL"):
        return source.error(
            f"unexpected '{word}': a property is one question, P or R, and nothing is computed with its "
            "value",
            position,
            "ask for the value alone and compute with the two bounds that come out; a threshold stands "
            "before the bracket, P>=0.5 [ … ]",
        )
    return None


def _unexpected_in_property(
    token: Token, expected: set[str], source: Source, position: Position
) -> InputError | None:
    if token == "]" and {"U", "W"} <= expected:
        return source.error(
            "a path formula is wanted between the brackets, not a state formula alone",
            position,
            "to reach such a state, write  F …; to stay in such states,  G …",
        )
    if token == "{" and "AND" in expected:
        return source.error(_PROPERTY_WORDS["filter"], position)
    if "P_OPERATOR" in expected and (beside := _beside_a_property(token, source, position)):
        return beside
    if token.type == "R_OPERATOR" and "AND" in expected:
        return source.error("the release operator R is not supported", position, "a R b is b W (a & b)")
    nested = "NOT" in expected or "AND" in expected
    if token.type in ("P_OPERATOR", "R_OPERATOR") and nested:
        return source.error(
            f"{token.type[0]} operators inside other formulas are not supported",
            position,
            "ask for the inner and the outer property one by one",
        )
    if token in _TEMPORAL and nested and (path := _wrapped_path(token, source, position)):
        return path
    if token in _TEMPORAL and nested:
        return source.error(
            f"temporal operator {token} not supported here: general LTL is left out, one of F G U X W stands"
            " directly between [ and ] over formulas without temporal operators",
            position,
            "ask for the parts one by one, or let a variable of the model remember what has happened",
        )
    if token in _TEMPORAL and expected & {"LSQB", "OPEN"}:
        return source.error(f"the path formula stands in brackets: [ {token} … ]", position, _FORM)
    if token in _TEMPORAL or (token.type == "C" and "CLOSE" not in expected):
        return source.error(
            f"{token} cannot stand here: P takes X, F, G, U, W and R takes F, C<=k, C", position
        )
    return None


def _wrapped_path(token: Token, source: Source, position: Position) -> InputError | None:
    """`[ (F a) ]` and `[ !F a ]`: one temporal operator, but not directly behind the bracket."""
    inside = source.text[: token.start_pos or 0].rpartition("[")[2].split()
    if inside and set("".join(inside)) == {"("}:
        return source.error(
            f"the path formula {token} … stands in parentheses",
            position,
            f"leave them out: [ {token} … ]",
        )
    if "".join(inside) in ("!", "!(") and token in ("F", "G"):
        other = "G" if token == "F" else "F"
        return source.error(
            f"negation of the path formula {token} … is not supported", position, f"write  {other} !(…)"
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
    before = source.text[: error.pos_in_stream or 0]
    if rest.startswith("^") and re.search(r"\b[FGUWXC]\s*$", before):
        return source.error(
            "bounds on rewards, as in F^{…}, are not supported",
            position,
            "bound the number of steps, F<=k, or count the reward in a variable of the model",
        )
    if rest.startswith("'"):
        return source.error(
            "a property speaks of the states, which have no primed variables", position, "leave the ' out"
        )
    hint = _CHARACTER_HINTS.get(rest[:1])
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
    if re.search(r"\bconst\s+(float|real|integer|boolean)\s*$", before):
        return "a constant is int, double or bool"
    if (quoted := re.search(r"\b(label|rewards)\s+(\w*)\s*$", before)) and token.type != "$END":
        return f'names of labels and reward structures stand in quotes: {quoted[1]} "{quoted[2] or token}"'
    return _expectation(expected, spelling)


def _expectation(expected: set[str], spelling: dict[str, str]) -> str | None:
    names, rest = [], set(expected)
    if {"NAME", "INT"} <= rest:
        names.append("an expression")
        rest -= _STARTS
    if {"PLUS", "TIMES"} <= rest or {"AND", "OR"} <= rest:
        names.append("an operator")
        rest -= _CONTINUES | {"QMARK"}
    if len(rest) > _MOST_EXPECTATIONS:
        return None
    names += sorted(_TOKEN_NAMES.get(name) or f"'{spelling.get(name) or name.lower()}'" for name in rest)
    if not names:
        return None
    return "expected " + (" or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0])


def _end(source: Source) -> Position:
    """Just behind the last character that is not a blank."""
    text = source.text.rstrip()
    return Position(text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)
