"""The formats of model files that come with the package: what each holds, and who reads and writes it."""

from __future__ import annotations

import re
from abc import abstractmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from tightrope.errors import InputError
from tightrope.io import output
from tightrope.io.registry import EXPLICIT, Capabilities, FileModel, FileOptions, ModelFormat, ModelOutput
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Ranges, box_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import Structured
from tightrope.numerics.text import read_program_text

if TYPE_CHECKING:
    from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC
    from tightrope.prism.load import PrismModel, PrismRates

_ASIDE = re.compile(r'//[^\n]*|"[^"\n]*"')
_CONTINUOUS = re.compile(r"\b(ctmc|stochastic)\b")
_AUTOMATON = re.compile(r"\bma(?=\s+(module|const|formula|global|label|rewards|init|system)\b)")


T = TypeVar("T")


def _call(function: str, *given: object, **named: object) -> T:  # type: ignore[type-var]
    """What a function gives that reads or writes a format; its module is imported when it is needed."""
    module, _, name = function.rpartition(".")
    result: T = getattr(import_module(f"tightrope.{module}"), name)(*given, **named)
    return result


def _rates(chain: ParametricCTMC) -> PrismRates:
    return _call("prism.load.PrismRates", chain)


class FileFormat(ModelFormat):
    """Files whose type `tightrope.io.<folder>.read.declared_type` finds."""

    folder: ClassVar[str]

    def type_of(self, path: Path) -> str:
        return _call(f"io.{self.folder}.read.declared_type", path)


class Programs(FileFormat):
    """Programs, which `_built` reads and builds."""

    def read(self, path: Path, options: FileOptions) -> FileModel:
        return self.build(path, options)[0]

    def build(self, path: Path, options: FileOptions) -> tuple[FileModel, bool]:
        read: PrismModel = self._built("build_model", path, options)
        return read.model, read.is_partial

    def read_automaton(self, path: Path, options: FileOptions) -> MarkovAutomaton:
        return self._built("build_automaton", path, options)

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        return self._built("build_rates", path, options)

    @abstractmethod
    def _built(self, build: str, path: Path, options: FileOptions) -> T: ...  # type: ignore[type-var]


class PrismLanguage(Programs):
    """Programs in the PRISM language; models of states and transitions are not written as such."""

    name = "PRISM"
    suffixes = (".prism", ".nm", ".pm", ".sm", ".ma")
    holds = Capabilities(
        constants=True, parameters=True, intervals=True, exact=True, rates=True, compressed=True, writes=False
    )

    def _built(self, build: str, path: Path, options: FileOptions) -> T:  # type: ignore[type-var]
        program: object = _call("prism.load.read_program", path, options.constants)
        return _call(f"prism.load.{build}", program, **options.words)

    def type_of(self, path: Path) -> str:
        text = _ASIDE.sub(" ", read_program_text(path))  # without comments and quoted names
        return "ctmc" if _CONTINUOUS.search(text) else "ma" if _AUTOMATON.search(text) else ""


class Jani(Programs):
    """Programs; a model of states and transitions is written as one of a single automaton."""

    name, mark, folder = "JANI", output.JANI, "jani"
    suffixes = (".jani",)
    holds = Capabilities(constants=True, parameters=True, exact=True, rates=True, compressed=True)

    def _built(self, build: str, path: Path, options: FileOptions) -> T:  # type: ignore[type-var]
        return _call("io.jani.read.built", build, path, options.constants, **options.words)

    def write(self, model: Structured, path: Path) -> list[Path]:
        program: object = _call("io.jani.write.as_program", model, "the model")
        _call("io.jani.write.write_jani", program, path)
        return [path]


