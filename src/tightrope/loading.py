"""`load`: read a model from a file or a benchmark name.

| source | is read as |
|---|---|
| `file.prism`, `.nm`, `.pm`, `.sm`, `.ma` | a PRISM program |
| `file.jani` | JANI, the exchange format of tools for quantitative models |
| `file.drn` | Storm's explicit format |
| `file.prism.gz`, `file.drn.gz`, … | the same, compressed |
| `file.umb` | the binary exchange format of model checkers (needs the package umbi) |
| `file.tra`, or `file` where `file.tra` exists | PRISM's explicit files with that base name |
| `bench:NAME(ARGS)` | an instance of a benchmark family |

`tightrope.io.formats` lists all formats, including those of other packages.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from tightrope.errors import InputError, Location, check_type, describe, similar_file
from tightrope.io.formats import FileOptions, ModelFormat, format_of, formats, from_stormpy
from tightrope.model.continuous import MarkovAutomaton
from tightrope.model.numbers import Number
from tightrope.model.parameters import Ranges, box_text, narrow_domain
from tightrope.numerics.record import Record
from tightrope.numerics.text import GZIP
from tightrope.problem import AnyModel, Problem, constant_texts

if TYPE_CHECKING:
    from tightrope.benchmarks.instance import Instance
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.prism.explore.search import Judge, Progress, Warn
    from tightrope.prism.load import BuildWords
    from tightrope.prism.properties.query import Boundary

BENCHMARK = "bench:"


def load(
    source: str | os.PathLike[str] | object,
    *,
    const: Mapping[str, Number | bool] | None = None,
    params: Ranges | str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
) -> AnyModel:
    """Read a model from a file, or build a benchmark such as "bench:rover(10,10)".

    Parameters
    ----------
    source : str, path or object
        A PRISM, JANI, DRN, UMB or explicit file, or a benchmark; or a model of Storm's, without a domain.
    const : mapping
        Values of undefined constants of a PRISM or JANI file.
    params : mapping
        The range of each parameter, {"p": (0.1, 0.9)}; [0, 1] by default.
    domain : str
        Linear constraints on the parameters, "p+q<=1, 0.1<=p".
    progress : function of (states, transitions)
        Called now and then while a PRISM model is built.

    Returns
    -------
    ParametricMDP, IntervalMDP, MDP, ParametricCTMC, MarkovAutomaton or POMDP
        A `ctmc` file gives a `ParametricCTMC` (parameters in [0, 1000] by default), an `ma` file a
        `MarkovAutomaton`. Warnings report deadlocks and similar findings.

    Examples
    --------
    >>> import tightrope as tr
    >>> model = tr.load("bench:betting(5)", params={"p": (0.4, 0.6)})
    >>> model.states, model.parameters.text()
    (225, '2/5<=p<=3/5, 0<=q<=201/20000')
    """
    if domain is not None:
        check_type("domain", domain, str, "a text such as 'p+q<=1'")
    if progress is not None:
        check_type("progress", progress, Callable, "a function of the numbers of states and transitions")
    if hasattr(source, "nr_states"):
        return from_stormpy(source, params=params, domain=domain)
    request = ModelRequest(_name_of(source), constant_texts(const), params, domain, untimed=True, timed=True)
    read = read_model(request, progress, _warn)
    return read.automaton or read.model


@dataclass(frozen=True)
class ModelRequest:
    """The model that is asked for. `params` and `domain` may be texts: `p=0.1:0.9` and `p+q<=1`.

    A PRISM program is not explored beyond the `boundary` of a question, if one is given, nor when the `judge`
    of the question has seen enough.
    """

    source: str
    constants: Mapping[str, str]
    params: Ranges | str | None = None
    domain: str | None = None
    boundary: Boundary | None = None
    untimed: bool = False
    """Only what does not refer to time is asked, so that a Markov automaton's MDP of jumps will do."""
    timed: bool = False
    """Chains in continuous time are wanted as well."""
    judge: Judge | None = None

    def options(self, progress: Progress | None, warn: Warn | None) -> FileOptions:
        """What is said beside a file."""
        words = {"box": box_text(self.params), "domain": self.domain, "progress": progress, "warn": warn}
        question = {"boundary": self.boundary, "judge": self.judge}
        return FileOptions(self.constants, cast("BuildWords", {**words, **question}))


@dataclass(frozen=True)
class ReadModel:
    """A model, and the benchmark instance it is, if any."""

    model: AnyModel
    benchmark: Instance | None = None
    is_partial: bool = False
    """Whether only the states that a question needs were built."""
    automaton: MarkovAutomaton | None = None
    """The Markov automaton whose MDP of jumps the model is."""


def read_model(
    request: ModelRequest, progress: Progress | None = None, warn: Warn | None = None
) -> ReadModel:
    """Build the model that is asked for."""
    if request.source.startswith(BENCHMARK):
        from tightrope.benchmarks.suite import load as build

        instance = _instance(request)
        return ReadModel(build(instance, progress), instance)
    path, form = _existing(request.source)
    options = request.options(progress, warn)
    form.check(path, options)
    _check_time(request, path, form.type_of(path))
    model, is_partial = form.build(path, options)
    if isinstance(automaton := model, MarkovAutomaton):
        return ReadModel(automaton.untimed, automaton=automaton)
    return ReadModel(model, is_partial=is_partial)


