"""Colours for the PRISM language in code blocks."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

MODULES = ("mdp", "dtmc", "module", "endmodule", "rewards", "endrewards", "init", "endinit")
DECLARATIONS = ("formula", "label", "const", "global")


class PrismLexer(RegexLexer):
    """Models and properties of the PRISM language, as far as colours need it."""

    name = "PRISM"
    aliases = ("prism",)
    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"//.*", Comment.Single),
            (r'"[^"]*"', String),
            (r"\[\w*\]", Name.Function),
            (words((*MODULES, *DECLARATIONS), prefix=r"\b", suffix=r"\b"), Keyword),
            (words(("int", "double", "bool"), prefix=r"\b", suffix=r"\b"), Keyword.Type),
            (words(("true", "false"), prefix=r"\b", suffix=r"\b"), Keyword.Constant),
            (r"\d+\.\.\d+|\d+(\.\d+)?(e[+-]?\d+)?", Number),
            (r"\w+'?", Name),
            (r"[-+*/=<>!&|?]+", Operator),
            (r"[^\w\s]", Punctuation),
        ]
    }
