"""Data that refute the model are a finding: whatever is claimed then, nothing is called valid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from adversary.archive import Forgery
from adversary.honest import ALL, quietly
from adversary.judge import verify

DOMAIN, EVENT = 0, 1

HONEST = ALL["spread/polytope/coupled"]
NARROW = ("--domain", "p=2*r, 0.1<=p<=0.5, 0.1<=q<=0.5, r<=0.4, p+q<=0.45")
"""The data say p ≥ 0.2468 and q ≥ 0.2494."""


def emptied(lower: float, upper: float) -> Forgery:
    """One cell, all of the region, which is shown to be empty: p + q ≤ 0.45, −p ≤ −0.2468, −q ≤ −0.2494."""
    forgery = Forgery.of(HONEST.certificate)
    forgery["problem.domain.coefficient"] = [*forgery["problem.domain.coefficient"], "1", "1", "0"]
    forgery["problem.domain.bound"] = [*forgery["problem.domain.bound"], "9/20"]
    forgery["problem.domain.is_equality"] = np.array([True, False])
    proof = "learned.coupled.0"
    forgery[f"{proof}.row"] = np.array([[DOMAIN, 4, 0], [EVENT, 0, 1], [EVENT, 1, 1]])
    forgery[f"{proof}.row_start"], forgery[f"{proof}.multiplier"] = np.array([0, 3]), np.ones(3)
    forgery[f"{proof}.point_start"] = np.array([0, 0])
    for name in ("point", "simplex"):
        forgery[f"{proof}.{name}"] = forgery[f"{proof}.{name}"][:0]
    for name in ("lower_dual", "upper_dual"):
        forgery[f"{proof}.{name}"] = np.array([-1])
    forgery["claims.0.lower"], forgery["claims.0.upper"] = lower, upper
    return forgery


def binding() -> list[str]:
    options = HONEST.binding()
    options[options.index("--domain") + 1] = NARROW[1]
    return options


@pytest.mark.parametrize("options", [(), ("--exact",)])
@pytest.mark.parametrize("tied", [False, True])
def test_an_empty_region_proves_nothing(options: tuple[str, ...], tied: bool, tmp_path: Path) -> None:
    path = emptied(0.99, 0.991).save(tmp_path / "empty.cert")
    own = binding() if tied else []
    verdict = verify(path, *own, *options)
    assert verdict.code == 1 and verdict.result is not None
    assert verdict.result["verdict"] == "contradicted" and verdict.result["valid"] is False
    assert verdict.result["bound"]["data"] is tied
    code, out, _ = quietly(["verify", str(path), *own, *options])
    assert code == 1 and out.startswith("CONTRADICTED: the data contradict the model")
    assert "VALID" not in out and "confidence" not in out
    found = tr.verify(path, exact=bool(options))
    assert (found.valid, found.word) == (False, "contradicted")


@pytest.mark.parametrize("options", [(), ("--exact",)])
@pytest.mark.parametrize(
    ("lower", "upper"), [(5.0, 7.0), (-0.1, 0.5), (0.5, 1.5), (0.6, 0.4), (0.5, float("inf"))]
)
def test_what_is_no_probability_is_no_claim(
    lower: float, upper: float, options: tuple[str, ...], tmp_path: Path
) -> None:
    forgery = emptied(lower, "inf" if upper == float("inf") else upper)  # type: ignore[arg-type]
    for tied in ([], binding()):
        verdict = verify(forgery.save(tmp_path / "empty.cert"), *tied, *options)
        assert verdict.code == 2 and "not a certificate" in verdict.err


@pytest.mark.parametrize("name", ["walk/events/tied", "walk/events/untied", "walk/l1/expression"])
def test_data_outside_the_domain_are_a_finding(name: str, tmp_path: Path) -> None:
    """The data were drawn at p = 0.55."""
    forgery = Forgery.of(ALL[name].certificate)
    forgery["problem.domain.lower"] = ["9/10"]
    forgery["problem.domain.upper"] = ["19/20"]
    for exact in ((), ("--exact",)):
        verdict = verify(forgery.save(tmp_path / "outside.cert"), *exact)
        assert verdict.code == 1 and verdict.result is not None
        assert verdict.result["verdict"] == "contradicted", verdict.result


def test_a_domain_without_points_is_a_finding(tmp_path: Path) -> None:
    forgery = Forgery.of(ALL["domain/expression"].certificate)
    forgery["problem.domain.lower"], forgery["problem.domain.upper"] = (
        ["1/2", "1/10", "0"],
        ["1/10", "1/2", "2/5"],
    )
    verdict = verify(forgery.save(tmp_path / "none.cert"))
    assert verdict.code == 1 and verdict.result is not None
    assert verdict.result["verdict"] == "contradicted"
    assert verdict.result["headline"].startswith("CONTRADICTED: the domain contradicts the model")


@pytest.mark.parametrize(
    ("name", "lower", "upper"),
    [
        ("point/cost", -1.0, 1e9),
        ("point/discounted", -0.5, 1e9),
        ("point/discounted", 0.0, "inf"),
        ("walk/polytope/cost", -1.0, 1e9),
        ("point/average", -1.0, 1e9),
    ],
)
def test_costs_that_are_never_negative_are_not_claimed_to_be(
    name: str, lower: float, upper: object, tmp_path: Path
) -> None:
    forgery = Forgery.of(ALL[name].certificate)
    forgery["claims.0.lower"], forgery["claims.0.upper"] = lower, upper
    verdict = verify(forgery.save(tmp_path / "negative.cert"))
    assert verdict.code == 2 and "what is claimed is not a value of the quantity" in verdict.err


def test_costs_with_parameters_are_not_claimed_to_be_negative(tmp_path: Path) -> None:
    forgery = Forgery.of(ALL["newest/costs"].certificate)
    forgery["claims.0.lower"] = -1.0
    verdict = verify(forgery.save(tmp_path / "negative.cert"))
    assert verdict.code == 1 and "no value is below 0" in verdict.result["checked"][-1]["detail"]  # type: ignore[index]
