"""A certificate about something else is not accepted for one's own model, property, data or policy."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from adversary.archive import Forgery
from adversary.honest import ALL, Honest
from adversary.judge import verify
from tightrope.certificate.checker import check
from tightrope.certificate.format.archive import load
from tightrope.proof.certificate_file import save_certificate

STATEMENT = {
    "problem.data.delta",
    "problem.data.method",
    "problem.data.shared_by",
    "problem.assumed_support",
}
"""What the certificate itself decides, and the output says."""

NAMES = (
    "point/reach",
    "interval/reach",
    "plain/reach",
    "point/cost",
    "parameter/reach",
    "point/temporal",
    "interval/average",
    "walk/events/tied",
    "spread/likelihood/coupled",
    "domain/coupled",
)


def changed(value: object) -> object:
    """Another value of the same kind, as close as it gets."""
    if isinstance(value, np.ndarray):
        other = value.copy()
        flat = other.reshape(-1)
        if len(flat) == 0:
            return np.append(other, np.zeros(1, dtype=other.dtype))
        place = len(flat) // 2
        flat[place] = (
            not flat[place]
            if flat.dtype == bool
            else np.nextafter(flat[place], 0.5)
            if flat.dtype.kind == "f"
            else flat[place] + 1
        )
        return other
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return (
            [*value[:-1], f"{value[-1]}0000000001/10000000000" if "/" not in value[-1] else "1/3"]
            if value
            else ["0"]
        )
    other = {"MAX": "MIN", "MIN": "MAX", "ANY": "MAX", "UNTIL": "NEXT", "REACH_REWARD": "TOTAL"}
    return other.get(str(value), 1)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_the_problem_is_compared(name: str, tmp_path: Path) -> None:
    honest = ALL[name]
    fields = Forgery.of(honest.certificate).fields()
    paths = [path for path in fields if path.startswith("problem.") and path not in STATEMENT]
    assert paths
    for path in paths:
        forgery = Forgery.of(honest.certificate)
        forgery[path] = changed(forgery[path])
        verdict = verify(forgery.save(tmp_path / "other.cert"), *honest.binding())
        assert not verdict.accepted, path
        if "about another" in verdict.err:
            assert verdict.code == 1 and path.split(".")[-1] in verdict.err, path


def binding_of(honest: Honest, **other: str) -> list[str]:
    """The options of another problem: some replaced."""
    options = honest.binding()
    for name, value in other.items():
        options[options.index(f"--{name}") + 1] = value
    return options


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("point/reach", "prop", 'Pmin=? [ F "goal" ]'),
        ("point/reach", "prop", 'Pmax=? [ F "done" ]'),
        ("point/reach", "prop", 'Pmax=? [ F<=100 "goal" ]'),
        ("point/reach", "prop", 'Pmax=? [ G "goal" ]'),
        ("parameter/reach", "at", "p=0.5500000001"),
        ("interval/reach", "prop", 'Pmaxmax=? [ F "goal" ]'),
        ("point/discounted", "discount", "0.95"),
        ("point/temporal", "prop", 'Pmax=? [ (G F s=5) | (F ("goal" & (X s=4))) ]'),
        ("point/temporal", "prop", 'Pmin=? [ (G F s=5) | (F ("goal" & (X s=3))) ]'),
        ("interval/temporal", "prop", 'Pmaxmin=? [ (F G s=5) | (F ("goal" & (X s=3))) ]'),
        ("point/settles", "prop", "Pmin=? [ F (s=2 & (F s=4)) ]"),
        ("point/average", "prop", 'R{"toll"}max=? [ S ]'),
        ("point/share", "prop", "Smax=? [ s=4 ]"),
        ("walk/events/tied", "param", "p=0.2:0.9"),
        ("domain/coupled", "domain", "p=2*r, 0.1<=p<=0.5, 0.1<=q<=0.5, r<=0.45"),
    ],
)
def test_another_question_is_refused(name: str, option: str, value: str) -> None:
    honest = ALL[name]
    verdict = verify(honest.certificate, *binding_of(honest, **{option: value}))
    assert verdict.code == 1 and "about another" in verdict.err


def test_another_model_is_refused(tmp_path: Path) -> None:
    honest = ALL["point/reach"]
    other = tmp_path / "game.prism"
    other.write_text(honest.text.replace("3/4", "7/8").replace("1/4", "1/8"))
    verdict = verify(honest.certificate, *binding_of(honest, model=str(other)))
    assert verdict.code == 1 and "another model" in verdict.err


def test_other_data_are_refused(tmp_path: Path) -> None:
    honest = ALL["walk/likelihood/expression"]
    lines = (honest.folder() / "data.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[2:]]
    pair = next(
        i for i, (a, b) in enumerate(pairwise(rows)) if a[:3] == b[:3] and min(int(a[5]), int(b[5])) > 1
    )
    for row, more in ((rows[pair], 1), (rows[pair + 1], -1)):
        row[5] = str(int(row[5]) + more)
    lines[2:] = [",".join(row) for row in rows]
    other = tmp_path / "data.csv"
    other.write_text("\n".join(lines) + "\n")
    verdict = verify(honest.certificate, *binding_of(honest, data=str(other)))
    assert verdict.code == 1 and "other data" in verdict.err


def test_batches_in_another_order_are_other_data(tmp_path: Path) -> None:
    honest = ALL["walk/likelihood/expression"]
    forgery = Forgery.of(honest.certificate)
    start, arrays = forgery["problem.data.batch_start"], ("batch_transition", "batch_count")
    parts = [[forgery[f"problem.data.{name}"][a:b] for a, b in pairwise(start)] for name in arrays]
    for name, part in zip(arrays, parts, strict=True):
        forgery[f"problem.data.{name}"] = np.concatenate(part[::-1])
    sizes = [len(one) for one in parts[0][::-1]]
    forgery["problem.data.batch_start"] = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    verdict = verify(forgery.save(tmp_path / "other.cert"), *honest.binding())
    assert verdict.code == 1 and "other data" in verdict.err


def test_another_policy_is_refused() -> None:
    given = ALL["point/given"]
    verdict = verify(given.certificate, *given.binding())
    assert verdict.accepted and verdict.result is not None and verdict.result["bound"]["policy"] is True
    mixed = ALL["point/mixed"]
    verdict = verify(given.certificate, *binding_of(given, policy=str(mixed.folder() / "policy.json")))
    assert verdict.code == 1 and "polic" in verdict.err


def test_a_policy_is_tied_to_the_claim_that_is_called_given(tmp_path: Path) -> None:
    """The user's policy stands in the file, as its robust one; what is called given is a better one."""
    honest = ALL["point/given"]
    certificate, other = (load(one.certificate).certificate for one in (honest, ALL["point/reach"]))
    (given,), (hints,) = certificate.claims, certificate.values
    (asked,), (best,) = other.claims, other.values
    better = replace(asked, name="given policy", policy="fixed", choice=best.witness)
    forged = replace(
        certificate,
        claims=(replace(given, name="robust policy"), better),
        values=(hints, replace(best, witness=None)),
    )
    assert check(forged).valid and better.lower > given.upper
    save_certificate(forged, tmp_path / "forged.cert")
    verdict = verify(tmp_path / "forged.cert", *honest.binding())
    assert verdict.code == 1 and "its given policy is another one" in verdict.err
