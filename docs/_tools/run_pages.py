"""Runs the code blocks of a page in order, in one folder and one namespace, and looks at what comes out.

    python docs/_tools/run_pages.py docs/tutorials/*.md            # runs, and compares
    python docs/_tools/run_pages.py --write docs/tutorials/*.md    # also writes outputs and figures anew
    python docs/_tools/run_pages.py --notebooks                    # writes the notebooks of the tutorials

A page is a list of cells, those of its notebook: what runs here is what the notebook runs. The page is the
only source; `tests/repository/test_site.py` compares the notebooks with it.

| fence | is |
|---|---|
| `python` | executed; its `print` is what the `text` fence behind it shows |
| `sh` | lines `tightrope …`, run; they end with exit code 0, or N where `# exit code N` follows |
| any with `title="NAME"` (`prism`, `csv`, …) | written to a file NAME before the next block |
| `text` | what the executed block before it printed |
| others (`console`, `json`, …) | shown, not run |

In cells, `sh` lines are calls of a function `tightrope`, which the first cell defines, and files are written
by Python: notebooks need neither a shell nor magics.

Numbers in outputs may differ by a thousandth (by a third where the line says "about"), times and memory by
anything, a line `…` stands for any lines, and `…` at the end of a line for its rest. Figures that a page
shows from `images/tutorials/` are those that its blocks save under that name. Files of `tutorials/data/` and
of the page's own `data/` lie in the folder.
"""

from __future__ import annotations

import contextlib
import io
import json
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


@dataclass(frozen=True)
class Cell:
    """A cell: text, or Python with the line of its block and the block that shows its output."""

    source: str
    line: int | None = None
    shown: Block | None = None


COMMANDS = '''import contextlib
import io
import shlex


def tightrope(command: str, code: int = 0) -> None:
    """Runs a command as a shell would; `code` is the exit code that it ends with."""
    from tightrope.cli.app import run

    with contextlib.redirect_stderr(io.StringIO()) as messages:
        ended = run(shlex.split(command))
    print(messages.getvalue() if ended else "", end="")
    assert ended == code, f"ended with exit code {ended}: {messages.getvalue()}"
'''


def cells_of(page: str, name: str = "the page") -> list[Cell]:
    """The page as cells, its text between them."""
    blocks = list(blocks_of(page))
    cells, at = [], 0
    setup = [COMMANDS] if any(b.language == "sh" and b.title is None for b in blocks) else []
    for file in dict.fromkeys(re.findall(r"\]\((data/[\w.-]+)\)", page)):
        setup.append(f'import shutil\n\nshutil.copy("{file}", ".")  # it lies beside the page\n')
    for number, block in enumerate(blocks):
        begin, end = page.rindex("```", 0, block.span[0]), block.span[1] + len("```")
        following = blocks[number + 1] if number + 1 < len(blocks) else None
        if block.title is not None:
            source = f'with open("{block.title}", "w", encoding="utf-8") as file:\n'
            source += f"    file.write({_literal(block.text)})\n"
        elif block.language == "python":
            source = block.text
        elif block.language == "sh":
            source = _calls(block, f"{name}:{block.line}")
        elif block.language == "text" and cells and cells[-1].shown is block:
            if page[at:begin].strip():
                cells.append(Cell(page[at:begin]))
            at = end
            continue
        else:
            continue
        if page[at:begin].strip():
            cells.append(Cell(page[at:begin]))
        if setup:
            cells += [Cell(text, 0) for text in setup]
            setup = []
        is_output = following is not None and (following.language, following.title) == ("text", None)
        cells.append(Cell(source, block.line, following if is_output and block.title is None else None))
        at = end
    if page[at:].strip():
        cells.append(Cell(page[at:]))
    return cells


