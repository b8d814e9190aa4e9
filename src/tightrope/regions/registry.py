"""The registry of kinds of regions: the package's own, and those of other packages.

Another package adds a kind by an entry point of the group `tightrope.regions`: its name is the kind's, its
object a `RegionKind`, or a class of one. It is loaded on demand. Results with a foreign kind are nominal. If
it names a method of the checker, a certificate can be written, in which the checker derives the region again:
what `verify` accepts is proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, cast

from tightrope.data.counts import Counts
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.regions.region import Region, RegionKind, RegionOptions, RegionTask
from tightrope.verdict import Assumed

if TYPE_CHECKING:
    from tightrope.statistics.bets import Gradient, Predictions

GROUP = "tightrope.regions"
_OWN = {
    "polytope": "event_polytope.POLYTOPE",
    "l1": "l1.L1",
    "ellipsoid": "ellipsoid.ELLIPSOID",
    "likelihood": "likelihood.LIKELIHOOD",
    "slab": "slab.SLAB",
    "joint": "joint.JOINT",
    "chi2": "chi2.CHI2",
}
"""Names, and where the kinds are; loaded when they are asked for."""

_UNPROVED = "no method in the checker: nothing shows that it covers the true parameters"
_UNCHECKED = "a method in the checker, not checked here: a certificate that verify accepts is proof"


def region_names() -> tuple[str, ...]:
    """The names of all kinds, the package's own first; nothing is loaded.

    >>> region_names()[:6]
    ('polytope', 'l1', 'ellipsoid', 'likelihood', 'slab', 'joint')
    """
    return *_OWN, *(name for name in sorted(_others()) if name not in _OWN)


def own_kinds() -> Iterator[RegionKind]:
    """The kinds of this package."""
    return map(region_kind, _OWN)


def region_kind(name: object) -> RegionKind:
    """The kind of a name; a kind is returned as it is.

    >>> region_kind("likelihood").needs_order
    True
    """
    if isinstance(name, RegionKind):
        return name
    if isinstance(name, str) and name in _OWN:
        return _own(name)
    others = _others()
    if not isinstance(name, str) or name not in others:
        raise InputError(f"`region` is {name!r}, not one of {', '.join(region_names())}")
    return _load(name, others[name])


def build_region(
    kind: RegionKind | str,
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    options: RegionOptions | None = None,
    predictions: Predictions | None = None,
    gradient: Gradient | None = None,
) -> Region:
    """Build a region; kinds that bet need the `gradient` of the value that is bet on."""
    chosen = region_kind(kind)
    if chosen.needs_order and counts.batches is None:
        raise InputError(
            f"the {chosen.value} region needs data in time-ordered batches, these counts have none",
            hint='keep the batch column of the data file, or use `region="polytope"`',
        )
    if model.structure.elsewhere is not None and not chosen.is_of_intervals:
        raise InputError(
            f"the {chosen.value} region does not support outcomes that were never seen, as in this model",
            hint="leave `region` and `sets` out",
        )
    task = RegionTask(model, counts, delta, options or RegionOptions(), predictions, gradient)
    region: Any = chosen.build(task)
    if chosen.value in _OWN and type(chosen) is type(_own(chosen.value)):  # a name alone is not enough
        return cast(Region, region)
    why = _UNCHECKED if has_proof(chosen) else _UNPROVED
    doubt = Assumed.unverified("region", f"the region {chosen.value} of another package has {why}")
    ledger = replace(region.ledger, assumptions=(*region.ledger.assumptions, doubt))
    return cast(Region, replace(region, ledger=ledger))


def has_proof(kind: RegionKind) -> bool:
    """Whether certificates hold a kind: it names a method of the package, and is made alike."""
    alike = "certificate", "is_of_intervals", "has_intervals", "bets"
    return kind.certificate is not None and any(
        all(getattr(kind, name) == getattr(own, name) for name in alike) for own in own_kinds()
    )


@cache
def _own(name: str) -> RegionKind:
    module, _, constant = _OWN[name].rpartition(".")
    kind: RegionKind = getattr(import_module(f"tightrope.regions.{module}"), constant)
    return kind


def _others() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _load(name: str, entry: EntryPoint) -> RegionKind:
    """The kind of an entry point; whatever is wrong with it is the other package's to mend."""
    try:
        loaded = entry.load()
        kind = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        raise InputError(
            f"the region {name!r} of the entry point {entry.value!r} cannot be loaded: {error}"
        ) from error
    if not isinstance(kind, RegionKind) or kind.value != name:
        raise InputError(
            f"the entry point {entry.value!r} of the group {GROUP} is not a region of the name {name!r}"
        )
    return kind
