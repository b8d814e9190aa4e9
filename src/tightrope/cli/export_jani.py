"""`tightrope export MODEL -o FILE.jani`: a program as JANI, from the text of a model; a file of states and
transitions as a program of one automaton.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tightrope.cli.options import parse_constants
from tightrope.cli.output import print_facts, print_json, warn
from tightrope.errors import InputError
from tightrope.formats.documents.answers import ExportAnswer
from tightrope.formats.output_file import claim_file
from tightrope.formats.written_by import JANI as JANI_FILE
from tightrope.loading import BENCHMARK, PRISM_SUFFIXES, is_continuous
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.text_reading import plain_suffix
from tightrope.prism.expand.program import Program


@dataclass(frozen=True)
class JaniRequest:
    """The model to write, with the options that say which; `ranges` are --param or --domain."""

    source: str
    const: Sequence[str] | None
    at: str | None
    ranges: str | None


def export_jani(request: JaniRequest, output: Path, overwrite: bool, json: bool) -> None:
    """Write the program; `--at` gives parameters values, as constants."""
    from tightrope.formats.jani import write_jani

    if request.ranges is not None:
        raise InputError(
            "--param and --domain do not go with JANI, which has no place for a domain",
            hint="give them when the file is read",
        )
    claimed = claim_file(output, JANI_FILE, overwrite)
    begin = time.perf_counter()
    program, domain = _program(request)
    built = time.perf_counter() - begin
    claimed.check()
    write_jani(program, output)
    if program.parameters and domain is not None:
        warn(f"JANI has no place for the domain of the parameters; give it when reading: --domain '{domain}'")
    if json:
        seconds = {"build": built, "write": time.perf_counter() - begin - built}
        print_json(ExportAnswer(files=[str(output)], seconds=seconds))
    else:
        facts = [
            ("modules", str(len(program.modules))),
            ("parameters", ", ".join(program.parameters) or "none"),
        ]
        print_facts(request.source, [*facts, ("written", str(output))])


def _program(request: JaniRequest) -> tuple[Program, str | None]:
    """The program, and the domain of its parameters where the model brings one."""
    from tightrope.prism.load import read_program

    constants = parse_constants(request.const)
    if request.at is not None:
        fixed = parse_constants([request.at])
        constants = {**constants, **fixed}
    if request.source.startswith(BENCHMARK):
        from tightrope.studies.suite import parse_bench

        if request.const:
            raise InputError("--const does not go with a benchmark: its constants follow from its arguments")
        instance = parse_bench(request.source)
        constants.update({name: str(value) for name, value in instance.constants.items()})
        return read_program(instance.path, constants), instance.domain
    path = Path(request.source)
    kind = plain_suffix(path)
    if kind in PRISM_SUFFIXES:
        return read_program(path, constants), None
    if kind == ".jani":
        from tightrope.formats.jani import read_program as read_jani_program

        return read_jani_program(path, constants), None
    from tightrope.cli.model_source import load_model
    from tightrope.formats.explicit_program import as_program

    if is_continuous(request.source):
        from tightrope.cli.timed_model import load_timed

        timed = load_timed(request.source, quiet=True)
        if request.const:
            raise InputError("--const does not go with this file: only PRISM and JANI models have constants")
        return as_program(timed.model, request.source, constants), timed.model.parameters.text() or None
    loaded = load_model(request.source, None, None, None)
    model = loaded.model
    if request.at is not None and isinstance(model, ParametricMDP):
        model = model.instantiate(loaded.point(request.at))
    domain = model.parameters.text() if isinstance(model, ParametricMDP) else None
    return as_program(model, request.source), domain
