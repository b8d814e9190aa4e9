"""Syntax errors in words: what stands in the way, why, and what PRISM wants instead.

Words of the PRISM language that tightrope does not support are refused by name, with the reason.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NoReturn

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from tightrope.errors import InputError
from tightrope.prism.parse.builders import PROPERTY_FORM, PROPERTY_WORDS, RESERVED
from tightrope.prism.parse.syntax import Position, SourceText


@cache
def load_lark(start: str) -> Lark:
    """Lark's parser of what `start` says: a model or properties."""
    names = ["grammar.lark", "properties.lark"] if start == "properties" else ["grammar.lark"]
    grammar = "\n".join(Path(__file__).with_name(name).read_text("utf-8") for name in names)
    return Lark(grammar, start=start, parser="lalr", lexer="basic")


@cache
def spelling(start: str) -> dict[str, str]:
    """What the tokens with one spelling look like; the others have an empty text."""
    return {
        terminal.name: terminal.pattern.value if isinstance(terminal.pattern, PatternStr) else ""
        for terminal in load_lark(start).terminals
    }


_DISCRETE = "only dtmc, mdp, pomdp, ctmc, ma, pta and popta are"
_MODEL_WORDS = {
    "ctmdp": f"continuous-time MDPs (ctmdp) are not supported: {_DISCRETE}",
    "smg": f"stochastic games (smg) are not supported: {_DISCRETE}",
    "csg": f"concurrent stochastic games (csg) are not supported: {_DISCRETE}",
    "tptg": f"timed games (tptg) are not supported: {_DISCRETE}",
    "player": "players (stochastic games) are not supported",
    "prob": "the old keyword prob is not supported: write const double",
    "rate": "the old keyword rate is not supported: write const double",
}
_CHARACTER_HINTS = {
    "#": "comments start with //",
    "%": "there is no operator for remainders: write mod(x, 2)",
}
_EXTREMA_SPELLED = ("max", "min", "maxmax", "maxmin", "minmax", "minmin")
_TEMPORAL = frozenset(["F", "G", "X", "U", "W"])
_OPERATOR_NOT_KNOWN = re.compile(r"\b(S|T|LRA)\s*(max|min)?\s*(=\s*\?|[<>]=?[^\[\]]*)?$")

_TOKEN_NAMES = {
    "NAME": "a name",
    "INT": "an integer",
    "DECIMAL": "a number",
    "STRING": "a quoted name",
    "PRIMED": "a primed name such as x'",
    "MODEL_TYPE": "dtmc, mdp, pomdp, ctmc, ma, pta or popta",
    "NUMBER_TYPE": "int or double",
    "QUESTION": "'=?'",
    "INSTANT": "I=k",
    "LONG_RUN": "S",
    "P_OPERATOR": "a property such as Pmax=? [ … ]",
    "R_OPERATOR": "a property such as Rmax=? [ … ]",
    "$END": "the end of the text",
}
_LITERALS = ("NAME", "INT", "DECIMAL", "STRING", "TRUE", "FALSE", "FUNC")
_OPERATORS = (
    "BRANCHING",
    "CVAR",
    "FILTER",
    "QUANTILE",
    "STEADY",
    "P_OPERATOR",
    "R_OPERATOR",
    "T_OPERATOR",
    "F",
    "G",
    "X",
)
_STARTS = frozenset([*_LITERALS, *_OPERATORS, "MINUS", "NOT", "LPAR"])
"""What an expression may begin with; where a quoted name is expected alone, it is none."""
_COMPUTING = ("PLUS", "MINUS", "TIMES", "DIVIDE", "POW", "EQ", "NE", "LT", "LE", "GT", "GE")
_CONTINUES = frozenset([*_COMPUTING, "AND", "OR", "IMPLIES", "IFF", "U", "W", "R_OPERATOR"])
_MOST_EXPECTATIONS = 7


def refuse_by_lark(source: SourceText, start: str) -> NoReturn:
    """Raise what is wrong with a text that the tables do not take: lark knows the tokens it expected."""
    try:
        load_lark(start).parse(source.text)
    except UnexpectedInput as error:
        raise syntax_error(error, source, spelling(start)) from None
    raise source.error("the text cannot be read", None)


def syntax_error(error: UnexpectedInput, source: SourceText, spelling: dict[str, str]) -> InputError:
    """The user's error for a parser's; `spelling` gives the text of keyword and operator tokens."""
    if isinstance(error, UnexpectedToken):
        return _refuse_token(error, source, spelling)
    if isinstance(error, UnexpectedCharacters):
        return _refuse_character(error, source)
    return source.error("the text cannot be read", None)


def _at(token: Token) -> Position:
    return Position(token.line or 1, token.column or 1)


