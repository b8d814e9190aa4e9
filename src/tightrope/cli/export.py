"""`tightrope export MODEL -o FILE`: write a model in another format; with --policy, a policy as code.

With `-o FILE.jani` a program is written as JANI, from the text of a model; a file of states and transitions
as a program of one automaton.
"""

from __future__ import annotations

import json as json_text
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import UNSET, UnsetType

from tightrope.atomic import atomic_write
from tightrope.cli.options import MODEL_HELP, At, Const, Domain, Param, option, parse_constants
from tightrope.cli.output import common, group, print_facts, warn
from tightrope.cli.sources import LoadedModel, TimedModel, load_model, load_timed
from tightrope.errors import InputError
from tightrope.io.formats import Jani, PrismLanguage
from tightrope.io.output import JANI as JANI_FILE
from tightrope.io.output import RULE as RULE_FILE
from tightrope.io.output import claim_file
from tightrope.io.registry import format_of, writing_format
from tightrope.learning.result_files import LEARNED, RESULT
from tightrope.loading import BENCHMARK, is_continuous
from tightrope.model.continuous import CTMC, ParametricCTMC
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.prism.expand.program import Program
from tightrope.problem import Model as AnyModel
from tightrope.rules.code import format_of as rule_format
from tightrope.rules.code import write_rule
from tightrope.rules.rule import DecisionRule
from tightrope.saved import load_result


class ExportAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`export`: what was written. A program that is written as JANI is not explored, so it has no sizes."""

    files: list[str]
    states: int | UnsetType = UNSET
    choices: int | UnsetType = UNSET
    transitions: int | UnsetType = UNSET
    seconds: dict[str, float]


Output = Annotated[
    Path | None,
    option(
        "-o --output",
        "A .drn, .umb or .jani file, or the name (with or without .tra) of PRISM's explicit files; with "
        "--policy a .py, .c, .sql, .json, .md or .dot file, or standard output.",
        "FILE",
    ),
]
PolicyPlace = Annotated[
    str | None,
    option("--policy", "Write a policy as code: that of 'learn -o', or a file with the MODEL.", "DIR|FILE"),
]
To = Annotated[str | None, option("--to", "The language of the code.", "python|c|sql|json|markdown|dot")]
MaybeModel = Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL_HELP)]


def export(
    model: MaybeModel = None,
    output: Output = None,
    policy: PolicyPlace = None,
    to: To = None,
    at: At = None,
    const: Const = None,
    param: Param = None,
    domain: Domain = None,
) -> None:
    """Write a model in another format: Storm's DRN, PRISM's explicit files, UMB, or JANI.

    With --policy a policy is written as code without dependencies: a decision tree if 'learn --tree' found
    one, else a table. Policies with a memory take it as an argument, and give the next one.

    DRN files keep parameters unless --at picks a point. Explicit files and UMB need a point; the default for
    benchmarks is the true parameters. A directory of 'tightrope learn -o' stands for its learned interval
    model. In JANI, PRISM and JANI programs and benchmarks stay programs; DRN and explicit files become one
    automaton.

    Example: tightrope export model.prism --const n=50 -o model.drn

    Example: tightrope export --policy results --to c -o policy.c
    """
    if policy is not None:
        export_policy(PolicyRequest(policy, model, const, param, domain), output, to)
        return
    if model is None or output is None:
        missing = "MODEL" if model is None else "--output"
        raise InputError(
            f"{missing} is missing", hint="tightrope export MODEL -o FILE, or --policy DIR --to c"
        )
    if to is not None:
        raise InputError("--to is about policies, and --policy is missing", hint="--policy DIR")
    form = writing_format(output)
    if form.name == "JANI":
        export_jani(JaniRequest(model, const, at, param or domain), output)
        return
    timed = is_continuous(model)
    if timed and not form.holds.rates:
        raise InputError(
            f"a chain in continuous time is not written as {form.name}",
            hint="write -o model.drn, .tra or .jani",
        )
    claimed = form.claim(output, common.overwrite)
    loaded: LoadedModel | TimedModel
    if timed:
        loaded = load_timed(model, const, param, domain, quiet=True)
    else:
        loaded = load_model(_find_learned(model), const, param, domain)
    begin = time.perf_counter()
    written = claimed.write(_at_point(loaded, at, not form.holds.parameters))
    structure = loaded.model.structure
    sizes = {name: getattr(structure, name) for name in ("states", "choices", "transitions")}
    seconds = {"build": loaded.seconds, "write": time.perf_counter() - begin}
    answer = ExportAnswer(files=[str(file) for file in written], **sizes, seconds=seconds)
    if timed:
        del sizes["choices"]
    size = ("size", ", ".join(f"{group(number)} {name}" for name, number in sizes.items()))
    print_facts(model, [size, *(("written", str(file)) for file in written)], answer)


@dataclass(frozen=True)
class PolicyRequest:
    """The policy to write: a directory of results, or a file with the model that it is of."""

    place: str
    model: str | None
    const: Sequence[str] | None
    param: str | None
    domain: str | None

    def rule(self) -> DecisionRule:
        """The tree in a directory, else its policy or that of the file as a table."""
        folder = Path(self.place)
        if self.model is not None:
            loaded = load_model(self.model, self.const, self.param, self.domain)
            return Policy(loaded.model, self.place).as_rule()
        if not folder.is_dir():
            raise InputError(
                f"{self.place} is no directory of 'learn -o'", hint="name the MODEL of a policy file as well"
            )
        saved, controller = load_result(folder), folder / "robust-controller.json"
        if not isinstance(tree := saved.outcome.tree, UnsetType):
            return tree
        policy = Policy(saved.model, controller) if controller.is_file() else saved.policy
        return policy.as_rule()


def export_policy(request: PolicyRequest, output: Path | None, to: str | None) -> None:
    """Write a policy as code, to a file or to standard output."""
    begin = time.perf_counter()
    if output is None and to is None:
        raise InputError("the language of the code is missing", hint="add --to python, or -o policy.py")
    language = rule_format(output or Path("-"), to)
    claimed = None if output is None else claim_file(output, RULE_FILE, common.overwrite)
    rule = request.rule()
    text = write_rule(rule, language)
    if claimed is None:
        sys.stdout.write(text)
        return
    with atomic_write(claimed.checked()) as file:
        file.write(text)
    seconds = {"write": time.perf_counter() - begin}
    size = f"a tree with {rule.nodes} tests" if rule.tree is not None else f"{len(rule.table or ()):,} rows"
    print_facts(
        request.place,
        [("policy", size), ("written", str(output))],
        ExportAnswer(files=[str(output)], seconds=seconds),
    )


def _find_learned(model: str) -> str:
    """The learned model in a directory of results; any other name as it is."""
    folder = Path(model)
    if not (folder / RESULT).is_file():
        return model
    if (folder / f"{LEARNED}.drn").is_file():
        return str(folder / f"{LEARNED}.drn")
    kinds = sorted(inner.parent.name for inner in folder.glob(f"*/{LEARNED}.drn"))
    if not kinds and _is_only_coupled(folder / RESULT):
        raise InputError(
            f"the results in {model} use coupled sets (one parameter vector for the whole run), which no "
            "interval model can represent",
            hint="learn with --sets rectangular or expression for an interval model around it",
        )
    if not kinds:
        raise InputError(
            f"the results in {model} were written without the learned model",
            hint="learn again with --export drn",
        )
    raise InputError(
        f"the results in {model} hold a learned model for each kind of sets: {', '.join(kinds)}",
        hint=f"name one: {folder / kinds[-1] / f'{LEARNED}.drn'}",
    )


def _is_only_coupled(result: Path) -> bool:
    """Whether all results of a directory are over the coupled set."""
    try:
        entries = json_text.loads(result.read_text(encoding="utf-8"))["results"]
        return all(entry["sets"] == "coupled" for entry in entries)
    except (ValueError, KeyError, TypeError):
        return False


def _at_point(
    loaded: LoadedModel | TimedModel, at: str | None, numbers_only: bool
) -> AnyModel | ParametricCTMC | CTMC:
    """The model itself, or the one at a point where that is asked for or the format needs it; a chain in
    continuous time without parameters is one at its only point."""
    model = loaded.model
    if isinstance(model, ParametricCTMC):
        has_point = not model.parameters.names or numbers_only
    else:
        has_point = isinstance(model, ParametricMDP) and bool(model.parameters.names) and numbers_only
    if at is None and not has_point:
        return model
    point = loaded.point(at)
    return model.instantiate(point) if isinstance(model, ParametricMDP | ParametricCTMC) else model


@dataclass(frozen=True)
class JaniRequest:
    """The model to write, with the options that say which; `ranges` are --param or --domain."""

    source: str
    const: Sequence[str] | None
    at: str | None
    ranges: str | None


def export_jani(request: JaniRequest, output: Path) -> None:
    """Write the program; `--at` gives parameters values, as constants."""
    from tightrope.io.jani.write import write_jani

    if request.ranges is not None:
        raise InputError(
            "--param and --domain cannot be used with JANI, which has no place for a domain",
            hint="give them when the file is read",
        )
    claimed = claim_file(output, JANI_FILE, common.overwrite)
    begin = time.perf_counter()
    program, domain = _program(request)
    built = time.perf_counter() - begin
    write_jani(program, claimed.checked())
    if program.parameters and domain is not None:
        warn(f"JANI has no place for the domain of the parameters; give it when reading: --domain '{domain}'")
    seconds = {"build": built, "write": time.perf_counter() - begin - built}
    parameters = ("parameters", ", ".join(program.parameters) or "none")
    modules = ("modules", str(len(program.modules)))
    answer = ExportAnswer(files=[str(output)], seconds=seconds)
    print_facts(request.source, [modules, parameters, ("written", str(output))], answer)


def _program(request: JaniRequest) -> tuple[Program, str | None]:
    """The program, and the domain of its parameters where the model brings one."""
    from tightrope.prism.load import read_program

    constants = parse_constants(request.const)
    if request.at is not None:
        fixed = parse_constants([request.at])
        constants = {**constants, **fixed}
    if request.source.startswith(BENCHMARK):
        from tightrope.benchmarks.suite import parse_bench

        if request.const:
            raise InputError("--const cannot be used with a benchmark, which has arguments")
        instance = parse_bench(request.source)
        constants.update({name: str(value) for name, value in instance.constants.items()})
        return read_program(instance.path, constants), instance.domain
    path = Path(request.source)
    form = format_of(path)
    if isinstance(form, PrismLanguage):
        return read_program(path, constants), None
    if isinstance(form, Jani):
        from tightrope.io.jani.read import read_program as read_jani_program

        return read_jani_program(path, constants), None
    from tightrope.io.jani.write import as_program

    if is_continuous(request.source):
        timed = load_timed(request.source, quiet=True)
        if request.const:
            raise InputError("--const requires a PRISM or JANI model")
        return as_program(timed.model, request.source, constants), timed.model.parameters.text() or None
    loaded = load_model(request.source, None, None, None)
    model = loaded.model
    if request.at is not None and isinstance(model, ParametricMDP):
        model = model.instantiate(loaded.point(request.at))
    domain = model.parameters.text() if isinstance(model, ParametricMDP) else None
    return as_program(model, request.source), domain
