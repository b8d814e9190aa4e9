"""Models in continuous time on the command line: how they are built, and what is refused."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.cli.model_source import LoadedModel
from tightrope.cli.options import parse_constants
from tightrope.cli.output import warn
from tightrope.cli.progress import build_progress
from tightrope.errors import InputError
from tightrope.loading import ModelRequest, read_continuous
from tightrope.model.region_text import parse_point

if TYPE_CHECKING:
    from tightrope.model.continuous import ParametricCTMC
    from tightrope.prism.parse.property_syntax import PropertyFile
    from tightrope.prism.properties.boundary import Boundary


@dataclass(frozen=True)
class TimedModel:
    """A chain in continuous time and the seconds it took to build."""

    source: str
    model: ParametricCTMC
    seconds: float
    is_partial: bool = False

    def point(self, at: str | None) -> tuple[Fraction, ...]:
        """The point that `--at` gives; none is needed where there are no parameters."""
        names = self.model.parameters.names
        if at is not None:
            return parse_point(at, names, "--at")
        if names:
            raise InputError(
                f"the model has parameters: {', '.join(names)}",
                hint=f"say where to look with --at {','.join(f'{name}=…' for name in names)}",
            )
        return ()


def load_timed(
    source: str,
    const: Sequence[str] | None = None,
    param: str | None = None,
    domain: str | None = None,
    boundary: Boundary | None = None,
    quiet: bool = False,
) -> TimedModel:
    """Build the chain that `source` names; `quiet`: the range of parameters does not matter."""
    request = ModelRequest(source, parse_constants(const), param, domain, boundary)
    begin = time.perf_counter()
    with build_progress(Path(source).name) as progress:
        read = read_continuous(request, progress, None if quiet else warn)
    return TimedModel(source, read.model, time.perf_counter() - begin, read.is_partial)


def load_embedded(request: ModelRequest, at: str | None, files: Sequence[PropertyFile]) -> LoadedModel:
    """The jumps of a chain at a point, which certificates are about; what speaks of time is refused."""
    from tightrope.continuous.discrete import embed
    from tightrope.prism.properties.shape import EMBEDDED, refuse_time

    for file in files:
        refuse_time(file, EMBEDDED)
    begin = time.perf_counter()
    with build_progress(Path(request.source).name) as progress:
        read = read_continuous(request, progress, None if at is not None else warn)
    timed = TimedModel(request.source, read.model, 0.0)
    chain = embed(read.model.instantiate(timed.point(at)))
    return LoadedModel(chain, time.perf_counter() - begin, None)
