"""A certificate: a problem, a claim about its value, and all that is needed to check the claim.

Plain arrays in one compressed file (NumPy's npz, no pickles) with a JSON header. The problem is
written out in full: the graph, the sets nature picks from, rewards, target states, who maximises.
The claim is a lower and an upper bound for every state before `complement`, the policy that attains
the agent's side of them, and a ranking where the two inequalities alone would prove nothing. What
is checked, and why it suffices, stands in `tightrope.certificate.checker`.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, Location
from tightrope.formats.atomic import atomic_write_bytes
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray

FORMAT = 1

SETS = ("plain", "point", "interval")
"""plain: doubles, each the nearest to the probability meant. point: exact expressions at a rational
point. interval: a lower and an upper bound a transition."""

POLICIES = ("free", "fixed", "randomised")
"""free: the agent chose `policy`. fixed: it was given. randomised: `weight` was given."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is claimed about: a graph, sets, an objective. Arrays as in the model and the objective."""

    kind: str
    agent: str
    nature: str
    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    initial: int
    sets: str
    lower_steps: int = 0
    upper_steps: int | None = None
    discount: float | None = None
    complement: bool = False
    probability: FloatArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    expression: IndexArray | None = None
    expressions: Mapping[str, Any] | None = None
    """For `point`: {"parameters", "theta", "monomials", "rows"}, exact, numbers as text."""
    reward: FloatArray | None = None
    target: BoolArray | None = None
    allowed: BoolArray | None = None
    terminal: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Claim:
    """Bounds of the problem's value before `complement`, with their witnesses.

    For `F>=k` (a lower step bound without an upper one) policy and ranking belong to the problem that is
    left after k steps, whose bounds are the `tail`.
    """

    lower: FloatArray
    upper: FloatArray
    policy_kind: str = "free"
    policy: OffsetArray | None = None
    weight: FloatArray | None = None
    ranking: OffsetArray | None = None
    tail_lower: FloatArray | None = None
    tail_upper: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Certificate:
    """`about` names the model and the question, its hash, versions; nothing in it is relied on."""

    problem: Problem
    claim: Claim
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> tuple[float, float]:
        """The certified interval of the initial state, as the question asks for it."""
        low = float(self.claim.lower[self.problem.initial])
        high = float(self.claim.upper[self.problem.initial])
        if not self.problem.complement:
            return low, high
        return float(np.nextafter(1 - high, -np.inf)), float(np.nextafter(1 - low, np.inf))

    def digest(self) -> str:
        """SHA-256 over everything the claim speaks of; written into the file, and its short name."""
        hashed = hashlib.sha256(json.dumps(self._header(), sort_keys=True).encode())
        for name, array in sorted(self._arrays().items()):
            hashed.update(f"{name}{array.dtype.str}{array.shape}".encode())
            hashed.update(np.ascontiguousarray(array).tobytes())
        return hashed.hexdigest()

    def _header(self) -> dict[str, Any]:
        header: dict[str, Any] = {"format": FORMAT}
        for part, holder in (("problem", self.problem), ("claim", self.claim)):
            header[part] = {
                name: value for name, value in vars(holder).items() if not isinstance(value, np.ndarray)
            }
        return header

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            f"{part}.{name}": value
            for part, holder in (("problem", self.problem), ("claim", self.claim))
            for name, value in vars(holder).items()
            if isinstance(value, np.ndarray)
        }

    # --- files -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        header = {**self._header(), "about": dict(self.about), "digest": self.digest()}
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with atomic_write_bytes(path) as file:
            np.savez_compressed(file, allow_pickle=False, header=text, **self._arrays())

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read and check the shape of the file; what it claims is the checker's business."""
        place = Location(str(path))
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", place) from error
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            header = json.loads(arrays.pop("header").tobytes())
            certificate = cls(
                _filled(Problem, "problem", header, arrays),
                _filled(Claim, "claim", header, arrays),
                header.get("about", {}),
            )
        except _DAMAGE as error:
            raise InputError("this is not a certificate, or it is damaged", place) from error
        if header.get("format") != FORMAT:
            raise InputError(f"certificate format {header.get('format')}, this version reads {FORMAT}", place)
        if header.get("digest") != certificate.digest():
            raise InputError(
                "the file's contents do not match its digest: it was changed after it was written", place
            )
        return certificate


_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OSError,
    AttributeError,
    NotImplementedError,
    RuntimeError,
)
"""What NumPy, zipfile and json raise on files that are not what they should be."""


def _filled(kind: type[Any], part: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    fields = dict(header[part])
    fields.update(
        {
            name.removeprefix(f"{part}."): array
            for name, array in arrays.items()
            if name.startswith(f"{part}.")
        }
    )
    return kind(**fields)
