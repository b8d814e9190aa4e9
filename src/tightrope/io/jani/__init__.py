"""JANI, the exchange format of tools for quantitative models (jani-spec.org), for DTMCs, MDPs and CTMCs.

A file becomes a program of the PRISM language (`nodes`: JSON, expressions and declarations; `read`: automata
and properties), which is then expanded and explored as every other. `write` writes such a program.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.io.output import JANI as WRITTEN
from tightrope.io.registry import Capabilities, FileOptions, ModelFormat

if TYPE_CHECKING:
    from tightrope.prism.load import PrismRates


class Jani(ModelFormat):
    """Programs; a model of states and transitions is written as one of a single automaton."""

    name = "JANI"
    suffixes = (".jani",)
    holds = Capabilities(constants=True, parameters=True, exact=True, rates=True, compressed=True)

    def read(self, path: Path, options: FileOptions) -> Any:
        from tightrope.io.jani.read import read_jani

        return read_jani(path, options.constants, **options.words)

    def is_continuous(self, path: Path) -> bool:
        from tightrope.io.jani.read import is_jani_ctmc

        return is_jani_ctmc(path)

    def read_rates(self, path: Path, options: FileOptions) -> PrismRates:
        from tightrope.io.jani.read import read_jani_rates

        return read_jani_rates(path, options.constants, **options.words)

    def write(self, model: Any, path: Path) -> list[Path]:
        from tightrope.io.jani.write import as_program, write_jani

        write_jani(as_program(model, "the model"), path)
        return [path]

    def is_ours(self, path: Path) -> bool:
        return WRITTEN.is_ours(path)
