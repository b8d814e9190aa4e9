"""Attacks on certificates of values: refused by float64, by rationals, and by the proved checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from adversary.attacks_values import ATTACKS, Attack
from adversary.trial import cases, try_attack


@pytest.mark.parametrize(("attack", "on"), cases(ATTACKS))
def test_attacks_are_refused(attack: Attack, on: str, tmp_path: Path) -> None:
    try_attack(attack, on, tmp_path)