def _literal(text: str) -> str:
    """A text as a literal over several lines."""
    return '"""' + text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') + '"""'


def _calls(block: Block, where: str) -> str:
    """The commands of a shell as calls of `tightrope`."""
    lines = []
    for line in block.text.replace("\\\n", " ").splitlines():
        command, _, code = line.partition("# exit code ")
        words = shlex.split(command, comments=True)
        if not words:
            continue
        if words[0] != "tightrope":
            raise PageError(f"{where}: only tightrope's commands are run, not {words[0]}")
        text = shlex.join(words[1:])
        quoted = f"'{text}'" if "'" not in text and "\\" not in text else f'r"""{text}"""'
        lines.append(f"tightrope({quoted}{f', code={int(code)}' if code else ''})")
    return "\n".join(lines) + "\n"


def notebook(page: str) -> str:
    """The notebook of a page: the same cells, with the outputs that the page shows."""
    cells: list[dict[str, object]] = []
    count = 0
    for number, cell in enumerate(cells_of(page)):
        lines = cell.source.strip("\n").splitlines(True)
        about = {"id": f"cell-{number}", "metadata": {}, "source": lines}
        if cell.line is None:
            cells.append({"cell_type": "markdown", **about})
            continue
        count += 1
        text = "" if cell.shown is None else cell.shown.text
        stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(True)}
        outputs = [stream] if text else []
        cells.append({"cell_type": "code", "execution_count": count, **about, "outputs": outputs})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


TUTORIALS = sorted(path for path in (DOCS / "tutorials").glob("*.md") if path.stem != "index")


def run_page(path: Path, folder: Path, write: bool = False) -> dict[str, object]:
    """Run a page in `folder`. Returns the names its Python defined, and as `__ran__` the lines of the blocks
    that ran. `PageError` where it shows something else."""
    page = path.read_text(encoding="utf-8")
    (folder / "data").mkdir(exist_ok=True)
    for place in {DOCS / "tutorials" / "data", path.parent / "data"}:
        for each in place.iterdir() if place.is_dir() else ():
            if each.is_file() and place != folder / "data":
                shutil.copy(each, folder)
                shutil.copy(each, folder / "data")
    ran: list[int] = []
    names: dict[str, object] = {"__name__": "page", "__ran__": ran}
    changes: list[tuple[tuple[int, int], str]] = []
    with contextlib.chdir(folder):
        for cell in cells_of(page, path.name):
            if cell.line is None:
                continue
            printed, shown = _run_cell(cell, f"{path.name}:{cell.line}", names), cell.shown
            ran += [cell.line] if cell.line else []
            if shown is None:
                continue
            if write:
                changes.append((shown.span, _shortened(shown.text, printed)))
            elif not same_output(shown.text, printed):
                where = f"{path.name}:{shown.line}"
                raise PageError(f"{where}: the page shows\n{shown.text}\nbut this came out:\n{printed}")
    for figure in re.findall(r"images/tutorials/([\w.-]+)", page):
        if not (folder / figure).is_file():
            raise PageError(f"{path.name}: shows {figure}, which its code does not save")
        if write:
            shutil.copy(folder / figure, FIGURES / figure)
    for (begin, end), text in reversed(changes):
        page = page[:begin] + text + page[end:]
    if write:
        path.write_text(page, encoding="utf-8")
        write_notebooks()
    return names


def write_notebooks() -> None:
    for path in TUTORIALS:
        path.with_suffix(".ipynb").write_text(notebook(path.read_text(encoding="utf-8")), encoding="utf-8")


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


def _run_cell(cell: Cell, where: str, names: dict[str, object]) -> str:
    stored = io.BytesIO()
    screen = io.TextIOWrapper(stored, encoding="utf-8", write_through=True)  # a terminal that knows Unicode
    with contextlib.redirect_stdout(screen):
        try:
            exec(compile("\n" * (cell.line or 0) + cell.source, where, "exec"), names)
        except AssertionError as error:
            raise PageError(f"{where}: {error}\n{stored.getvalue().decode()}") from error
    return stored.getvalue().decode()


def main(arguments: list[str]) -> None:
    write = "--write" in arguments
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("COLUMNS", "100")
    if "--notebooks" in arguments:
        write_notebooks()
    for name in arguments:
        if name not in ("--write", "--notebooks"):
            with tempfile.TemporaryDirectory() as folder:
                run_page(Path(name).resolve(), Path(folder), write)


if __name__ == "__main__":
    main(sys.argv[1:])
