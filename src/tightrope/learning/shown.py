"""What results can show of themselves: pictures as matplotlib's axes and figures, and the report.

The pictures are those of the report (`tightrope.report`), drawn by the same functions; matplotlib is imported
when the first one is drawn. Where no axes are given, a new figure of pyplot's is made, which notebooks and
`plt.show()` display.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.io.output import CERTIFICATE, claim_file, path_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tightrope.io.results import PlanDocument, ResultDocument
    from tightrope.learning.result import LearningResult
    from tightrope.report.policy_map import PolicyMap
    from tightrope.report.run import Run


def run_of(document: ResultDocument) -> Run:
    """A document that was never written, as reports read it."""
    from tightrope.report import plotting

    return plotting.Run(document)


def map_of(policies: Mapping[str, Any]) -> PolicyMap | None:
    """Policies by state variables."""
    from tightrope.report import plotting

    return plotting.map_policies(policies)


def write_certificate(result: LearningResult, path: Path, overwrite: bool) -> dict[str, tuple[float, float]]:
    """Write the certificate of a result; the interval of every claim."""
    from tightrope.certify.certificate_file import as_file
    from tightrope.certify.learned import certificate_of, domain_certificate
    from tightrope.learning.products import base_of

    claimed = claim_file(path, CERTIFICATE, overwrite)
    about = {"model_hash": base_of(result.problem).hash(), "property": result.problem.text}
    if result.counts is None:
        proof = as_file(domain_certificate(result, about))
    else:
        proof = as_file(certificate_of(result, result.counts, about))
    claimed.check()
    proof.save(claimed.path)
    return proof.values


def plot_forecast(plan: PlanDocument, ax: Axes | None) -> Axes:
    """The forecast of a plan."""
    from tightrope.report import plotting

    return plotting.plot_forecast(plan, ax)


def write_forecast(plan: PlanDocument, folder: Path) -> list[Path]:
    """The same as files in a folder; their paths."""
    from tightrope.report import plotting

    return plotting.write_forecast(plan, folder)


class Shown:
    """The methods that draw. What they draw from is a result's document and its policies."""

    @abstractmethod
    def _run(self, shapes: bool = False) -> Run:
        """The document as reports read it; polygons of regions take a while, so only with `shapes`."""

    @abstractmethod
    def _policy_map(self) -> PolicyMap | None:
        """The policies by state variables; None where no state has a choice."""

    def _picture_(self) -> str:
        """A small figure for a card of a notebook, as SVG."""
        from tightrope.report import plotting

        result: Any = self
        return plotting.small_figure(result)

    def plot(self, ax: Axes | None = None, *, reference: float | None = None) -> Axes:
        """The certified interval, whose one end is the guarantee, beside the optimistic value.

        `reference` is a value to compare with, such as what is required; it is drawn as a line.
        """
        from tightrope.report import plotting

        return plotting.plot_intervals(self._run(), ax, reference)

    def plot_regions(self, x: str | None = None, y: str | None = None, ax: Axes | None = None) -> Figure:
        """The region's shadows on pairs of parameters: on all pairs, or on `x` and `y`; its box where it has
        no pair. With `ax`, a single picture is drawn there. The figure's `axes` can be changed."""
        from tightrope.report import plotting

        return plotting.plot_regions(self._run(shapes=True), x, y, ax)

    def plot_policy(
        self, x: str | None = None, y: str | None = None, *, which: str = "robust", ax: Axes | None = None
    ) -> Axes:
        """A policy ("robust" or "optimistic") as a heat map over two state variables."""
        from tightrope.report import plotting

        return plotting.plot_policy(self._policy_map(), x, y, which, ax)

    def plot_widths(self, ax: Axes | None = None) -> Axes:
        """How wide each unknown probability was before the data, and is now."""
        from tightrope.report import plotting

        return plotting.plot_widths(self._run(), ax)

    def plot_events(self, ax: Axes | None = None) -> Axes:
        """The observed events with their intervals, those that hold the region in place first."""
        from tightrope.report import plotting

        return plotting.plot_events(self._run(), ax)

    def plot_fit(self, ax: Axes | None = None) -> Axes:
        """Does the model fit? Evidence against it over time, and the level of an alarm."""
        from tightrope.report import plotting

        return plotting.plot_fit(self._run(), ax)

    def plot_observed(self, ax: Axes | None = None) -> Axes:
        """Observed frequencies beside those of the best fit, for the choices that fit worst."""
        from tightrope.report import plotting

        return plotting.plot_observed(self._run(), ax)

    def plot_timings(self, ax: Axes | None = None) -> Axes:
        """Seconds per phase."""
        from tightrope.report import plotting

        return plotting.plot_timings(self._run(), ax)

    def report(self, path: str | PathLike[str] = "report.html", *, overwrite: bool = False) -> Path:
        """Write the report, one HTML page that opens offline; its path.

        A file that is no report of ours is refused, unless `overwrite` is set.
        """
        from tightrope.report import plotting

        return plotting.report(self._run(shapes=True), self._policy_map(), path_of(path), overwrite)