def _refuse_token(error: UnexpectedToken, source: SourceText, spelling: dict[str, str]) -> InputError:
    token: Token = error.token
    expected = set(error.accepts or error.expected)
    if token.type == "$END":
        return source.error(
            "the text ends too early",
            _end(source),
            _expectation(expected, spelling) or "something is missing",
        )
    position = _at(token)
    is_property = "P_OPERATOR" in spelling
    refused = PROPERTY_WORDS if is_property else _MODEL_WORDS
    before = source.text[: token.start_pos or 0]
    if refusal := refused.get(str(token)):
        return source.error(refusal, position, PROPERTY_FORM if is_property else None)
    # `invariant x>0`: the first word passes for a name, the second shows that it was none.
    word = re.search(r"([A-Za-z]+)[ \t]+$", before)
    is_operator = is_property and token.type in ("QUESTION", "OPEN")
    if is_operator and (unknown := _OPERATOR_NOT_KNOWN.search(before)):
        return source.error(PROPERTY_WORDS[unknown[1]], _place(source, unknown.start()), PROPERTY_FORM)
    if word and word[1] in refused and str(token)[0].isalpha():
        return source.error(refused[word[1]], Position(position.line, position.column - len(word[0])))
    if is_property and (special := _refuse_in_property(token, expected, source, position)):
        return special
    if token.type == "PRIMED":
        return _refuse_prime(token, before, source, position)
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


def _refuse_prime(token: Token, before: str, source: SourceText, position: Position) -> InputError:
    if re.search(r"=>\s*\($", before):
        return source.error(
            "'=>' is an implication, so the guard does not end here",
            position,
            "a command is written  [a] guard -> …",
        )
    hint = f"an update stands in parentheses: ({token}=…)"
    if before.endswith("("):
        hint = "in a sum, every update has its probability: 0.5 : (x'=1)"
    return source.error(
        f"{token} may not be read: a primed name stands only on the left of an update, as in (x'=x+1)",
        position,
        hint,
    )


def _mistaken_operator(token: Token, source: SourceText) -> InputError | None:
    """`pmax=?`, `Pmaxmid=?` and `<<1>> Pmax=?`: words in front of the token that pass for names."""
    before = source.text[: token.start_pos or 0]
    if word := re.search(r"\b([A-Za-z]+)\s*$", before):
        place = _place(source, word.start())
        name = word[1]
        if re.fullmatch(r"[PR](max|min){1,2}", name):
            return None
        if name.lower().startswith(("p", "r")) and name[1:].lower() in _EXTREMA_SPELLED:
            right = f"{name[0].upper()}{name[1:].lower()}"
            return source.error(f"unexpected '{name}'", place, f"did you mean {right}?")
        if re.fullmatch(r"[PR](max|min)\w*", name):
            return source.error(
                f"unknown operator '{name}'",
                place,
                f"agent and nature are named by max and min: {name[:4]}, {name[:4]}min, {name[:4]}max",
            )
    if token in ("<", "<=") and before.strip() == "":
        return source.error(
            "coalitions <<…>> (stochastic games) are not supported", _at(token), PROPERTY_FORM
        )
    return None


def _refuse_in_property(
    token: Token, expected: set[str], source: SourceText, position: Position
) -> InputError | None:
    if mistaken := _mistaken_operator(token, source):
        return mistaken
    if token in _TEMPORAL and expected & {"LSQB", "OPEN"}:
        return source.error(f"the path formula stands in brackets: [ {token} … ]", position, PROPERTY_FORM)
    if token in ("F", "G", "X") and "LPAR" in expected:
        inside = "[" in source.text[: token.start_pos or 0]
        return source.error(
            f"the path formula {token} … stands in parentheses here: ({token} …)"
            if inside
            else f"{token} is about paths: it stands inside P=? [ … ], A [ … ] or E [ … ]",
            position,
        )
    if token in _TEMPORAL or (token.type == "C" and "CLOSE" not in expected):
        return source.error(
            f"{token} cannot stand here: P takes X, F, G, U, W, R and R takes F, C<=k, C, I=k", position
        )
    return None


def _place(source: SourceText, offset: int) -> Position:
    """Line and column of a place in the text."""
    before = source.text[:offset]
    return Position(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def _refuse_character(error: UnexpectedCharacters, source: SourceText) -> InputError:
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
    if rest.startswith("'"):
        return source.error(
            "a property refers to the states, which have no primed variables", position, "leave the ' out"
        )
    hint = _CHARACTER_HINTS.get(rest[:1])
    return source.error(f"unexpected character {rest[:1]!r}", position, hint)


def _hint(token: Token, expected: set[str], source: SourceText, spelling: dict[str, str]) -> str | None:
    before = source.text[: token.start_pos or 0]
    doubled = before[-1:] == str(token)
    if token == "||" or (doubled and token in ("=", "&")):
        return f"PRISM writes a single '{token[0]}'"
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
    names, rest = [], set(expected) - {"POW", "INVARIANT", "LBRACE" if "CLOSE" in expected else "POW"}
    if {"NAME", "INT"} <= rest:
        names.append("an expression")
        rest -= _STARTS
    if {"PLUS", "TIMES"} <= rest or {"AND", "OR"} <= rest or {"U", "W"} <= rest:
        names.append("an operator")
        rest -= _CONTINUES | {"QMARK"}
    if len(rest) > _MOST_EXPECTATIONS:
        return None
    names += sorted(_TOKEN_NAMES.get(name) or f"'{spelling.get(name) or name.lower()}'" for name in rest)
    if not names:
        return None
    return "expected " + (" or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0])


def _end(source: SourceText) -> Position:
    """Just behind the last character that is not a blank."""
    text = source.text.rstrip()
    return Position(text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)
