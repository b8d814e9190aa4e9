"""The formats of model files: one class each, found by the ending of a file's name.

A `ModelFormat` says what it is called, which endings it has, what it can hold, and how files are read and
written. Everything that reads or writes models asks here: `tr.load`, `model.save`, `tightrope export`, the
messages that list what is known. Another package adds a format by an entry point:

    [project.entry-points."tightrope.formats"]
    mine = "my_package.my_format:MyFormat"

Classes are light: what reads and writes is imported when a file is read or written. `BUILT_IN` are those that
come with the package.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, TypeVar, cast

from tightrope.atomic import path_of
from tightrope.errors import InputError
from tightrope.io import output
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Ranges, box_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import Structured
from tightrope.numerics.text import plain_suffix, read_program_text

if TYPE_CHECKING:
    from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC
    from tightrope.prism.load import BuildWords, BuiltModel


FileModel: TypeAlias = "ParametricMDP | IntervalMDP | MDP | POMDP | ParametricCTMC | MarkovAutomaton"
"""A model as files hold it."""

GROUP = "tightrope.formats"
_NO_WORDS: BuildWords = {}

EXPLICIT = (".tra",)
"""A name without an ending is the base of PRISM's explicit files, where it is written to."""


@dataclass(frozen=True)
class Capabilities:
    """What files of a format can hold, beside states, choices, labels, rewards and plain numbers."""

    constants: bool = False
    """Constants that get their values when the file is read, as in programs."""
    parameters: bool = False
    intervals: bool = False
    exact: bool = False
    """Rational numbers as they are, not the nearest doubles."""
    rates: bool = False
    """Chains in continuous time."""
    compressed: bool = False
    """Files that end in .gz are read, too."""
    observations: bool = False
    """What a controller sees of the states."""
    writes: bool = True


@dataclass(frozen=True)
class FileOptions:
    """What is said beside a file: values of constants, and what builders of programs take."""

    constants: Mapping[str, str] = field(default_factory=dict)
    words: BuildWords = field(default_factory=lambda: _NO_WORDS)

    @property
    def box(self) -> str | None:
        """Ranges of parameters, `p=0.1:0.9`."""
        return self.words.get("box")

    @property
    def domain(self) -> str | None:
        """Linear constraints on parameters, `p+q<=1`."""
        return self.words.get("domain")


class ModelOutput(Protocol):
    """Files that may be written, as far as is known."""

    def write(self, model: Structured) -> list[Path]:
        """Write a model; the files that were written."""


@dataclass(frozen=True)
class SingleFile:
    """One file of a format, claimed before anything is computed."""

    form: ModelFormat
    file: output.OutputFile

    def write(self, model: Structured) -> list[Path]:
        return self.form.write(model, self.file.checked())


class ModelFormat(ABC):
    """A format of model files."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    holds: ClassVar[Capabilities]
    mark: ClassVar[output.FileKind | None] = None
    """How files that tightrope wrote are known."""

    @abstractmethod
    def read(self, path: Path, options: FileOptions) -> FileModel:
        """The model in a file, in discrete or continuous time."""

    def build(self, path: Path, options: FileOptions) -> tuple[FileModel, bool]:
        """The model, and whether only the states were built that a question needs."""
        return self.read(path, options), False

    def type_of(self, path: Path) -> str:
        """The type of the model in a file as far as that matters: "ctmc", "ma", or another one."""
        return ""

    def write(self, model: Structured, path: Path) -> list[Path]:
        """Write a model; the files that were written."""
        raise InputError(f"{self.name} files are not written", hint=f"write {_listed(writable())}")

    def is_ours(self, path: Path) -> bool:
        """Whether a file is recognisably one that tightrope wrote, and may be replaced."""
        return self.mark is not None and self.mark.is_ours(path)

    def claim(self, path: Path, overwrite: bool = False) -> ModelOutput:
        """Refuse files that must not be written, before anything is computed."""
        return SingleFile(
            self, output.claim_file(path, output.FileKind(f"{self.name} file", self.is_ours), overwrite)
        )

    def check(self, path: Path, options: FileOptions) -> None:
        """Refuse what is said beside a file and has no place in this format."""
        if options.constants and not self.holds.constants:
            named = " and ".join(form.name for form in formats() if form.holds.constants)
            raise InputError(f"`const` cannot be used with {path.name}: only {named} models have constants")
        for argument, given in (("params", options.box), ("domain", options.domain)):
            if given is not None and not self.holds.parameters:
                raise InputError(
                    f"`{argument}` cannot be used with {path.name}: {self.name} files have no parameters"
                )


@cache
def own_formats() -> tuple[ModelFormat, ...]:
    """The formats of this package; to look for those of others takes 40 ms."""
    return tuple(form() for form in BUILT_IN)


@cache
def formats() -> tuple[ModelFormat, ...]:
    """All formats: ours first, then those of other packages by their names."""
    return with_plugins(own_formats(), GROUP, ModelFormat, "format of models")


class HasEndings(Protocol):
    """A format of files."""

    @property
    def suffixes(self) -> tuple[str, ...]: ...


Form = TypeVar("Form", bound=HasEndings)


def with_plugins(own: Sequence[Form], group: str, kind: type[object], what: str) -> tuple[Form, ...]:
    """Formats, and behind them those of other packages' entry points by their names."""
    from importlib.metadata import entry_points

    known = [*own]
    suffixes = {suffix for form in known for suffix in form.suffixes}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        form = cast(Form, entry.load()())
        if not isinstance(form, kind) or suffixes & set(form.suffixes):
            raise InputError(
                f"the entry point '{entry.name}' of '{group}' is no {what} with endings of its own"
            )
        suffixes.update(form.suffixes)
        known.append(form)
    return tuple(known)


