"""Attacks on coupled certificates: cells, hulls, models, occupancies."""

from __future__ import annotations

from pathlib import Path

import pytest

from adversary.attacks_learned import ATTACKS
from adversary.attacks_values import Attack
from adversary.trial import cases, try_attack

OF_CELLS = [attack for attack in ATTACKS if attack.name.startswith("coupled")]


@pytest.mark.parametrize(("attack", "on"), cases(OF_CELLS))
def test_attacks_are_refused(attack: Attack, on: str, tmp_path: Path) -> None:
    try_attack(attack, on, tmp_path)
