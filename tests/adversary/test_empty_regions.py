"""Regions and domains without points, from which anything would follow; and bytes that nothing hashes."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from adversary.archive import Forgery
from adversary.honest import ALL
from adversary.judge import verify
from adversary.proved import NOT_COVERED, proved_code

REFUSED = (2, 2), (2, NOT_COVERED)


@pytest.mark.parametrize("name", ["walk/polytope/expression", "walk/events/tied"])
def test_data_that_contradict_the_domain_prove_nothing(name: str, tmp_path: Path) -> None:
    forgery = Forgery.of(ALL[name].certificate)
    forgery["problem.domain.lower"] = ["17/20"]
    assert_contradicted(forgery.save(tmp_path / "empty.cert"), "the data contradict the model")


def assert_contradicted(path: Path, words: str) -> None:
    """All checkers refuse, and `verify` says why."""
    assert proved_code(path) in (1, NOT_COVERED)
    for options in ((), ("--exact",)):
        verdict = verify(path, *options)
        assert verdict.code == 1 and words in str(verdict.result), verdict


def test_an_empty_domain_proves_nothing(tmp_path: Path) -> None:
    forgery = Forgery.of(ALL["domain/expression"].certificate)
    forgery["problem.domain.lower"] = ["3/5", "3/5", "1/5"]
    assert_contradicted(forgery.save(tmp_path / "empty.cert"), "the domain")


def test_every_byte_of_the_file_counts(tmp_path: Path) -> None:
    honest = ALL["walk/events/tied"].certificate
    content, path = honest.read_bytes(), tmp_path / "changed.cert"
    with zipfile.ZipFile(honest) as archive:
        first = archive.infolist()[1].header_offset
    for changed in (b"more" + content, content + b"more", content[:first] + b"gap" + content[first:]):
        path.write_bytes(changed)
        assert (verify(path).code, proved_code(path)) in REFUSED
    noted = io.BytesIO(content)
    with zipfile.ZipFile(noted, "a") as archive:
        archive.comment = b"nobody hashed this"
    path.write_bytes(noted.getvalue())
    assert (verify(path).code, proved_code(path)) in REFUSED
    path.write_bytes(content)
    assert verify(path).accepted and proved_code(path) in (0, NOT_COVERED)


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


def test_a_region_without_points_proves_nothing(tmp_path: Path) -> None:
    assert_contradicted(empty_region(tmp_path), "the data contradict the model")