def format_of(path: str | Path) -> ModelFormat | None:
    """The format of a file by its ending, that of a compressed one included; None where it is not known."""
    suffix = plain_suffix(Path(path))
    of_suffix = (form for known in (own_formats, formats) for form in known() if suffix in form.suffixes)
    return next(of_suffix, None)


def writable() -> Iterator[ModelFormat]:
    """The formats that models are written in."""
    return (form for form in formats() if form.holds.writes)


def writing_format(path: str | Path) -> ModelFormat:
    """The format to write a file in, by its ending; no ending stands for PRISM's explicit files."""
    suffix = Path(path).suffix
    for form in writable():
        if suffix in form.suffixes or (not suffix and form.suffixes == EXPLICIT):
            return form
    raise InputError(
        f"cannot tell which format {path} should have",
        hint=f"write {_listed(writable())} (or no ending) for PRISM's explicit files",
    )


def _listed(known: Iterator[ModelFormat]) -> str:
    names = [f"model{form.suffixes[0]} for {form.name}" for form in known if form.suffixes != EXPLICIT]
    return f"{', '.join(names)}, model.tra"


def save_model(model: Structured, path: str | PathLike[str]) -> list[Path]:
    """Write a model in the format that the ending of the name says; the files that were written."""
    place = path_of(path)
    form = writing_format(place)
    if hasattr(model, "observation") and not form.holds.observations:
        raise InputError(f"{form.name} files hold no observations", hint="write the model as .drn")
    if getattr(model, "pace", 1) > 1:
        raise InputError("no file format marks the readings of a sensor, which are not steps of the model")
    return form.write(model, place)


_ASIDE = re.compile(r'//[^\n]*|"[^"\n]*"')
_CONTINUOUS = re.compile(r"\b(ctmc|stochastic)\b")
_AUTOMATON = re.compile(r"\bma(?=\s+(module|const|formula|global|label|rewards|init|system)\b)")


T = TypeVar("T")


def _call(function: str, *given: object, **named: object) -> T:  # type: ignore[type-var]
    """What a function gives that reads or writes a format; its module is imported when it is needed."""
    module, _, name = function.rpartition(".")
    result: T = getattr(import_module(f"tightrope.{module}"), name)(*given, **named)
    return result


class FileFormat(ModelFormat):
    """Files whose type `declared_type` of their reader finds."""

    reader: ClassVar[str]

    def type_of(self, path: Path) -> str:
        return _call(f"{self.reader}.declared_type", path)


class Programs(FileFormat):
    """Programs, of which `reader` has `built`."""

    def read(self, path: Path, options: FileOptions) -> FileModel:
        return self.build(path, options)[0]

    def build(self, path: Path, options: FileOptions) -> tuple[FileModel, bool]:
        read: BuiltModel = _call(f"{self.reader}.built", path, options.constants, **options.words)
        return read.model, read.is_partial


class PrismLanguage(Programs):
    """Programs in the PRISM language; models of states and transitions are not written as such."""

    name, reader = "PRISM", "prism.load"
    suffixes = (".prism", ".nm", ".pm", ".sm", ".ma")
    holds = Capabilities(
        constants=True, parameters=True, intervals=True, exact=True, rates=True, compressed=True, writes=False
    )

    def type_of(self, path: Path) -> str:
        text = _ASIDE.sub(" ", read_program_text(path))  # without comments and quoted names
        return "ctmc" if _CONTINUOUS.search(text) else "ma" if _AUTOMATON.search(text) else ""


class Jani(Programs):
    """Programs; a model of states and transitions is written as one of a single automaton."""

    name, mark, reader = "JANI", output.JANI, "io.jani.read"
    suffixes = (".jani",)
    holds = Capabilities(constants=True, parameters=True, exact=True, rates=True, compressed=True)

    def write(self, model: Structured, path: Path) -> list[Path]:
        program: object = _call("io.jani.write.as_program", model, "the model")
        _call("io.jani.write.write_jani", program, path)
        return [path]


class Drn(FileFormat):
    """Storm's explicit format."""

    name, mark, reader = "DRN", output.DRN, "io.drn.read"
    suffixes = (".drn",)
    holds = Capabilities(
        parameters=True, intervals=True, exact=True, rates=True, compressed=True, observations=True
    )

    def read(self, path: Path, options: FileOptions) -> FileModel:
        about = {"box": options.box, "domain": options.domain, "progress": options.words.get("progress")}
        return _call("io.drn.read.read_drn", path, **about)

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

    name, reader = "explicit", "io.explicit"
    suffixes = EXPLICIT
    holds = Capabilities(intervals=True, rates=True)

    def read(self, path: Path, options: FileOptions) -> FileModel:
        return _call("io.explicit.read_explicit", path)

    def write(self, model: Structured, path: Path) -> list[Path]:
        return _call("io.explicit.write_explicit", model, path)

    def claim(self, path: Path, overwrite: bool = False) -> ModelOutput:
        return _call("io.explicit.claim_explicit", path, overwrite)


BUILT_IN: tuple[type[ModelFormat], ...] = (PrismLanguage, Jani, Drn, Umb, Explicit)

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
