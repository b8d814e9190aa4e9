"""The file that says how many draws of which choice were planned: `sample --draws FILE`.

    {"format": "tightrope draws", "version": 1, "model": "9f2c…", "planned_from": "41ab…", "draws": [
      {"signature": ["p", "1 - p"], "draws": 18000, "choices": 3945, "example": "choice 'bet' of state (…)"},
      …]}

Choices with the same signature draw from the same distribution, so the table is by signature. The draws of a
signature are spread evenly over its choices: that costs nothing, and shows where a tie does not hold.
Signatures that are not listed are not drawn. `planned_from` is the digest of the data that the plan was made
from. The draws themselves are fixed before they are made; put together with those data they are adaptive,
which is what the design of the sampled file says (`tightrope.data.design`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.coding import read_document, to_text
from tightrope.io.results import DRAWS_FORMAT, DRAWS_VERSION, DrawsDocument, SignatureDraws
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields

MOST_DRAWS = 1 << 31
"""Of one signature."""


@dataclass(frozen=True, eq=False, repr=False)
class PlannedDraws(Record):
    """How often each signature of a model is to be drawn.

    >>> import tightrope as tr
    >>> model = tr.benchmark("betting(5)").model
    >>> draws = np.zeros(len(model.signatures), dtype=np.int64)
    >>> draws[-1] = 100
    >>> int(PlannedDraws(model, draws).per_choice.sum())
    100
    """

    model: ParametricMDP
    draws: OffsetArray
    planned_from: str | None = None

    def __post_init__(self) -> None:
        if len(self.draws) != len(self.model.signatures) or np.any(self.draws < 0):
            raise ValueError("one number of draws per signature, none of them negative")
        freeze_fields(self)

    def _facts_(self) -> Facts:
        drawn = int(np.count_nonzero(self.draws))
        return [("draws", f"{int(self.draws.sum()):,} of {drawn:,} of {len(self.draws):,} signatures")]

    @property
    def per_choice(self) -> OffsetArray:
        """The draws of every choice: a signature's are spread evenly, the first choices get what is left."""
        of_choice = self.model.signatures.of_choice
        members = np.bincount(of_choice, minlength=len(self.draws))
        order = np.argsort(of_choice, kind="stable")
        rank = np.empty(len(of_choice), dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(members)])[:-1]
        rank[order] = np.arange(len(of_choice)) - np.repeat(first, members)
        whole, rest = np.divmod(self.draws, np.maximum(members, 1))
        found: OffsetArray = whole[of_choice] + (rank < rest[of_choice])
        return found

    @property
    def table(self) -> list[SignatureDraws]:
        """A row per signature that is drawn, most draws first."""
        model, signatures = self.model, self.model.signatures
        members = np.bincount(signatures.of_choice, minlength=len(self.draws))
        rows = []
        for number in np.argsort(-self.draws, kind="stable"):
            if self.draws[number] == 0:
                break
            example = int(np.argmax(signatures.of_choice == number))
            rows.append(
                SignatureDraws(
                    signature=_texts(model, int(number)),
                    draws=int(self.draws[number]),
                    choices=int(members[number]),
                    example=model.structure.choice_name(example),
                )
            )
        return rows

    def to_text(self) -> str:
        """The file's text."""
        document = DrawsDocument(model=self.model.hash(), planned_from=self.planned_from, draws=self.table)
        return to_text(document) + "\n"


def read_draws(path: str | Path, model: ParametricMDP) -> PlannedDraws:
    """Read a file of planned draws; an `InputError` where it does not fit the model."""
    place = Location(str(path))
    hint = "'tightrope plan --generative' writes one"
    found = read_document(Path(path), DrawsDocument, DRAWS_FORMAT, DRAWS_VERSION, hint)
    if found.model is not None and found.model != model.hash():
        raise InputError(
            "these draws were planned for another model",
            place,
            hint="use the model with the same constants and domain, or plan again",
        )
    number_of = {tuple(_texts(model, number)): number for number in range(len(model.signatures))}
    draws = np.zeros(len(model.signatures), dtype=np.int64)
    seen: set[int] = set()
    for row, entry in enumerate(found.draws, start=1):
        number = number_of.get(tuple(entry.signature))
        shown = ", ".join(entry.signature)
        if number is None:
            raise InputError(f"entry {row}: no choice of the model has the signature ({shown})", place)
        if number in seen:
            raise InputError(f"entry {row} names the signature ({shown}) a second time", place)
        if not 0 <= entry.draws <= MOST_DRAWS:
            raise InputError(
                f"entry {row}: {entry.draws} draws, but a signature has between 0 and {MOST_DRAWS:,}", place
            )
        seen.add(number)
        draws[number] = entry.draws
    if draws.sum() == 0:
        raise InputError("no draws are planned: the table is empty", place)
    return PlannedDraws(model, draws, found.planned_from)


def _texts(model: ParametricMDP, number: int) -> list[str]:
    """The expressions of a signature."""
    signatures = model.signatures
    of = signatures.expression[signatures.start[number] : signatures.start[number + 1]]
    names = model.parameters.names
    return [model.expressions.function(int(index)).text(names) for index in of]
