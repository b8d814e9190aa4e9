"""One attack on one honest certificate: it would be worth while, and it is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adversary.archive import Forgery
from adversary.attacks_values import Attack
from adversary.honest import ALL
from adversary.judge import refutation, verify
from adversary.second import UNREAD, is_read, second_verdict
from effort import WHOLE

POINTLESS = ("no-claims",)
"""Attacks that claim nothing."""


def cases(attacks: list[Attack]) -> list[object]:
    """Every attack with its first certificate and one of another kind, which changes with its number.

    All certificates of every kind where `HYPOTHESIS_PROFILE=explore` asks for more.
    """
    return [
        pytest.param(replace(attack, on=targets), on, id=f"{attack.name}-{on}")
        for number, attack in enumerate(attacks)
        for targets in [attack.on if WHOLE else _of_two_kinds(attack.on, number)]
        for on in targets
    ]


def _of_two_kinds(names: tuple[str, ...], number: int) -> tuple[str, ...]:
    kinds: dict[str, list[str]] = {}
    for name in names:
        model, kind, *sets = name.split("/")
        alike = model in ("walk", "spread") and sets[0] in ("tied", "parameter", "expression", "rectangular")
        kinds.setdefault(kind if alike else name, []).append(name)
    first, *others = kinds.values()  # the first one is also tried in rationals, which is quick for that one
    if not others:
        return (first[0],)
    other = others[number % len(others)]
    return first[0], other[number // len(others) % len(other)]


def try_attack(attack: Attack, on: str, place: Path) -> None:
    """What the forger claims is false, and neither `verify` nor the second checker lets it pass.

    In float64, and in rationals where that is quick or nothing else of the attack was tried in them.
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
    second = second_verdict(path)
    assert second in (1, 2) or (second == UNREAD and not is_read(on)), (
        f"{attack.name}: the second checker: {second}"
    )
