"""From the MODEL argument of a command to a model, with the defaults that a benchmark brings along.

| MODEL | is read as |
|---|---|
| `file.prism`, `.nm`, `.pm` | a PRISM program |
| `file.drn` | Storm's explicit format |
| `file.tra`, or `file` where `file.tra` exists | PRISM's explicit files with that base name |
| `bench:NAME(ARGS)` | an instance of a benchmark family |
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.cli.options import parse_constants
from tightrope.cli.output import warn
from tightrope.cli.progress import build_progress
from tightrope.errors import InputError
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.region_text import parse_box, parse_domain, parse_point

if TYPE_CHECKING:
    from tightrope.prism.properties.boundary import Boundary
    from tightrope.prism.properties.state_formulas import Definitions
    from tightrope.studies.instance import Instance

AnyModel = ParametricMDP | IntervalMDP | MDP

PRISM_SUFFIXES = (".prism", ".nm", ".pm", ".sm")
BENCHMARK = "bench:"
ACCEPTED = "a model is a .prism/.nm/.pm file, a .drn file, explicit files (.tra), or bench:NAME(ARGS)"


@dataclass(frozen=True)
class LoadedModel:
    """A model, the seconds it took to build, and the benchmark instance it is, if any."""

    model: AnyModel
    seconds: float
    benchmark: Instance | None = None
    definitions: Definitions | None = None
    """The constants and formulas of a PRISM file, which a property may use by name."""
    is_partial: bool = False
    """Whether only the states that a question needs were built."""

    def point(self, at: str | None) -> tuple[Fraction, ...]:
        """The point that `--at` gives; without it, a benchmark's true one."""
        names = self.model.parameters.names if isinstance(self.model, ParametricMDP) else ()
        if at is not None:
            return parse_point(at, names)
        if self.benchmark is not None:
            return self.benchmark.truth
        if names:
            raise InputError(
                f"the model has parameters: {', '.join(names)}",
                hint=f"say where to look with --at {','.join(f'{name}=…' for name in names)}",
            )
        return ()

    def property_text(self, prop: str | None) -> str:
        """The property that `--prop` gives; without it, a benchmark's own."""
        if prop is not None:
            return prop
        if self.benchmark is not None:
            return self.benchmark.property_text
        hint = "say what to compute with --prop 'Pmax=? [ F \"goal\" ]'"
        raise InputError("no property is given", hint=hint)


def load_model(
    source: str,
    const: Sequence[str] | None = None,
    param: str | None = None,
    domain: str | None = None,
    boundary: Boundary | None = None,
) -> LoadedModel:
    """Build the model that `source` names, under the options `--const`, `--param` and `--domain`.

    A PRISM program is not explored beyond the `boundary` of a question, if one is given."""
    constants = parse_constants(const)
    begin = time.perf_counter()
    if source.startswith(BENCHMARK):
        instance = _instance(source, constants, param, domain)
        return LoadedModel(_build_benchmark(instance), time.perf_counter() - begin, instance)
    model, definitions, is_partial = _build_file(source, constants, param, domain, boundary)
    return LoadedModel(model, time.perf_counter() - begin, definitions=definitions, is_partial=is_partial)


# --- benchmarks ----------------------------------------------------------------------------


def _instance(source: str, constants: dict[str, str], param: str | None, domain: str | None) -> Instance:
    from tightrope.studies.suite import parse_bench

    instance = parse_bench(source)
    if constants:
        raise InputError(
            f"--const does not go with {source}: a benchmark's constants follow from its arguments",
            hint=f"the model itself is the file {instance.path}",
        )
    if param is None and domain is None:
        return instance
    parameters = instance.parameters()
    if param is not None:
        parameters = parse_box(param, parameters.names, base=parameters)
    if domain is not None:
        parameters = parse_domain(domain, parameters.names, base=parameters)
    return replace(instance, domain=parameters.text())


def _build_benchmark(instance: Instance) -> ParametricMDP:
    from tightrope.studies.suite import load

    with build_progress(f"{BENCHMARK}{instance.name}") as progress:
        return load(instance, progress)


# --- files ---------------------------------------------------------------------------------


def _build_file(
    source: str,
    constants: dict[str, str],
    param: str | None,
    domain: str | None,
    boundary: Boundary | None,
) -> tuple[AnyModel, Definitions | None, bool]:
    path = _existing(source)
    with build_progress(path.name) as progress:
        if path.suffix in PRISM_SUFFIXES:
            from tightrope.prism.load import read_prism

            read = read_prism(path, constants, param, domain, progress, warn, boundary)
            return read.model, read.definitions, read.is_partial
        if constants:
            raise InputError(f"--const does not go with {path.name}: only PRISM models have constants")
        if path.suffix == ".drn":
            from tightrope.formats.drn import read_drn

            return read_drn(path, box=param, domain=domain, progress=progress), None, False
        for option, text in (("--param", param), ("--domain", domain)):
            if text is not None:
                raise InputError(f"{option} does not go with {path.name}: explicit files have no parameters")
        from tightrope.formats.explicit import read_explicit

        return read_explicit(path), None, False


def _existing(source: str) -> Path:
    """The file to read, or an error that says what is wrong with the name."""
    if not source.strip():
        raise InputError("the name of the model is empty", hint=ACCEPTED)
    path = Path(source)
    if not path.is_file():
        explicit = Path(f"{source}.tra")
        if explicit.is_file():
            return explicit
        if path.is_dir():
            raise InputError(f"{source} is a directory, not a model", hint=ACCEPTED)
        if path.exists():
            raise InputError(f"{source} is not a regular file", hint=ACCEPTED)
        raise InputError(f"there is no file {source}", hint=_similar(path) or ACCEPTED)
    if path.suffix not in (*PRISM_SUFFIXES, ".drn", ".tra"):
        ending = f"files ending in '{path.suffix}'" if path.suffix else "files without an ending"
        raise InputError(f"cannot tell what {source} is: {ending} are not known", hint=ACCEPTED)
    if not os.access(path, os.R_OK):
        raise InputError(f"{source} cannot be read: permission denied")
    return path


def _similar(path: Path) -> str | None:
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return None
    stems = {Path(name).stem: name for name in names}
    close = get_close_matches(path.stem, stems, 1)
    return f"did you mean {path.with_name(stems[close[0]])}?" if close else None
