"""PRISM's explicit files: a model as a few text files with one base name.

| file | holds | see |
|---|---|---|
| `m.tra` | transitions, with probabilities or intervals, and actions | `read` |
| `m.lab` | labels, "init" among them | `read` |
| `m.sta` | the values of the variables in each state | `read` |
| `m.srew`, `m1.srew`, … | rewards of states | `read` |
| `m.trew`, `m1.trew`, … | rewards of transitions | `read` |

The numbers are doubles, so models read from here are `MDP` or `IntervalMDP`, and a model with
parameters cannot be written; DRN can hold it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.io.registry import EXPLICIT, Capabilities, FileOptions, ModelFormat, ModelOutput

if TYPE_CHECKING:
    from tightrope.prism.load import PrismRates


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
