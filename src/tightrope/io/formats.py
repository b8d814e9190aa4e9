"""The formats of model files that come with the package: what each holds, and who reads and writes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.io import output
from tightrope.io.registry import EXPLICIT, Capabilities, FileOptions, ModelFormat, ModelOutput
from tightrope.numerics.text import reading

if TYPE_CHECKING:
    from tightrope.prism.load import PrismRates

_ASIDE = re.compile(r'//[^\n]*|"[^"\n]*"')
_CONTINUOUS = re.compile(r"\b(ctmc|stochastic)\b")
_AUTOMATON = re.compile(r"\bma(?=\s+(module|const|formula|global|label|rewards|init|system)\b)")


class PrismLanguage(ModelFormat):
    """Programs in the PRISM language; models of states and transitions are not written as such."""

    name = "PRISM"
    suffixes = (".prism", ".nm", ".pm", ".sm")
    holds = Capabilities(
        constants=True, parameters=True, intervals=True, exact=True, rates=True, compressed=True, writes=False
    )

    def read(self, path: Path, options: FileOptions) -> Any:
        return self.build(path, options)[0]

    def build(self, path: Path, options: FileOptions) -> tuple[Any, bool]:
        from tightrope.prism.load import build_model, read_program

        read = build_model(read_program(path, options.constants), **options.words)
        return read.model, read.is_partial

    def is_continuous(self, path: Path) -> bool:
        return _CONTINUOUS.search(_plain_text(path)) is not None

    def is_automaton(self, path: Path) -> bool:
        return _AUTOMATON.search(_plain_text(path)) is not None

    def read_automaton(self, path: Path, options: FileOptions) -> Any:
        from tightrope.prism.load import build_automaton, read_program

        return build_automaton(read_program(path, options.constants), **options.words)

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        from tightrope.prism.load import build_rates, read_program

        return build_rates(read_program(path, options.constants), **options.words)


def _plain_text(path: Path) -> str:
    """A PRISM file without comments and quoted names."""
    with reading(path) as file:
        return _ASIDE.sub(" ", file.read())


class Jani(ModelFormat):
    """Programs; a model of states and transitions is written as one of a single automaton."""

    name = "JANI"
    suffixes = (".jani",)
    holds = Capabilities(constants=True, parameters=True, exact=True, rates=True, compressed=True)

    def read(self, path: Path, options: FileOptions) -> Any:
        from tightrope.io.jani.read import read_jani

        return read_jani(path, options.constants, **options.words)

    def is_continuous(self, path: Path) -> bool:
        from tightrope.io.jani.read import is_jani_of

        return is_jani_of("ctmc", path)

    def is_automaton(self, path: Path) -> bool:
        from tightrope.io.jani.read import is_jani_of

        return is_jani_of("ma", path)

    def read_automaton(self, path: Path, options: FileOptions) -> Any:
        from tightrope.io.jani.read import read_jani_automaton

        return read_jani_automaton(path, options.constants, **options.words)

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        from tightrope.io.jani.read import read_jani_rates

        return read_jani_rates(path, options.constants, **options.words)

    def write(self, model: Any, path: Path) -> list[Path]:
        from tightrope.io.jani.write import as_program, write_jani

        write_jani(as_program(model, "the model"), path)
        return [path]

    def is_ours(self, path: Path) -> bool:
        return output.JANI.is_ours(path)


class Drn(ModelFormat):
    """Storm's explicit format."""

    name = "DRN"
    suffixes = (".drn",)
    holds = Capabilities(
        parameters=True, intervals=True, exact=True, rates=True, compressed=True, observations=True
    )

    def read(self, path: Path, options: FileOptions) -> Any:
        from tightrope.io.drn.read import read_drn

        return read_drn(path, box=options.box, domain=options.domain, progress=options.words.get("progress"))

    def is_continuous(self, path: Path) -> bool:
        from tightrope.io.drn.read import is_ctmc

        return is_ctmc(path)

    def is_automaton(self, path: Path) -> bool:
        from tightrope.io.drn.read import is_automaton

        return is_automaton(path)

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        from tightrope.io.drn.read import read_rates_drn
        from tightrope.prism.load import PrismRates

        return PrismRates(read_rates_drn(path, options.box, options.domain))

    def read_automaton(self, path: Path, options: FileOptions) -> Any:
        from tightrope.io.drn.read import read_automaton_drn

        return read_automaton_drn(path)

    def write(self, model: Any, path: Path) -> list[Path]:
        from tightrope.io.drn.write import write_drn

        write_drn(model, path)
        return [path]

    def is_ours(self, path: Path) -> bool:
        return output.DRN.is_ours(path)


class Umb(ModelFormat):
    """The binary exchange format of model checkers; it needs the package umbi."""

    name = "UMB"
    suffixes = (".umb",)
    holds = Capabilities(intervals=True)

    def read(self, path: Path, options: FileOptions) -> Any:
        from tightrope.io.umb import read_umb

        return read_umb(path)

    def write(self, model: Any, path: Path) -> list[Path]:
        from tightrope.io.umb import write_umb

        write_umb(model, path)
        return [path]

    def is_ours(self, path: Path) -> bool:
        return output.UMB.is_ours(path)


class Explicit(ModelFormat):
    """PRISM's explicit files; a name without an ending is the base of theirs."""

    name = "explicit"
    suffixes = EXPLICIT
    holds = Capabilities(intervals=True, rates=True)

    def read(self, path: Path, options: FileOptions) -> Any:
        from tightrope.io.explicit.read import read_explicit

        return read_explicit(path)

    def is_continuous(self, path: Path) -> bool:
        from tightrope.io.explicit.read import is_explicit_ctmc

        return is_explicit_ctmc(path)

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        from tightrope.io.explicit.read import read_explicit_rates
        from tightrope.prism.load import PrismRates

        return PrismRates(read_explicit_rates(path))

    def write(self, model: Any, path: Path) -> list[Path]:
        from tightrope.io.explicit.write import write_explicit

        return write_explicit(model, path)

    def claim(self, path: Path, overwrite: bool = False) -> ModelOutput:
        from tightrope.io.explicit.write import claim_explicit

        return claim_explicit(path, overwrite)


BUILT_IN = (PrismLanguage, Jani, Drn, Umb, Explicit)
