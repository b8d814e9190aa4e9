"""The second checker by itself: logarithms, intervals and polytopes, empty regions, the archive's bytes."""

from __future__ import annotations

import io
import zipfile
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import tightrope as tr
from adversary.archive import Forgery
from adversary.honest import ALL
from adversary.judge import verify
from adversary.second import second, second_verdict

SHARE = Fraction(1, 20)


@pytest.mark.parametrize("value", ["1", "2", "0.5", "1e-5000", "1e5000", "3", "0.9999999999999999", "7/11"])
def test_logarithms_are_enclosed(value: str) -> None:
    number = Fraction(value)
    low, high = second.log_of(number)
    with localcontext() as context:
        context.prec = 60
        exact = (Decimal(number.numerator) / Decimal(number.denominator)).ln()
        assert Fraction(exact) - Fraction(1, 10**50) <= high and low <= Fraction(exact) + Fraction(1, 10**50)
    assert 0 < high - low < Fraction(1, 10**45)


def test_stirling_meets_the_factorials() -> None:
    total = (Fraction(0), Fraction(0))
    for n in range(1, 300):
        total = second.combined((1, total), (1, second.log_of(Fraction(n))))
    low, high = second.log_factorial(299)
    assert low <= total[1] and total[0] <= high and high - low < Fraction(1, 10**30)


@pytest.mark.parametrize(("k", "n"), [(3, 10), (40, 100), (700, 1000), (1, 5000), (100_000, 1_000_000)])
def test_tails_are_those_of_the_binomial(k: int, n: int) -> None:
    for factor in (0.5, 0.8, 0.9, 0.97):
        p = k / n * factor
        tail = float(binom.sf(k - 1, n, p))
        if tail > 1e-200:
            for level, holds in ((2 * tail * 1.001, True), (2 * tail * 0.999, False)):
                found = second.end_follows("clopper-pearson", k, n, Fraction(p), Fraction(level))
                assert found is holds, (k, n, p)


def test_an_interval_that_nothing_proves_is_none() -> None:
    half = Fraction(1, 2)
    assert second.interval_follows("clopper-pearson", 0, 0, Fraction(0), Fraction(1), SHARE)
    for method in ("clopper-pearson", "hoeffding", "beta-binomial"):
        assert not second.interval_follows(method, 0, 0, Fraction(1, 10**9), Fraction(1), SHARE)
        assert not second.interval_follows(method, 5, 10, half, half, SHARE)
        assert not second.interval_follows(method, 5, 10, half, Fraction(1, 3), SHARE)


def test_a_polytope_without_points_is_seen() -> None:
    """x + y ≤ 1, −x − y ≤ −3 within [0, 2]²: no face of the box says so, and a basis would prove anything."""
    box = [Fraction(0), Fraction(0)], [Fraction(2), Fraction(2)]
    rows = [([Fraction(1), Fraction(1)], Fraction(1)), ([Fraction(-1), Fraction(-1)], Fraction(-3))]
    polytope = second.Polytope(box, rows)
    assert not polytope.has_a_point([])
    assert second.Polytope(box, rows[:1]).has_a_point([])
    assert second.Polytope(box, rows[1:]).has_a_point([])
    assert second.Polytope(box, rows[1:]).most([Fraction(-1), Fraction(0)], [4, 2]) == -1


@pytest.mark.parametrize("name", ["walk/polytope/expression", "walk/events/tied"])
def test_data_that_contradict_the_domain_prove_nothing(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forgery = Forgery.of(ALL[name].certificate)
    forgery["problem.domain.lower"] = ["17/20"]
    path = forgery.save(tmp_path / "empty.cert")
    assert second.main([str(path)]) == 1
    assert "the data contradict the model" in capsys.readouterr().err


def test_an_empty_domain_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forgery = Forgery.of(ALL["domain/expression"].certificate)
    forgery["problem.domain.lower"] = ["3/5", "3/5", "1/5"]
    path = forgery.save(tmp_path / "empty.cert")
    assert second.main([str(path)]) == 1 and "the domain contradicts the model" in capsys.readouterr().err


def test_every_byte_of_the_file_counts(tmp_path: Path) -> None:
    honest = ALL["walk/events/tied"].certificate
    content, path = honest.read_bytes(), tmp_path / "changed.cert"
    with zipfile.ZipFile(honest) as archive:
        first = archive.infolist()[1].header_offset
    for changed in (b"more" + content, content + b"more", content[:first] + b"gap" + content[first:]):
        path.write_bytes(changed)
        assert second_verdict(path) == 2
    noted = io.BytesIO(content)
    with zipfile.ZipFile(noted, "a") as archive:
        archive.comment = b"nobody hashed this"
    path.write_bytes(noted.getvalue())
    assert second_verdict(path) == 2
    path.write_bytes(content)
    assert second_verdict(path) == 0


def empty_region(place: Path) -> Path:
    """p + q ≤ ½ in the domain, p + q ≥ 0.59 by what was seen: no box, expression or choice says so by itself.
    The lower bound of the first state rests on the one, its upper bound on the other, and both are 0.55.
    """
    forgery, region = Forgery.of(ALL["spread/polytope/rectangular"].certificate), "learned.region"
    forgery["problem.domain.coefficient"] = [*forgery["problem.domain.coefficient"], "1", "1", "0"]
    forgery["problem.domain.bound"] = [*forgery["problem.domain.bound"], "1/2"]
    forgery["problem.domain.is_equality"] = np.append(forgery["problem.domain.is_equality"], False)
    last = 6 + len(forgery[f"{region}.row"])
    forgery[f"{region}.row"] = np.vstack([forgery[f"{region}.row"], [[0, 4, 0]]])
    forgery[f"{region}.choice_basis"] = np.vstack([forgery[f"{region}.choice_basis"], [[last, 3, 4]]])
    forgery["values.0.lower_basis"] = np.array([2, -1, -1, -1, -1, -1])
    for side, end, slack in (("lower", "box_lower", -1e-12), ("upper", "box_upper", 1e-12)):
        vector = forgery[f"values.0.{side}"].copy()
        vector[0], vector[2] = 0.55, 0.55 * forgery[f"{region}.{end}"][0] + slack
        forgery[f"values.0.{side}"] = vector
    forgery["claims.0.lower"] = forgery["claims.0.upper"] = 0.55
    return forgery.save(place / "empty.cert")


def test_a_region_without_points_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = empty_region(tmp_path)
    assert second.main([str(path)]) == 1
    assert "the data contradict the model" in capsys.readouterr().err
    for options in ((), ("--exact",)):
        verdict = verify(path, *options)
        assert verdict.code == 1 and "the data contradict the model" in str(verdict.result), verdict


@pytest.mark.parametrize("asked", ["R=? [ I=0.25 ]", "R=? [ C<=2 ]"])
def test_rewards_of_a_chain_that_are_all_0_are_0(asked: str, tmp_path: Path) -> None:
    rows = [(0, {1: 2}), (1, {0: 3})]
    chain = tr.build_ctmc_from_rows(rows, state_rewards={"": [0, 0]}).instantiate()
    proved = tr.certify(tr.Problem(chain, asked), tmp_path / "c.cert")
    assert tuple(proved["value"]) == (0, 0) and second_verdict(tmp_path / "c.cert") == 0
