"""The formats of model files: one class each, found by the ending of a file's name.

A `ModelFormat` says what it is called, which endings it has, what it can hold, and how files are read and
written. Everything that reads or writes models asks here: `tr.load`, `model.save`, `tightrope export`, the
messages that list what is known. Another package adds a format by an entry point:

    [project.entry-points."tightrope.formats"]
    mine = "my_package.my_format:MyFormat"

Classes are light: what reads and writes is imported when a file is read or written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias, TypeVar, cast

from tightrope.atomic import path_of
from tightrope.errors import InputError
from tightrope.io.output import FileKind, OutputFile, claim_file
from tightrope.numerics.text import plain_suffix

if TYPE_CHECKING:
    from tightrope.model.continuous import MarkovAutomaton
    from tightrope.model.mdp import MDP, IntervalMDP
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.model.pomdp import POMDP
    from tightrope.model.structure import Structured
    from tightrope.prism.load import BuildWords, PrismRates

FileModel: TypeAlias = "ParametricMDP | IntervalMDP | MDP | POMDP"
"""A model in discrete time, as files hold it."""

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
    file: OutputFile

    def write(self, model: Structured) -> list[Path]:
        return self.form.write(model, self.file.checked())


class ModelFormat(ABC):
    """A format of model files."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    holds: ClassVar[Capabilities]
    mark: ClassVar[FileKind | None] = None
    """How files that tightrope wrote are known."""

    @abstractmethod
    def read(self, path: Path, options: FileOptions) -> FileModel:
        """The model in a file: an `MDP`, `IntervalMDP` or `ParametricMDP`."""

    def build(self, path: Path, options: FileOptions) -> tuple[FileModel, bool]:
        """The model, and whether only the states were built that a question needs."""
        return self.read(path, options), False

    def type_of(self, path: Path) -> str:
        """The type of the model in a file as far as that matters: "ctmc", "ma", or another one."""
        return ""

    def is_continuous(self, path: Path) -> bool:
        """Whether the file holds a chain in continuous time."""
        return self.type_of(path) == "ctmc"

    def is_automaton(self, path: Path) -> bool:
        """Whether the file holds a Markov automaton."""
        return self.type_of(path) == "ma"

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        """The chain in continuous time in a file."""
        raise InputError(f"{path.name}: {self.name} files hold no chains in continuous time")

    def read_automaton(self, path: Path, options: FileOptions) -> MarkovAutomaton:
        """The Markov automaton in a file."""
        raise InputError(f"{path.name}: {self.name} files hold no Markov automata")

    def write(self, model: Structured, path: Path) -> list[Path]:
        """Write a model; the files that were written."""
        raise InputError(f"{self.name} files are not written", hint=f"write {_listed(writable())}")

    def is_ours(self, path: Path) -> bool:
        """Whether a file is recognisably one that tightrope wrote, and may be replaced."""
        return self.mark is not None and self.mark.is_ours(path)

    def claim(self, path: Path, overwrite: bool = False) -> ModelOutput:
        """Refuse files that must not be written, before anything is computed."""
        return SingleFile(self, claim_file(path, FileKind(f"{self.name} file", self.is_ours), overwrite))

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
    built_in: tuple[type[ModelFormat], ...] = import_module("tightrope.io.formats").BUILT_IN
    return tuple(form() for form in built_in)


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


def readable_endings(compressed: bool = False) -> tuple[str, ...]:
    """The endings of files that are read; of those that are read `compressed`."""
    return tuple(s for form in formats() if form.holds.compressed or not compressed for s in form.suffixes)


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
