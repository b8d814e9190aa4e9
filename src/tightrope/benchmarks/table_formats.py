"""Tables as text for a terminal of 80 columns, as Markdown and as LaTeX: one content, three formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tightrope.benchmarks.instance import Instance
from tightrope.benchmarks.table_cells import (
    list_used_marks,
    our_bounds,
    our_figures,
    our_interval,
    our_marks,
    papers_figures,
    papers_interval,
    papers_total,
    subtitle,
    title,
)
from tightrope.benchmarks.tables import InstanceTable, Row
from tightrope.io.written_by import GENERATED

WIDTH = 80

LONG_COLUMNS = (
    *("method", "lower", "upper", "gap", "build s", "solve s", "MiB", "seeds"),
    *("paper", "gap", "build s", "solve s"),
)
SHORT_COLUMNS = ("method", "interval", "gap", "build", "solve", "paper", "gap", "s")


def text_tables(tables: list[InstanceTable]) -> str:
    """For the terminal: at most 80 columns."""
    from io import StringIO

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, legacy_windows=False)
    for table in tables:
        console.print(Text(title(table), style="bold"))
        console.print(Text(subtitle(table)))
        shown = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
        for index, column in enumerate(SHORT_COLUMNS):
            shown.add_column(column, justify="left" if index in (0, 1, 5) else "right", overflow="fold")
        for row in table.rows:
            gap, build, solve, _ = our_figures(row)
            shown.add_row(
                *(Text(cell) for cell in (row.method.short, our_interval(row) + our_marks(row), gap)),
                *(Text(cell) for cell in (build, solve, papers_interval(row))),
                *(Text(cell) for cell in (papers_figures(row)[0], papers_total(row))),
            )
        console.print(shown)
        console.print()
    for mark, meaning in list_used_marks(tables):
        console.print(Text(f"{mark} {meaning}"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def text_summary(lines: list[str]) -> str:
    """Statements as an indented list within 80 columns."""
    from textwrap import fill

    return "".join(
        fill(line, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False) + "\n"
        for line in lines
    )


def markdown_tables(tables: list[InstanceTable]) -> str:
    """A section a family, a table an instance."""
    return "\n".join(_by_family(tables, _markdown_heading, _markdown_table))


def latex_tables(tables: list[InstanceTable]) -> str:
    """One booktabs table an instance."""
    marks = list_used_marks(tables)
    lines = [f"% {GENERATED}`; needs booktabs and amssymb"]
    lines += [f"% {mark} {meaning}" for mark, meaning in marks]
    lines += _by_family(tables, lambda instance: f"% {instance.family}", _latex_table)
    return "\n".join(lines) + "\n"


def _by_family(
    tables: Iterable[InstanceTable],
    heading: Callable[[Instance], str],
    body: Callable[[InstanceTable], list[str]],
) -> list[str]:
    lines: list[str] = []
    family = ""
    for table in tables:
        if table.instance.family != family:
            family = table.instance.family
            lines += [heading(table.instance), ""]
        lines += [*body(table), ""]
    return lines


def _long_row(row: Row) -> list[str]:
    lower, upper = our_bounds(row)
    gap, build, solve, memory = our_figures(row)
    name = row.method.label + ("" if row.method.in_paper else " (ours)")
    seeds = str(row.seeds) if row.seeds else ""
    ours = [name, lower, upper + our_marks(row), gap, build, solve, memory, seeds]
    return [*ours, papers_interval(row), *papers_figures(row)]


# --- Markdown ------------------------------------------------------------------------------


def _markdown_heading(instance: Instance) -> str:
    return f"## {instance.family}"


def _markdown_table(table: InstanceTable) -> list[str]:
    return [
        f"### {title(table)}",
        "",
        subtitle(table).replace("|", "\\|"),
        "",
        "| " + " | ".join(LONG_COLUMNS) + " |",
        "|---" * len(LONG_COLUMNS) + "|",
        *("| " + " | ".join(_long_row(row)) + " |" for row in table.rows),
    ]


# --- LaTeX ---------------------------------------------------------------------------------

_LATEX = {
    "∞": r"$\infty$",
    "†": r"$^{\dagger}$",
    "°": r"$^{\circ}$",
    "∅": r"$^{\varnothing}$",
    "~": r"$^{\sim}$",
    "–": "--",
    "Λ": r"$\Lambda$",
    "δ": r"$\delta$",
    "|": r"$|$",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "^": r"\^{}",
    "\\": r"\textbackslash{}",
}


def _latex_table(table: InstanceTable) -> list[str]:
    columns = [*LONG_COLUMNS[:8], *LONG_COLUMNS[8:]]
    return [
        r"\begin{table}",
        rf"\caption{{{_escape(title(table))}: {_escape(subtitle(table))}.}}",
        r"\centering\small",
        r"\begin{tabular}{lrrrrrrrlrrr}",
        r"\toprule",
        r"& \multicolumn{7}{c}{tightrope} & \multicolumn{4}{c}{paper} \\",
        r"\cmidrule(lr){2-8}\cmidrule(lr){9-12}",
        " & ".join(["method", *columns[1:8], "interval", *columns[9:]]) + r" \\",
        r"\midrule",
        *(" & ".join(map(_escape, _long_row(row))) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def _escape(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