class Drn(FileFormat):
    """Storm's explicit format."""

    name, mark, folder = "DRN", output.DRN, "drn"
    suffixes = (".drn",)
    holds = Capabilities(
        parameters=True, intervals=True, exact=True, rates=True, compressed=True, observations=True
    )

    def read(self, path: Path, options: FileOptions) -> FileModel:
        about = {"box": options.box, "domain": options.domain, "progress": options.words.get("progress")}
        return _call("io.drn.read.read_drn", path, **about)

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        return _rates(_call("io.drn.read.read_rates_drn", path, options.box, options.domain))

    def read_automaton(self, path: Path, options: FileOptions) -> MarkovAutomaton:
        return _call("io.drn.read.read_automaton_drn", path)

    def write(self, model: Structured, path: Path) -> list[Path]:
        _call("io.drn.write.write_drn", model, path)
        return [path]


def umb_is_available() -> bool:
    """Whether the package umbi is installed."""
    return find_spec("umbi") is not None


class Umb(ModelFormat):
    """The binary exchange format of model checkers; it needs the package umbi."""

    name, mark = "UMB", output.UMB
    suffixes = (".umb",)
    holds = Capabilities(intervals=True)

    def read(self, path: Path, options: FileOptions) -> FileModel:
        return _call("io.umb.read_umb", path)

    def write(self, model: Structured, path: Path) -> list[Path]:
        _call("io.umb.write_umb", model, path)
        return [path]


class Explicit(FileFormat):
    """PRISM's explicit files; a name without an ending is the base of theirs."""

    name, folder = "explicit", "explicit"
    suffixes = EXPLICIT
    holds = Capabilities(intervals=True, rates=True)

    def read(self, path: Path, options: FileOptions) -> FileModel:
        return _call("io.explicit.read.read_explicit", path)

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        return _rates(_call("io.explicit.read.read_explicit", path, True))

    def write(self, model: Structured, path: Path) -> list[Path]:
        return _call("io.explicit.write.write_explicit", model, path)

    def claim(self, path: Path, overwrite: bool = False) -> ModelOutput:
        return _call("io.explicit.write.claim_explicit", path, overwrite)


BUILT_IN = (PrismLanguage, Jani, Drn, Umb, Explicit)

StormModel = ParametricMDP | IntervalMDP | MDP | POMDP
"""Models that stormpy, Storm's Python package (an optional extra), has as well; exchanged as DRN files."""


def to_stormpy(model: StormModel) -> object:
    """Convert a model to stormpy: over rational functions, intervals, or doubles.

    Parameters
    ----------
    model : ParametricMDP, IntervalMDP, MDP or POMDP
        The model to convert.

    Returns
    -------
    object
        A sparse model of stormpy.

    >>> import tightrope as tr
    >>> storm = tr.to_stormpy(tr.load("bench:betting(5)"))  # doctest: +SKIP
    >>> storm.nr_states, storm.has_parameters  # doctest: +SKIP
    (225, True)
    """
    stormpy = _stormpy()
    if not isinstance(model, StormModel):
        raise InputError(f"`model` is a {type(model).__name__}, not a model of tightrope")
    behind = model.model if isinstance(model, POMDP) else model
    if isinstance(behind, IntervalMDP):
        number = stormpy.RationalInterval
    elif isinstance(behind, ParametricMDP):
        number = stormpy.RationalFunction if behind.parameters.names else stormpy.Rational
    else:
        number = float
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.drn"
        _call("io.drn.write.write_drn", model, file)
        return stormpy.build_model_from_drn[number](str(file), options=options)


def from_stormpy(
    storm: object, *, params: Ranges | str | None = None, domain: str | None = None
) -> StormModel:
    """A model of Storm's as ours; it knows no domain, so `params` and `domain` are those of `load`."""
    stormpy = _stormpy()
    options = stormpy.io.DirectEncodingExporterOptions()
    options.allow_placeholders = True
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.drn"
        stormpy.io.export_to_drn(storm, str(file), options=options)
        try:
            return _call("io.drn.read.read_drn", file, box=box_text(params), domain=domain)
        except InputError as error:  # without the name of a file that nobody knows
            raise InputError(error.message, hint=error.hint) from None


def _stormpy() -> ModuleType:
    try:
        import stormpy
        import stormpy.io
    except ImportError:
        raise InputError(
            "models of Storm need the package stormpy", hint="pip install 'tightrope[storm]'"
        ) from None
    return cast(ModuleType, stormpy)
