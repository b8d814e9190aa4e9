"""Attacks on learned certificates: counts, events, regions, sets, policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from adversary.attacks_learned import ATTACKS
from adversary.attacks_values import Attack
from adversary.trial import cases, try_attack

WITHOUT_CELLS = [attack for attack in ATTACKS if not attack.name.startswith("coupled")]


@pytest.mark.parametrize(("attack", "on"), cases(WITHOUT_CELLS))
def test_attacks_are_refused(attack: Attack, on: str, tmp_path: Path) -> None:
    try_attack(attack, on, tmp_path)
