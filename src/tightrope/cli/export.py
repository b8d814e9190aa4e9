"""`tightrope export MODEL -o FILE`: write a model in another format; with --policy, a policy as code.

With `-o FILE.jani` a program is written as JANI, from the text of a model; a file of states and transitions
as a program of one automaton.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import UNSET, UnsetType

import tightrope as tr
from tightrope.cli import late
from tightrope.cli.options import MODEL_HELP, At, ModelOptions, declare, parse_constants, takes
from tightrope.cli.output import Rows, claim, common, group, print_facts, warn
from tightrope.cli.sources import Loaded, Question
from tightrope.errors import InputError
from tightrope.io.formats import Jani, PrismLanguage, format_of, writing_format
from tightrope.io.output import JANI as JANI_FILE
from tightrope.io.output import RULE as RULE_FILE
from tightrope.io.output import claim_file
from tightrope.io.results import read_result
from tightrope.learning.result_files import LEARNED, RESULT
from tightrope.loading import BENCHMARK, is_continuous
from tightrope.prism.expand.program import Program
from tightrope.problem import AnyModel, require_discrete
from tightrope.rules.code import format_of as rule_format
from tightrope.rules.code import write_rule
from tightrope.rules.rule import DecisionRule


class ExportAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`export`: what was written. A program that is written as JANI is not explored, so it has no sizes."""

    files: list[str]
    states: int | UnsetType = UNSET
    choices: int | UnsetType = UNSET
    transitions: int | UnsetType = UNSET
    seconds: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class ExportRequest(ModelOptions):
    """The options of the command; `model` is empty where none is named."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)] = ""
    output: Path | None = declare(
        "-o --output",
        "A .drn, .umb or .jani file, or the name (with or without .tra) of PRISM's explicit files; with "
        "--policy a .py, .c, .sql, .json, .md or .dot file, or standard output.",
        "FILE",
    )
    policy: str | None = declare(
        "--policy", "Write a policy as code: that of 'learn -o', or a file with the MODEL.", "DIR|FILE"
    )
    to: str | None = declare("--to", "The language of the code.", "python|c|sql|json|markdown|dot")
    at: At = None


@takes(ExportRequest, needs={"to": "policy"})
def export(request: ExportRequest) -> None:
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
    output = request.output
    if request.policy is not None:
        export_policy(request, request.policy)
        return
    if not request.model or output is None:
        missing = "--output" if request.model else "MODEL"
        hint = "tightrope export MODEL -o FILE, or --policy DIR --to c"
        raise InputError(f"{missing} is missing", hint=hint)
    form = writing_format(output)
    if form.name == "JANI":
        export_jani(request, output)
        return
    timed = is_continuous(request.model)
    if timed and not form.holds.rates:
        raise InputError(
            f"a chain in continuous time is not written as {form.name}",
            hint="write -o model.drn, .tra or .jani",
        )
    claimed = form.claim(output, common.overwrite)
    question = Question.of(replace(request, model=_find_learned(request.model)))
    loaded = question.load(timed=True, quiet=timed)
    begin = time.perf_counter()
    written = claimed.write(_at_point(loaded, request.at, not form.holds.parameters))
    structure = loaded.model.structure
    sizes = {name: getattr(structure, name) for name in ("states", "choices", "transitions")}
    seconds = {"build": loaded.seconds, "write": time.perf_counter() - begin}
    answer = ExportAnswer(files=[str(file) for file in written], **sizes, seconds=seconds)
    if timed:
        del sizes["choices"]
    size = ("size", ", ".join(f"{group(number)} {name}" for name, number in sizes.items()))
    print_facts(request.model, [size, ("written", written)], answer)


def export_policy(request: ExportRequest, place: str) -> None:
    """Write a policy as code, to a file or to standard output."""
    begin, output = time.perf_counter(), request.output
    if output is None and request.to is None:
        raise InputError("the language of the code is missing", hint="add --to python, or -o policy.py")
    language = rule_format(output or Path("-"), request.to)
    claimed = claim(output, RULE_FILE)
    rule = _rule(request, place)
    text = write_rule(rule, language)
    if claimed is None:
        sys.stdout.write(text)
        return
    claimed.write(text)
    answer = ExportAnswer(files=[str(output)], seconds={"write": time.perf_counter() - begin})
    size = f"a tree with {rule.nodes} tests" if rule.tree is not None else f"{len(rule.table or ()):,} rows"
    print_facts(place, [("policy", size), ("written", output)], answer)


def _rule(request: ExportRequest, place: str) -> DecisionRule:
    """The tree in a directory, else its policy or that of the file as a table."""
    folder = Path(place)
    if request.model:
        return tr.Policy(Question.of(request).load().model, place).as_rule()
    if not folder.is_dir():
        raise InputError(
            f"{place} is no directory of 'learn -o'", hint="name the MODEL of a policy file as well"
        )
    saved, controller = tr.load_result(folder), folder / "robust-controller.json"
    if not isinstance(tree := saved.outcome.tree, UnsetType):
        return tree
    policy = tr.Policy(saved.model, controller) if controller.is_file() else saved.policy
    return policy.as_rule()


def _find_learned(model: str) -> str:
    """The learned model in a directory of results; any other name as it is."""
    folder = Path(model)
    if not (folder / RESULT).is_file():
        return model
    if (folder / f"{LEARNED}.drn").is_file():
        return str(folder / f"{LEARNED}.drn")
    kinds = sorted(inner.parent.name for inner in folder.glob(f"*/{LEARNED}.drn"))
    if not kinds and all(one.sets == "coupled" for one in read_result(folder / RESULT).results):
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


def _at_point(loaded: Loaded, at: str | None, numbers_only: bool) -> AnyModel:
    """Instantiate the model if a point is given, or if the format needs one."""
    model = loaded.model
    if not isinstance(model, tr.ParametricMDP | tr.ParametricCTMC):
        loaded.point(at)  # there is none: one that is given is refused
        return model
    needed = numbers_only if model.parameters.names else isinstance(model, tr.ParametricCTMC)
    return model.instantiate(loaded.point(at)) if needed or at is not None else model


def export_jani(request: ExportRequest, output: Path) -> None:
    """Write the program; `--at` gives parameters values, as constants."""
    from tightrope.io.jani.write import write_jani

    if request.param or request.domain:
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
    rows: Rows = [
        ("modules", len(program.modules)),
        ("parameters", ", ".join(program.parameters) or "none"),
        ("written", output),
    ]
    print_facts(request.model, rows, ExportAnswer(files=[str(output)], seconds=seconds))


def _program(request: ExportRequest) -> tuple[Program, str | None]:
    """The program, and the domain of its parameters where the model brings one."""
    constants = {**parse_constants(request.const), **parse_constants(request.at and [request.at])}
    if request.model.startswith(BENCHMARK):
        if request.const:
            raise InputError("--const cannot be used with a benchmark, which has arguments")
        instance = late.suite.parse_bench(request.model)
        constants.update({name: str(value) for name, value in instance.constants.items()})
        return late.load.read_program(instance.path, constants), instance.domain
    path = Path(request.model)
    form = format_of(path)
    if isinstance(form, PrismLanguage):
        return late.load.read_program(path, constants), None
    if isinstance(form, Jani):
        from tightrope.io.jani.read import read_program as read_jani_program

        return read_jani_program(path, constants), None
    from tightrope.io.jani.write import as_program

    timed = is_continuous(request.model)
    if timed and request.const:
        raise InputError("--const requires a PRISM or JANI model")
    loaded = Question.of(replace(request, const=None)).load(timed=True, quiet=timed)
    model = loaded.model
    if isinstance(model, tr.ParametricCTMC):
        return as_program(model, request.model, constants), model.parameters.text() or None
    if request.at is not None and isinstance(model, tr.ParametricMDP):
        model = model.instantiate(loaded.point(request.at))
    domain = model.parameters.text() if isinstance(model, tr.ParametricMDP) else None
    return as_program(require_discrete(model), request.model), domain
