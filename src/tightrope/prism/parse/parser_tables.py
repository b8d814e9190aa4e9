"""The tables of the parser, computed once and kept on disk as the compiled kernels are.

Computing them takes longer than parsing a model of usual size. They lie in `__pycache__` of this package, or
where that cannot be written to in the user's cache folder; lark names the grammar, its own version and that
of Python in them and computes them anew where one has changed or the file is damaged. Without a folder to
write to the tables are computed in every process.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any

from lark import Lark


def load_tables(start: str, builder: Any) -> Lark:
    """The parser from `start`; `builder` makes our syntax trees as it goes."""
    names = ["grammar.lark", "properties.lark"] if start == "properties" else ["grammar.lark"]
    here = resources.files("tightrope.prism.parse")
    grammar = "\n".join(here.joinpath(name).read_text("utf-8") for name in names)
    folder = _folder()
    return Lark(
        grammar,
        start=start,
        parser="lalr",
        lexer="basic",
        transformer=builder,
        cache=False if folder is None else str(folder / f"grammar-{start}.tables"),
    )


def _folder() -> Path | None:
    """The first folder that can be written to."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for folder in (Path(__file__).parent / "__pycache__", Path(home).expanduser() / "tightrope"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None
