"""How a log is to be read, where the user says so: the same words on the command line and in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tightrope.data.cluster import LOCAL, Place, parse_place
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.state_form import StateForm, StateNames
from tightrope.errors import InputError, check_type

DESIGNS = {
    "fixed": SamplingKind.TRAJECTORIES,
    "adaptive": SamplingKind.ADAPTIVE,
    "generative": SamplingKind.GENERATIVE_FIXED,
    **{kind.value: kind for kind in SamplingKind},
}
"""`fixed`: episodes under a policy fixed in advance; `generative`: draws per choice fixed in advance."""


@dataclass(frozen=True)
class ReadOptions:
    """What the user says about a log; None where nothing is said.

    `states` is index, variables or own. `columns` and `maps` are those of `--columns` and `--map`: their
    texts, or mappings. `design` says how the data were collected, `planned_episodes` how many episodes were
    planned. `format` is that of files whose names do not say it. `engine` and `scheduler` say where parts of
    the log are counted (`tightrope.data.cluster`).
    """

    states: StateNames | StateForm | str | None = None
    columns: Sequence[str] | Mapping[str, str] | None = None
    maps: Sequence[str] | Mapping[str, Any] | None = None
    design: SamplingDesign | SamplingKind | str | None = None
    planned_episodes: int | None = None
    skip_invalid: bool = False
    format: str | None = None
    threads: int | None = None
    engine: str = LOCAL
    scheduler: str | None = None

    @property
    def place(self) -> Place:
        """Where parts are counted: what `engine` and `scheduler` say, checked."""
        return parse_place(self.engine, self.scheduler)

    def check(self) -> None:
        """Refuse words that mean nothing."""
        for name in ("columns", "maps"):
            if getattr(self, name) is not None:
                check_type(name, getattr(self, name), Sequence | Mapping, "a mapping, or texts")
        check_type("skip_invalid", self.skip_invalid, bool, "True or False")
        for word in ("state_names", "stated_design", "place"):
            getattr(self, word)

    @property
    def state_names(self) -> StateNames | None:
        """`states`, checked."""
        if self.states is None or isinstance(self.states, StateNames):
            return self.states
        word = self.states.value if isinstance(self.states, StateForm) else self.states
        try:
            return StateNames(word)
        except ValueError:
            known = ", ".join(names.value for names in StateNames)
            raise InputError(f"states are not named by '{word}'", hint=f"known are {known}") from None

    @property
    def stated_design(self) -> SamplingDesign | SamplingKind | None:
        """`design`, checked."""
        if self.planned_episodes is not None:
            check_type("planned_episodes", self.planned_episodes, int, "a number of episodes")
        if self.planned_episodes is not None and self.planned_episodes < 1:
            raise InputError(f"{self.planned_episodes} planned episodes are none: give a positive number")
        if self.design is None or isinstance(self.design, SamplingDesign | SamplingKind):
            return self.design
        check_type("design", self.design, str, "the name of a sampling design")
        if self.design not in DESIGNS:
            raise InputError(
                f"'{self.design}' is no sampling design",
                hint="known are fixed, generative and adaptive",
            )
        return DESIGNS[self.design]
