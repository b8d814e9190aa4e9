"""Runs the code blocks of a page in order, in one folder and one namespace, and looks at what comes out.

    python docs/_tools/run_pages.py docs/tutorials/*.md            # runs, and compares
    python docs/_tools/run_pages.py --write docs/tutorials/*.md    # also writes outputs and figures anew

| fence | is |
|---|---|
| `python` | executed; its `print` is what the `text` fence behind it shows |
| `sh` | lines `tightrope …`, run; they end with exit code 0, or N where `# exit code N` follows |
| any with `title="NAME"` (`prism`, `csv`, …) | written to a file NAME before the next block |
| `text` | what the executed block before it printed |
| others (`console`, `json`, …) | shown, not run |

Numbers in outputs may differ by a thousandth (by a third where the line says "about"), times and memory by
anything, a line `…` stands for any lines, and `…` at the end of a line for its rest. Figures that a page
shows from `images/tutorials/` are those that its blocks save under that name. Files of `tutorials/data/` and
of the page's own `data/` lie in the folder.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent.parent
FIGURES = DOCS / "images" / "tutorials"
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
SECONDS = re.compile(r"\d+(\.\d+)? ?(ms|s|seconds)\b")
TOLERANCE = 1e-3
ABOUT = 1 / 3
"""How far numbers may be off on a line that says \"about\": forecasts move when their method does."""


class PageError(AssertionError):
    """A page does not do what it shows; the message says where."""


@dataclass(frozen=True)
class Block:
    """A fence of a page: its language, its title if it is a file, its text and the line it begins in."""

    language: str
    title: str | None
    text: str
    line: int
    span: tuple[int, int]


def blocks_of(page: str) -> Iterator[Block]:
    for found in FENCE.finditer(page):
        title = re.search(r'title="([^"]+)"', found[2])
        yield Block(
            found[1],
            title and title[1],
            found[3],
            page[: found.start()].count("\n") + 1,
            (found.start(3), found.end(3)),
        )


def run_page(path: Path, folder: Path, write: bool = False) -> dict[str, object]:
    """Run a page in `folder`; the names its Python defined. `PageError` where it shows something else."""
    page = path.read_text(encoding="utf-8")
    for place in {DOCS / "tutorials" / "data", path.parent / "data"}:
        for each in place.iterdir() if place.is_dir() else ():
            if each.is_file():
                shutil.copy(each, folder)
    names: dict[str, object] = {"__name__": "page"}
    printed: str | None = None
    changes: list[tuple[tuple[int, int], str]] = []
    with contextlib.chdir(folder):
        for block in blocks_of(page):
            where = f"{path.name}:{block.line}"
            if block.title is not None:
                Path(block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                printed = _run_python(block, where, names)
            elif block.language == "sh":
                printed = _run_shell(block, where)
            elif block.language == "text" and printed is not None:
                if write:
                    changes.append((block.span, _shortened(block.text, printed)))
                elif not same_output(block.text, printed):
                    raise PageError(f"{where}: the page shows\n{block.text}\nbut this came out:\n{printed}")
                printed = None
    for figure in re.findall(r"images/tutorials/([\w.-]+)", page):
        if not (folder / figure).is_file():
            raise PageError(f"{path.name}: shows {figure}, which its code does not save")
        if write:
            shutil.copy(folder / figure, FIGURES / figure)
    for (begin, end), text in reversed(changes):
        page = page[:begin] + text + page[end:]
    if write:
        path.write_text(page, encoding="utf-8")
    return names


def same_output(shown: str, printed: str) -> bool:
    """Whether what a page shows is what was printed, up to the last digits, times, and lines left out."""
    pattern, rest = _lines(shown), _lines(printed)
    at, skipping = 0, False
    for line in pattern:
        if line.strip() == "…":
            skipping = True
            continue
        while skipping and at < len(rest) and not _same_line(line, rest[at]):
            at += 1
        if at == len(rest) or not _same_line(line, rest[at]):
            return False
        at, skipping = at + 1, False
    return skipping or at == len(rest)


def _lines(text: str) -> list[str]:
    """Without what differs from run to run."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not re.match(r"\s*(seconds|memory) ", line)]


def _same_line(shown: str, printed: str) -> bool:
    shown, printed = SECONDS.sub("0 s", shown), SECONDS.sub("0 s", printed.rstrip())
    if shown.endswith("…"):
        shown = shown[:-1].rstrip()
        printed = printed[: len(shown)]
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(_numbers(shown), _numbers(printed), strict=True)
    tolerance = ABOUT if " about " in shown else TOLERANCE
    return all(math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9) for one, other in pairs)


def _numbers(text: str) -> list[float]:
    return [float(found.replace(",", "") or 0) for found in NUMBER.findall(text)]


def _shortened(shown: str, printed: str) -> str:
    """The new output; where the page leaves lines out, what it shows stays if it is right."""
    if same_output(shown, printed):
        return shown
    kept = set(_lines(printed))
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    text = "".join(f"{line}\n" for line in lines if not line or line in kept)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def _run_python(block: Block, where: str, names: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile("\n" * block.line + block.text, where, "exec"), names)
    return out.getvalue()


def _run_shell(block: Block, where: str) -> str:
    from tightrope.cli.app import run

    stored = io.BytesIO()
    printed = io.TextIOWrapper(
        stored, encoding="utf-8", write_through=True
    )  # as a terminal that knows Unicode
    for line in block.text.replace("\\\n", " ").splitlines():
        command, _, comment = line.partition("# exit code ")
        words = shlex.split(command, comments=True)
        if not words:
            continue
        if words[0] != "tightrope":
            raise PageError(f"{where}: only tightrope's commands are run, not {words[0]}")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as messages:
            code = run(words[1:])
        if code != int(comment or 0):
            said = messages.getvalue() + stored.getvalue().decode()
            raise PageError(f"{where}: {line}\nended with exit code {code}:\n{said}")
        if code:
            printed.write(messages.getvalue())
    return stored.getvalue().decode()


def main(arguments: list[str]) -> None:
    write = "--write" in arguments
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("COLUMNS", "100")
    for name in arguments:
        if name != "--write":
            with tempfile.TemporaryDirectory() as folder:
                run_page(Path(name).resolve(), Path(folder), write)


if __name__ == "__main__":
    main(sys.argv[1:])
