"""Reading DRN files."""

from __future__ import annotations

from pathlib import Path

from tightrope.errors import InputError, Location
from tightrope.formats.drn.assemble import assemble
from tightrope.formats.drn.body import Body, Progress
from tightrope.formats.drn.header import Header, read_header
from tightrope.formats.drn.values import ExactValues, Model, Values
from tightrope.formats.number_values import NumberValues
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.parameters import Parameters
from tightrope.model.region_text import narrow_domain, parse_domain
from tightrope.numerics.text_reading import reading


def read_drn(
    path: str | Path,
    *,
    box: str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
) -> Model:
    """The model in a DRN file; `values` says which kind comes out.

    `box` and `domain` (texts as on the command line) replace the domain of the parameters, which
    otherwise is the one noted in the file, or [0, 1] for each.
    """
    path = Path(path)
    with reading(path) as file:
        lines = enumerate(file, 1)
        header = read_header(path, lines)
        body = Body(path, header, _values(path, header, box, domain))
        body.read(lines, progress)
    found = assemble(body)
    assert not isinstance(found, ParametricCTMC)
    return found


def _values(path: Path, header: Header, box: str | None, domain: str | None) -> Values:
    names = header.parameters
    parameters = narrow_domain(Parameters.unit_box(names), box, domain)
    if box is None and domain is None and header.notes is not None and header.notes.domain:
        try:
            parameters = parse_domain(header.notes.domain, names)
        except InputError as error:
            raise InputError(f"the noted domain is damaged: {error.message}", Location(str(path))) from None
    if header.value_type in ("parametric", "rational"):
        return ExactValues(parameters)
    return NumberValues(header.value_type)
