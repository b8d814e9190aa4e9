"""The certificate of a learned result: from counts to policies and their values.

Plain arrays in one file, like `tightrope.certificate.certificate`. The parts:

* `Problem` (sets "interval"): the graph, the objective, and bounds on every transition; in the file by
  expression, where they depend on nothing else. `nature` is not used: a lower end is checked against every
  distribution within the bounds, an upper end likewise.
* `Data`: the expressions and the domain, exact; the counts; δ and how it was spent; intervals of events or
  what the likelihood region needs.
* `RegionProof`: which rows bound the region, and the bases that prove what was projected from it.
* `Guarantee`: a policy with the two inductive vectors that bound its value.
* `CoupledProof`: bounds of a guarantee's policy over the region itself, tighter than those over the sets.

The same certificate serves a parametric model without data (`method` "domain"): the region is then the
domain, and what is proved holds for every instantiation in it, not with a probability.

What is checked, and why it suffices, stands in `tightrope.certificate.learning_check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.certificate.archive import DAMAGE, Archive, split
from tightrope.certificate.certificate import Problem
from tightrope.certificate.old_coupled import CoupledProof
from tightrope.errors import InputError, Location
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray

KIND = "learning"

Table = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Data:
    """What was seen, what is known of the model, and how δ was spent.

    * `expressions`: {"parameters", "monomials", "rows"} as in a `point` problem; `domain`: {"lower", "upper",
      "constraints"}; `coordinates`: {"free", "substitution", "products"}; numbers as text, exact.
    * Event e has the probability event_multiplicity[e]·f, f = event_expression[e], within its bounds.
    * `assumed_support`: what can happen was assumed to have at least this probability.
    * `batch_counts` [batch, expression], `plug_in` [batch after the pilot, free parameter], `pilot`: for the
      likelihood region. `fixed_amount` says that the amount of data was fixed in advance.
    """

    delta: float
    method: str
    gamma: float
    assumption: str
    sets: str
    expressions: Mapping[str, Any]
    domain: Mapping[str, Any]
    coordinates: Mapping[str, Any]
    expression: IndexArray
    counts: OffsetArray
    event_expression: IndexArray | None = None
    event_multiplicity: IndexArray | None = None
    event_lower: FloatArray | None = None
    event_upper: FloatArray | None = None
    assumed_support: float | None = None
    pilot: int = 0
    fixed_amount: bool = False
    batch_counts: Table | None = None
    plug_in: Table | None = None


@dataclass(frozen=True, eq=False)
class RegionProof:
    """Rows of the region and the bases behind what was projected from it.

    * `row` [n, 3]: (origin, index, part), see `tightrope.certificate.region_rows`; `cut_point` [m, size]
      (points of tangents to the likelihood, directions of tangents to an ellipsoid).
    * Stage i shrinks the box: box_lower[i] and box_upper[i] from the rows and the box before, by
      box_basis[i] (upper then lower of every coordinate); without products there are no stages.
    * bound_basis[j] proves a bound of expression bound_expression[j]: the upper one where bound_side[j] is 1.
    * `choice_basis`: the bases that guarantees refer to, for sets that are rectangular.
    """

    row: Table
    cut_point: Table
    box_lower: Table
    box_upper: Table
    box_basis: Table
    bound_expression: IndexArray
    bound_side: Table
    bound_basis: Table
    choice_basis: Table


@dataclass(frozen=True, eq=False)
class Guarantee:
    """A policy's value lies between lower and upper, at every state.

    Vectors and rankings as in a `Claim`, each for its own end. `lower_basis` and `upper_basis` name for
    every choice a basis of the region, or −1 where the transitions' bounds say it all.
    """

    name: str
    lower: FloatArray
    upper: FloatArray
    policy_kind: str = "fixed"
    policy: OffsetArray | None = None
    weight: FloatArray | None = None
    lower_ranking: OffsetArray | None = None
    upper_ranking: OffsetArray | None = None
    lower_tail: FloatArray | None = None
    upper_tail: FloatArray | None = None
    lower_basis: IndexArray | None = None
    upper_basis: IndexArray | None = None


@dataclass(frozen=True, eq=False)
class LearningCertificate:
    """`about` names the model and the question; nothing in it is relied on. `covers` says what is proved."""

    problem: Problem
    data: Data
    guarantees: tuple[Guarantee, ...]
    region: RegionProof | None = None
    coupled: tuple[CoupledProof, ...] = ()
    covers: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, tuple[float, float]]:
        """The certified interval of each policy at the initial state, as the question asks for it."""
        result = {}
        for number, guarantee in enumerate(self.guarantees):
            low = float(guarantee.lower[self.problem.initial])
            high = float(guarantee.upper[self.problem.initial])
            for proof in self.coupled:
                if proof.guarantee == number:
                    low, high = max(low, proof.lower), min(high, proof.upper)
            if self.problem.complement:
                low, high = (
                    float(np.nextafter(1 - high, -np.inf)),
                    float(np.nextafter(1 - low, np.inf)),
                )
            result[guarantee.name] = (low, high)
        return result

    def digest(self) -> str:
        return self._archive().digest()

    def save(self, path: str | Path) -> str:
        """Write the file, and return its digest."""
        return self._archive().save(path)

    @classmethod
    def load(cls, path: str | Path) -> LearningCertificate:
        return cls.of_archive(Archive.load(path), path)

    @classmethod
    def of_archive(cls, archive: Archive, path: str | Path) -> LearningCertificate:
        try:
            if archive.kind != KIND:
                raise ValueError(archive.kind)
            names = [f"guarantee{i}" for i in range(int(archive.header["guarantees"]))]
            coupled = [f"coupled{i}" for i in range(int(archive.header.get("coupled", 0)))]
            problem, data = Problem(**archive.part("problem")), Data(**archive.part("data"))
            return cls(
                by_transition(problem, data) if archive.header["bounds"] == "expression" else problem,
                data,
                tuple(Guarantee(**archive.part(name)) for name in names),
                RegionProof(**archive.part("region")) if "region" in archive.header else None,
                tuple(CoupledProof(**archive.part(name)) for name in coupled),
                tuple(archive.header["covers"]),
                archive.about,
            )
        except DAMAGE as error:
            raise InputError("this is not a certificate of a learned result", Location(str(path))) from error

    def _archive(self) -> Archive:
        short = by_expression(self.problem, self.data)
        parts: dict[str, object] = {"problem": short or self.problem, "data": self.data}
        if self.region is not None:
            parts["region"] = self.region
        parts |= {f"guarantee{i}": guarantee for i, guarantee in enumerate(self.guarantees)}
        parts |= {f"coupled{i}": proof for i, proof in enumerate(self.coupled)}
        header, arrays = split(parts)
        header |= {
            "guarantees": len(self.guarantees),
            "coupled": len(self.coupled),
            "covers": list(self.covers),
            "bounds": "transition" if short is None else "expression",
        }
        return Archive(KIND, header, arrays, self.about)


def by_expression(problem: Problem, data: Data) -> Problem | None:
    """The problem with bounds per expression, where all transitions of an expression have the same."""
    if problem.lower is None or problem.upper is None or data.sets == "untied":
        return None
    tables = []
    for bound in (problem.lower, problem.upper):
        table = np.zeros(int(data.expression.max(initial=0)) + 1)
        table[data.expression] = bound
        if not np.array_equal(table[data.expression], bound):
            return None
        tables.append(table)
    return replace(problem, lower=tables[0], upper=tables[1])


def by_transition(problem: Problem, data: Data) -> Problem:
    """The reverse of `by_expression`."""
    if problem.lower is None or problem.upper is None:
        raise ValueError("bounds are missing")
    return replace(problem, lower=problem.lower[data.expression], upper=problem.upper[data.expression])
