"""One attack on one honest certificate: it would be worth while, and it is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from adversary.archive import Forgery
from adversary.attacks_values import Attack
from adversary.honest import ALL
from adversary.judge import refutation, verify
from adversary.proved import proved_code
from effort import WHOLE

POINTLESS = ("no-claims",)
"""Attacks that claim nothing."""


def cases(attacks: list[Attack]) -> list[object]:
    """Half of the attacks on each part, each with one certificate; of which kind changes with its number.

    All attacks with all certificates of every kind with `TIGHTROPE_WHOLE=1`.
    """
    met: Counter[str] = Counter()
    result: list[object] = []
    for number, attack in enumerate(attacks):
        part = attack.name.partition("-")[0]
        met[part] += 1
        if WHOLE or met[part] % 2:
            targets = attack.on if WHOLE else _of_one_kind(attack.on, number)
            made = replace(attack, on=targets)
            result += [pytest.param(made, on, id=f"{attack.name}-{on}") for on in targets]
    return result


def _of_one_kind(names: tuple[str, ...], number: int) -> tuple[str, ...]:
    kinds: dict[str, list[str]] = {}
    for name in names:
        model, kind, *sets = name.split("/")
        alike = model in ("walk", "spread") and sets[0] in ("tied", "parameter", "expression", "rectangular")
        kinds.setdefault(kind if alike else name, []).append(name)
    chosen = [*kinds.values()][number % len(kinds)]
    return (chosen[number // len(kinds) % len(chosen)],)


def try_attack(attack: Attack, on: str, place: Path) -> None:
    """What the forger claims is false, and neither `verify` nor the proved checker lets it pass.

    In float64, and in rationals where that is quick.
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
    in_rationals = honest.command == "check" or (WHOLE and on == attack.on[0])
    for options in ((), ("--exact",)) if in_rationals else ((),):
        verdict = verify(path, *options)
        assert not verdict.accepted, f"{attack.name} ({attack.why}) was accepted: {wrong}"
    assert proved_code(path) != 0, f"{attack.name} was accepted by the proved checker"
