"""A picture of a run: how it is drawn, what is said to those who do not see it, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tightrope.report.run import Run
from tightrope.report.style import PAPER, Medium


@dataclass(frozen=True)
class Table:
    """Numbers behind a picture."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """`draw` takes any axes; `height` is in inches on paper, `applies` says whether it has something to show.

    `words` are the picture in a sentence, for a screen reader; `caption` says how to read it.
    """

    name: str
    title: str
    draw: Callable[[Run, Axes], None]
    height: Callable[[Run], float]
    words: Callable[[Run], str]
    table: Callable[[Run], Table]
    caption: Callable[[Run], str]
    applies: Callable[[Run], bool] = lambda run: True

    def figure(self, run: Run, medium: Medium = PAPER) -> Figure:
        """A figure of its own, which no global state of matplotlib knows of."""
        with medium.style():
            size = (medium.width, self.height(run) * medium.type_size / PAPER.type_size)
            figure = Figure(figsize=size, layout="constrained")
            self.draw(run, figure.subplots())
        return figure
