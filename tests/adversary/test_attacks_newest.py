"""Attacks on observed costs, quotients, slabs with cells, and chains in continuous time."""

from __future__ import annotations

from pathlib import Path

import pytest

from adversary.archive import Forgery
from adversary.attacks_newest import ATTACKS
from adversary.attacks_values import Attack
from adversary.honest import ALL
from adversary.judge import verify
from adversary.trial import cases, try_attack


@pytest.mark.parametrize(("attack", "on"), cases(ATTACKS))
def test_attacks_are_refused(attack: Attack, on: str, tmp_path: Path) -> None:
    try_attack(attack, on, tmp_path)


REFUSED_BY = {
    "costs-narrowed-a-little": "rewards' intervals follow from the costs",
    "costs-of-probabilities": "events' intervals follow from the counts by beta-binomial",
    "costs-more": "hints",
    "costs-vectors-scaled": "robust policy: the lower bound is inductive",
    "quotient-near-inside": "robust policy: the lower bound is inductive",
    "quotient-intervals": "events' intervals follow from the counts by clopper-pearson",
    "cells-of-a-stage-by-itself": "hints",
    "cells-errors-halved": "robust policy: coupled: every cell's model encloses the value",
    "cells-none": "robust policy: the claim",
    "jumps-for-free": "value: the upper bound is inductive",
    "follows-at-once": "value: the play behind the lower bound stops",
}


@pytest.mark.parametrize("name", REFUSED_BY)
def test_attacks_fail_where_they_lie(name: str, tmp_path: Path) -> None:
    (attack,) = (one for one in ATTACKS if one.name == name)
    forgery = Forgery.of(ALL[attack.on[0]].certificate)
    attack.forge(forgery)
    verdict = verify(forgery.save(tmp_path / "forged.cert"))
    assert verdict.code == 1 and verdict.result is not None
    failed = [one["name"] for one in verdict.result["checked"] if not one["passed"]]
    assert failed[0] == REFUSED_BY[name]
