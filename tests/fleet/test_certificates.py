"""Certificates of fleets: what is claimed is proved, forgeries are refused, data and models are compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import tightrope as tr
from fleet.test_fleet import CHAIN, CHOICE, chain_log, counts_of, learn
from tightrope.certify.certificate_file import as_file
from tightrope.fleet import Fleet, learn_fleet
from tightrope_check.archive import read
from tightrope_check.checker import check
from tightrope_check.fleet import FleetCertificate, Unit
from tightrope_check.report import headline

SUCCESS = 'Pmax=? [ F "success" ]'


@cache
def chain_fleet(planned: bool = False) -> tuple[tr.Counts, Fleet, FleetCertificate]:
    counts = chain_log(np.linspace(0.5, 0.99, 32), 30, 1, planned)
    fleet = learn(counts)
    return counts, fleet, fleet.certificate()


@cache
def choice_fleet() -> tuple[tr.Counts, Fleet]:
    rng, units, runs = np.random.default_rng(8), 64, 40
    good, bad = rng.beta(50, 5, units), rng.beta(20, 20, units)
    action = rng.integers(0, 2, (units, runs))
    success = rng.random((units, runs)) < np.where(action == 0, good[:, None], bad[:, None])
    counts = counts_of(CHOICE, (2 * action + ~success).reshape(-1), np.repeat(np.arange(units), runs))
    return counts, learn_fleet(CHOICE.problem(SUCCESS), counts, "unit", delta=0.1, share=0.9)


def tail_of(certificate: FleetCertificate) -> float:
    """P(Bin(G, (1 − s)·0.8) ≤ number of worse bounds)."""
    below = sum(one.low < certificate.most for one in certificate.unit)
    return float(binom.cdf(below, len(certificate.unit), (1.0 - certificate.share) * 0.8))


@pytest.mark.parametrize("planned", [False, True])
def test_what_a_certificate_claims_follows_from_units_one_by_one(planned: bool) -> None:
    _, fleet, certificate = chain_fleet(planned)
    verdict = check(certificate)
    assert verdict.word == "proved" and len(verdict.checks) == 32 + 3
    low = sorted(one.low for one in certificate.unit)
    assert certificate.most == low[0] and tail_of(certificate) <= 0.1  # 0.92^32 <= 0.1 < with one more
    assert certificate.next_unit == low[1] and certificate.chance == pytest.approx(1 - 2 / (33 * 0.8))
    assert certificate.most <= fleet.most.bounds.lower + 0.01  # type: ignore[union-attr]
    assert certificate.low is not None and certificate.high is not None
    assert certificate.low == pytest.approx(fleet.average.bounds.lower, rel=1e-4)  # type: ignore[union-attr]
    assert {name for name, _, _ in verdict.assumptions} >= {"units", "runs", "episodes", "sampling"}
    assert headline(verdict, certificate).startswith("VALID: value >= ")
    assert headline(verdict, certificate).endswith(" for 90 % of all units, confidence 0.9")


def test_costs_are_certified_from_above() -> None:
    certificate = learn(chain_log(np.linspace(0.01, 0.4, 32), 30, 2), "min").certificate()
    assert check(certificate).word == "proved"
    assert certificate.most == max(one.high for one in certificate.unit)
    assert not check(replace(certificate, most=certificate.most - 1e-9)).valid


def raised(unit: Unit) -> Unit:
    return replace(unit, low=min(unit.low + 0.05, unit.high))


FORGERIES: dict[str, Callable[[FleetCertificate], FleetCertificate]] = {
    "most: a higher bound": lambda one: replace(one, most=math.nextafter(one.most, 1.0)),
    "most: a larger share": lambda one: replace(one, share=0.95),
    "most: a smaller δ": lambda one: replace(one, delta=0.05),
    "most: fewer units": lambda one: replace(one, unit=one.unit[:28]),
    "next: a higher bound": lambda one: replace(one, next_unit=math.nextafter(one.next_unit, 1.0)),
    "next: a larger probability": lambda one: replace(one, chance=one.chance + 1e-6),
    "average: a narrower interval": lambda one: replace(one, low=(one.low or 0.0) + 0.01),
    "average: a narrower interval from above": lambda one: replace(one, high=(one.high or 0.0) - 0.01),
    "a unit's bound": lambda one: replace(one, unit=(raised(one.unit[0]), *one.unit[1:])),
    "a unit's δ": lambda one: replace(
        one, unit=tuple(replace(u, data=replace(u.data, delta=u.data.delta + 0.2)) for u in one.unit)
    ),
    "a unit's episodes": lambda one: replace(
        one,
        unit=tuple(
            replace(u, data=replace(u.data, seen=np.add(u.data.seen, [0, 0, 1, 0]))) for u in one.unit
        ),
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(name: str) -> None:
    _, _, certificate = chain_fleet()
    try:
        verdict = check(FORGERIES[name](certificate))
    except tr.InputError:
        return
    assert not verdict.valid and verdict.word == "nominal", name


def test_units_that_are_there_twice_or_have_no_name_are_no_certificate() -> None:
    _, _, certificate = chain_fleet()
    twice = replace(certificate, unit=(*certificate.unit, certificate.unit[-1]))
    unnamed = replace(certificate, unit=(replace(certificate.unit[0], about={}), *certificate.unit[1:]))
    for wrong in (twice, unnamed, replace(certificate, unit=()), replace(certificate, low=None)):
        with pytest.raises(tr.InputError, match="not a certificate"):
            check(wrong)


def test_a_file_is_read_as_it_was_written_and_compared_with_data(tmp_path: Path) -> None:
    counts, fleet, _ = chain_fleet()
    place = tmp_path / "f.cert"
    proved = fleet.certify(place)
    assert list(proved) == ["most units", "next unit", "average unit"]
    own: dict[str, Any] = {"model": CHAIN, "property": SUCCESS}
    verdict = tr.verify(place, **own, data=counts)
    assert verdict.word == "proved" and verdict.bound == {
        "model": True,
        "property": True,
        "data": True,
        "policy": False,
    }
    assert verdict.values["most units"] == (proved["most units"].lower, math.inf)
    assert tr.verify(place).bound["data"] is False
    values = np.linspace(0.5, 0.99, 32)
    for data, why in (
        (chain_log(values, 30, 2), "other data: .* in unit 'u0"),
        (chain_log(values[1:], 30, 1), "other units: 32, and your data have 31"),
        (chain_log([*values, 0.9], 30, 1), "other units: 32, and your data have 33"),
    ):
        with pytest.raises(tr.CannotCertify, match=why):
            tr.verify(place, **own, data=data)
    with pytest.raises(tr.CannotCertify, match="another property"):
        tr.verify(place, model=CHAIN, property='Pmin=? [ F<=1 "success" ]', data=counts)


def test_the_half_of_units_that_chose_the_policy_is_not_in_the_file(tmp_path: Path) -> None:
    counts, fleet = choice_fleet()
    certificate = fleet.certificate()
    assert len(certificate.unit) == len(certificate.again) == 32
    assert check(certificate).word == "proved"
    assert certificate.low is not None and certificate.high is not None
    assert certificate.low < 50 / 55 <= certificate.high  # from bounds at 0.01, without episodes
    place = tmp_path / "c.cert"
    as_file(certificate).save(place)
    own: dict[str, Any] = {"model": CHOICE, "property": SUCCESS, "data": counts}
    assert tr.verify(place, **own, policy=fleet.policy).bound["policy"] is True
    with pytest.raises(tr.CannotCertify, match="other policies"):
        tr.verify(place, **own, policy={0: "b"})
    fewer = replace(certificate, unit=certificate.unit[:30], again=certificate.again[:30])
    as_file(fewer).save(place)
    with pytest.raises(tr.CannotCertify, match="other units: 30, and your data have 64"):
        tr.verify(place, **own)


def test_bytes_give_the_same_certificate_and_a_changed_one_is_refused() -> None:
    _, _, certificate = chain_fleet()
    content = as_file(certificate).content
    again = read(content).certificate
    assert isinstance(again, FleetCertificate) and again.claimed == certificate.claimed
    assert [one.about["unit"] for one in again.unit] == [one.about["unit"] for one in certificate.unit]
    spot = len(content) // 2
    with pytest.raises(tr.InputError):
        read(content[:spot] + bytes([content[spot] ^ 1]) + content[spot + 1 :])


def test_no_certificate_is_written_without_a_bound_or_by_the_outcomes_alone() -> None:
    with pytest.raises(tr.CannotCertify, match="it takes 28"):
        learn(chain_log([0.9] * 5, 30, 3)).certificate()
    with pytest.raises(tr.InputError, match="also uses the model"):
        learn(chain_log([0.9] * 32, 30, 3), outcomes="only").certificate()
