"""Storm's explicit format DRN: what it holds and what we make of it.

    @type: MDP
    @value_type: parametric
    @parameters
    p q
    @placeholders
    $0 : 1/2*p + 3/10
    $1 : -1/2*p + 7/10
    @reward_models
    steps
    @nr_states
    2
    @nr_choices
    2
    @model
    state 0 [0] init
        action go [1.5]
            0 : $0
            1 : $1
    state 1 [0] goal
        action __NOLABEL__ [0]
            1 : 1

What Storm writes is read, and what we write Storm reads. `parse` knows the lines,
`read` checks the whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.io.output import DRN as WRITTEN
from tightrope.io.registry import Capabilities, FileOptions, ModelFormat

if TYPE_CHECKING:
    from tightrope.prism.load import PrismRates


class Drn(ModelFormat):
    """Storm's explicit format."""

    name = "DRN"
    suffixes = (".drn",)
    holds = Capabilities(parameters=True, intervals=True, exact=True, rates=True, compressed=True)

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

    def read_automaton(self, path: Path) -> Any:
        from tightrope.io.drn.read import read_automaton_drn

        return read_automaton_drn(path)

    def write(self, model: Any, path: Path) -> list[Path]:
        from tightrope.io.drn.write import write_drn

        write_drn(model, path)
        return [path]

    def is_ours(self, path: Path) -> bool:
        return WRITTEN.is_ours(path)
