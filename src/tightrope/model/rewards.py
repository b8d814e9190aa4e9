"""Rewards of states and choices: numbers, or polynomials in the parameters.

Polynomial rewards have no numbers until a point or a range of the parameters is given. Whoever asks for
numbers all the same is refused, so that nothing can take them for rewards that are not there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError
from tightrope.model.door import NotHeldError, doubles
from tightrope.model.expressions import Expressions
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.remember import remember

if TYPE_CHECKING:
    from tightrope.model.expressions import Point
    from tightrope.model.structure import Structure


@dataclass(frozen=True, eq=False, repr=False)
class RewardStructure(Record):
    """Rewards of states (earned on leaving) and of choices; None where there are none.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "stay", {0: 1})], state_rewards={"time": [2]})
    >>> model.rewards["time"].state.tolist()
    [2.0]
    """

    state: FloatArray | None = None
    choice: FloatArray | None = None

    @remember
    def per_choice(self, structure: Structure) -> FloatArray:
        """State and choice rewards added up, one number per choice; read-only."""
        if self.state is None:
            total = np.zeros(structure.choices) if self.choice is None else self.choice.copy()
        else:
            total = np.repeat(self.state, np.diff(structure.choice_start))
            if self.choice is not None:
                total += self.choice
        total.flags.writeable = False
        return total

    def hash_into(self, digest: hashlib._Hash) -> None:
        """What the identity of a model rests on."""
        for part in (self.state, self.choice):
            digest.update(b"-" if part is None else part.tobytes())


class ParametricReward(RewardStructure):
    """Rewards of choices, those of their states included, as rows `expression` of a table of polynomials.

    >>> from tightrope.prism.load import load_prism_text
    >>> text = "mdp const double c; module m x:bool; [a] !x -> (x'=true); [] x -> true; endmodule"
    >>> model = load_prism_text(f"{text} rewards [a] true : 3*c; endrewards")
    >>> model.rewards[""].at((0.5,)).choice.tolist()
    [1.5, 0.0]
    """

    name: str
    expressions: Expressions
    expression: IndexArray
    by_transition: IndexArray | None
    """Where rewards differ by successor: that of every transition. `expression` is then the expectation."""

    def __init__(
        self,
        name: str,
        expressions: Expressions,
        expression: IndexArray,
        by_transition: IndexArray | None = None,
    ):
        expressions.check_held("a reward")
        frozen = frozen_array(expression, np.int32)
        own = None if by_transition is None else frozen_array(by_transition, np.int32)
        for key, value in (("name", name), ("expressions", expressions), ("expression", frozen)):
            object.__setattr__(self, key, value)
        object.__setattr__(self, "by_transition", own)

    def of_transitions(self, structure: Structure) -> IndexArray:
        """The row of the table that every transition earns: what the mean of an observed cost is."""
        if self.by_transition is not None:
            return self.by_transition
        return self.expression[structure.transition_choice]

    def at(self, point: Point) -> RewardStructure:
        """The rewards at a point: the float64 nearest to the exact values."""
        try:
            return RewardStructure(choice=doubles(self.expressions.exact_values(point))[self.expression])
        except NotHeldError as error:
            named = f"the rewards '{self.name}'" if self.name else "the rewards"
            raise InputError(f"{named} at this point: {error.message}") from None

    def _refuse(self) -> NoReturn:
        named = f"the rewards '{self.name}'" if self.name else "the rewards"
        raise InputError(
            f"{named} depend on parameters, and what is asked for needs numbers",
            hint="give a point (`at`), or ask over a domain or learn with `sets` rectangular, coupled or "
            "expression",
        )

    @property
    def state(self) -> NoReturn:
        self._refuse()

    @property
    def choice(self) -> NoReturn:
        self._refuse()

    def per_choice(self, structure: Structure) -> FloatArray:
        self._refuse()

    def hash_into(self, digest: hashlib._Hash) -> None:
        texts, place = self._in_order()
        digest.update(f"{self.expressions.parameter_names}{texts}".encode() + place.tobytes())
        if self.by_transition is not None:
            written = [self.expressions.text(row) for row in self.by_transition.tolist()]
            digest.update(f"{written}".encode())

    def _in_order(self) -> tuple[list[str], IndexArray]:
        """The polynomials that occur, sorted, and which of them each choice has: the same for every table."""
        written = np.array([self.expressions.text(row) for row in range(len(self.expressions))], dtype=object)
        texts, place = np.unique(written[self.expression].astype(str), return_inverse=True)
        return texts.tolist(), place.reshape(-1).astype(np.int32)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ParametricReward):
            return NotImplemented
        names = self.name, self.expressions.parameter_names
        (texts, place), (others, places) = self._in_order(), other._in_order()
        same = names == (other.name, other.expressions.parameter_names) and texts == others
        if (self.by_transition is None) != (other.by_transition is None):
            return False
        if self.by_transition is not None and other.by_transition is not None:
            mine = [self.expressions.text(row) for row in self.by_transition.tolist()]
            same = same and mine == [other.expressions.text(row) for row in other.by_transition.tolist()]
        return same and np.array_equal(place, places)

    def __hash__(self) -> int:
        return hash((self.name, len(self.expression)))

    def __reduce__(self) -> tuple[Any, ...]:
        return ParametricReward, (self.name, self.expressions, self.expression, self.by_transition)

    def _facts_(self) -> Facts:
        return self.expressions._facts_()


def frozen_array(values: npt.NDArray[Any], dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """A read-only array of this type; copies only where somebody could still write to it.

    Whoever hands over an array that nobody else holds saves the copy with `release`."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if np.may_share_memory(array, values) and _is_writeable(array):
        array = array.copy()
    array.flags.writeable = False
    return array


def _is_writeable(array: npt.NDArray[Any]) -> bool:
    """Whether the memory can be written to, by this array or by one that it is a view of."""
    held: Any = array
    while isinstance(held, np.ndarray):
        if held.flags.writeable:
            return True
        held = held.base
    return False