def _check_time(request: ModelRequest, path: Path, kind: str) -> None:
    """Refuse models in continuous time where these are not wanted."""
    if kind == "ctmc" and not request.timed:
        raise InputError(
            "this is a model in continuous time (ctmc), and models in discrete time are required here",
            Location(str(path)),
            hint="check, info, export, sample and learn take such models, in Python tr.load and tr.solve",
        )
    if kind == "ma" and not request.untimed:
        raise InputError(f"{path.name} is a Markov automaton: only 'check' and tr.solve take it")
    if kind == "ma" and (request.params is not None or request.domain is not None):
        given = "domain" if request.params is None else "params"
        raise InputError(f"`{given}` cannot be used: the Markov automata of {path.name} have no parameters")


def is_continuous(source: str) -> bool:
    """Whether a model's name is that of a file in continuous time which is there."""
    return type_of(source) == "ctmc"


def type_of(source: str) -> str:
    """What the file of this name calls its model, such as "mdp", "ctmc" or "ma"; empty without a file."""
    path, form = _find(source)
    return "" if form is None else form.type_of(path)


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark(Record):
    """A case study that comes with the package: its model, its question, and its true parameters.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> bench.problem.text, bench.truth["p"]
    ('Rmax=? [ F "done" ]', Fraction(11, 20))
    """

    name: str
    problem: Problem
    truth: Mapping[str, Number]
    episode_cap: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", MappingProxyType(dict(self.truth)))

    @property
    def model(self) -> ParametricMDP:
        """The parametric model."""
        from tightrope.model.parametric_mdp import ParametricMDP

        assert isinstance(self.problem.model, ParametricMDP)
        return self.problem.model

    @property
    def at_truth(self) -> Problem:
        """The same question about the true model."""
        return self.problem.at(self.truth)


def benchmark(
    name: str,
    *,
    params: Ranges | str | None = None,
    domain: str | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """Build an instance of a benchmark family.

    Parameters
    ----------
    name : str
        Such as "rover(10,10)".
    params, domain, progress
        As for `load`.

    Returns
    -------
    Benchmark
        The problem and its true parameters.

    Examples
    --------
    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> bench.model.states, bench.problem.text
    (225, 'Rmax=? [ F "done" ]')
    """
    source = name if _name_of(name).startswith(BENCHMARK) else f"{BENCHMARK}{name}"
    read = read_model(ModelRequest(source, {}, params, domain), progress, _warn)
    instance = read.benchmark
    assert instance is not None
    problem = Problem(read.model, instance.property_text, terminal_reward=instance.terminal_reward)
    truth = dict(zip(instance.parameter_names, instance.truth, strict=True))
    return Benchmark(instance.name, problem, truth, instance.episode_cap)


def _name_of(source: Any) -> str:
    try:
        name = os.fspath(source)
    except TypeError:
        raise InputError(
            f"`source` is {describe(source)}, not the name of a model", hint=accepted()
        ) from None
    return name if isinstance(name, str) else os.fsdecode(name)


def _instance(request: ModelRequest) -> Instance:
    from tightrope.benchmarks.suite import parse_bench

    instance = parse_bench(request.source)
    if request.constants:
        raise InputError(
            f"`const` cannot be used with {request.source}: its arguments determine its constants",
            hint=f"the model itself is the file {instance.path}",
        )
    if request.params is None and request.domain is None:
        return instance
    within = narrow_domain(instance.parameters(), box_text(request.params), request.domain)
    return replace(instance, domain=within.text())


def accepted() -> str:
    """What names of models look like."""
    known = ("PRISM", "JANI", "DRN", "UMB", "explicit")
    others = [f"{form.suffixes[0]} ({form.name})" for form in formats() if form.name not in known]
    more = f", {', '.join(others)}" if others else ""
    return (
        "a model is a .prism/.nm/.pm file, a .jani, .drn or .umb file, explicit files (.tra)"
        f"{more}, or bench:NAME(ARGS)"
    )


def _find(source: str) -> tuple[Path, ModelFormat | None]:
    """The file that a name stands for, and its format; none where there is no such file."""
    path = Path(source)
    if not path.is_file():
        path = Path(f"{source}.tra")
    return path, None if source.startswith(BENCHMARK) or not path.is_file() else format_of(path)


def _existing(source: str) -> tuple[Path, ModelFormat]:
    """The file to read and its format, or an error that says what is wrong with the name."""
    if not source.strip():
        raise InputError("the name of the model is empty", hint=accepted())
    path, form = _find(source)
    if not path.is_file():
        path = Path(source)
        kind = "a directory, not a model" if path.is_dir() else "not a regular file"
        what = f"{source} is {kind}" if path.exists() else f"there is no file {source}"
        raise InputError(
            what, hint=similar_file(path if path.suffix else path.with_suffix(".prism")) or accepted()
        )
    if path.suffix == GZIP and (form is None or not form.holds.compressed):
        packed = [one.name for one in formats() if one.holds.compressed]
        raise InputError(
            f"cannot tell what {source} is: only {', '.join(packed[:-1])} and {packed[-1]} files are read "
            "compressed",
            hint="name it m.prism.gz or m.drn.gz, or decompress it",
        )
    if form is None:
        ending = f"files ending in '{path.suffix}'" if path.suffix else "files without an ending"
        raise InputError(f"cannot tell what {source} is: {ending} are not known", hint=accepted())
    return path, form


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)
