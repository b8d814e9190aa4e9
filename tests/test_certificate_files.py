"""Files of certificates: integers in few bytes, counts by signature, bounds by expression; nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from learning_cases import case, counts_of
from tightrope.certificate.archive import FORMAT, Archive
from tightrope.certificate.events_check import outcomes
from tightrope.certificate.learning import LearningCertificate
from tightrope.certificate.learning_check import verify_learning
from tightrope.certificate.packing import packed, unpacked
from tightrope.certificate.signatures import Signatures
from tightrope.errors import InputError
from tightrope.learning.certificate import certificate_of
from tightrope.learning.learn import learn

AIRCRAFT = "aircraft(8,4)"


def learned() -> LearningCertificate:
    subject, counts = case(AIRCRAFT), counts_of(AIRCRAFT)
    result = learn(subject.model, counts, 0.05, subject.objective, region="polytope", sets="expression")
    return certificate_of(result, counts)


def failures(certificate: LearningCertificate) -> list[str]:
    return [check.name for check in verify_learning(certificate) if not check.passed]


@given(
    st.sampled_from([np.int8, np.int16, np.int32, np.int64]).flatmap(
        lambda kind: arrays.arrays(kind, st.integers(0, 20))
    )
)
def test_integers_come_back_as_they_were(array: np.ndarray) -> None:
    stored, recipe = packed(array)
    again = unpacked(stored, recipe)
    assert again.dtype == array.dtype and np.array_equal(again, array)
    assert stored.itemsize <= array.itemsize


def test_steps_are_stored_where_they_are_narrower() -> None:
    offsets = np.arange(0, 3_000_000, 3, dtype=np.int64)
    stored, recipe = packed(offsets)
    assert stored.dtype == np.int8 and recipe == ["difference", "<i8"]
    spread = np.array([0, 100, -28, 100], dtype=np.int64)
    stored, recipe = packed(spread)
    assert stored.dtype == np.int8 and recipe == ["plain", "<i8"]
    table, flags = np.zeros((2, 2), dtype=np.int64), np.array([True])
    assert packed(table) == (table, None) and packed(flags) == (flags, None)


@pytest.mark.parametrize(
    "recipe", [["difference", "<f8"], ["shuffled", "<i8"], ["plain", "nothing"], ["plain"]]
)
def test_recipes_that_nobody_wrote_are_refused(recipe: list[str]) -> None:
    with pytest.raises((ValueError, TypeError)):
        unpacked(np.array([1, 2], dtype=np.int8), recipe)


def test_counts_by_signature_add_up_to_those_by_choice() -> None:
    rng = np.random.default_rng(4)
    length = rng.integers(1, 5, size=400)
    start = np.r_[0, np.cumsum(length)]
    expression = rng.integers(0, 4, size=start[-1]).astype(np.int32)
    counts = rng.integers(0, 1000, size=start[-1])
    found = Signatures.of(start, expression, counts)
    rows = found.rows()
    assert len(found) == len({tuple(row) for row in rows}) < 400
    for choice in range(400):
        assert rows[found.of_choice[choice]] == expression[start[choice] : start[choice + 1]].tolist()
    pooled: dict[tuple[int, int], int] = {}
    for parts in (outcomes(start, expression, counts), outcomes(found.start, found.expression, found.counts)):
        total: dict[tuple[int, int], int] = {}
        for e, m, seen in zip(*(part.tolist() for part in parts[1:]), strict=True):
            total[e, m] = total.get((e, m), 0) + seen
        assert not pooled or total == pooled
        pooled = total
    assert sum(pooled.values()) == counts.sum()


def test_bounds_are_written_by_expression_where_they_depend_on_it_alone(tmp_path: Path) -> None:
    certificate, path = learned(), tmp_path / "one.cert"
    assert certificate.save(path) == certificate.digest() == Archive.load(path).digest()
    short = Archive.load(path)
    assert short.header["bounds"] == "expression"
    assert len(short.arrays["problem.lower"]) == certificate.data.expression.max() + 1
    again = LearningCertificate.load(path)
    for name in ("lower", "upper", "successor", "choice_start", "transition_start"):
        before, after = getattr(certificate.problem, name), getattr(again.problem, name)
        assert before.dtype == after.dtype and np.array_equal(before, after)
    assert np.array_equal(again.data.counts, certificate.data.counts)
    assert failures(again) == []
    lower = certificate.problem.lower
    assert lower is not None
    wider = lower.copy()
    wider[np.argmax(lower)] *= 0.5
    replace(certificate, problem=replace(certificate.problem, lower=wider)).save(path)
    assert Archive.load(path).header["bounds"] == "transition"
    again = LearningCertificate.load(path)
    assert again.problem.lower is not None and np.array_equal(again.problem.lower, wider)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("problem.lower", lambda a: np.where((a > 0) & (a < 1), a + 1e-6, a)),
        ("problem.upper", lambda a: np.where((a > 0) & (a < 1), a - 1e-6, a)),
        ("problem.upper", lambda a: a[:-1]),
        ("problem.successor", lambda a: a[::-1]),
        ("data.counts", lambda a: np.where(a == a.max(), a // 2, a)),
        ("data.expression", lambda a: a + 1),
        ("guarantee0.policy", lambda a: np.r_[a[0] + 100, a[1:]]),
    ],
)
def test_changes_under_a_new_digest_are_found_by_the_checks(tmp_path: Path, name: str, change) -> None:
    path = tmp_path / "one.cert"
    learned().save(path)
    archive = Archive.load(path)
    arrays = dict(archive.arrays)
    arrays[name] = change(arrays[name])
    replace(archive, arrays=arrays).save(path)
    try:
        assert failures(LearningCertificate.load(path))
    except InputError as error:
        assert "not a certificate" in str(error)


def test_files_of_another_format_are_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "old.cert"
    head = {"format": FORMAT - 1, "kind": "learning", "header": {}, "about": {}, "digest": ""}
    with path.open("wb") as file:
        np.savez_compressed(file, header=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8))
    with pytest.raises(InputError, match="certificate format 2, this version reads 3") as caught:
        LearningCertificate.load(path)
    assert "again" in (caught.value.hint or "")
