"""One attack on one honest certificate: it would be worth while, and it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from adversary.archive import Forgery
from adversary.attacks_values import Attack
from adversary.honest import ALL
from adversary.judge import refutation, verify

POINTLESS = ("no-claims",)
"""Attacks that claim nothing."""


def cases(attacks: list[Attack]) -> list[object]:
    return [pytest.param(attack, on, id=f"{attack.name}-{on}") for attack in attacks for on in attack.on]


def try_attack(attack: Attack, on: str, place: Path) -> None:
    """What the forger claims is false, and `verify` does not let it pass.

    In longdouble, and in rationals where that is quick or nothing else of the attack was tried in them.
    """
    honest = ALL[on]
    forgery = Forgery.of(honest.certificate)
    attack.forge(forgery)
    try:
        wrong = refutation(honest, forgery)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, ArithmeticError, AssertionError):
        wrong = "the claim cannot be read"
    assert wrong or attack.name in POINTLESS, f"{attack.name} claims nothing that is false"
    path = forgery.save(place / "forged.cert")
    in_rationals = on == attack.on[0] or honest.command == "check"
    for options in ((), ("--exact",)) if in_rationals else ((),):
        verdict = verify(path, *options)
        assert not verdict.accepted, f"{attack.name} ({attack.why}) was accepted: {wrong}"
