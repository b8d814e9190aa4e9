"""Every named attack is refused, by longdouble and by rationals, tied to the honest problem or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from adversary import attacks_learned, attacks_values
from adversary.archive import Forgery
from adversary.attacks_values import Attack
from adversary.honest import ALL
from adversary.judge import refutation, verify

ATTACKS = [*attacks_values.ATTACKS, *attacks_learned.ATTACKS]
CASES = [pytest.param(attack, on, id=f"{attack.name}-{on}") for attack in ATTACKS for on in attack.on]


def test_there_are_enough_attacks_and_no_two_of_one_name() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(names) == len(set(names)) >= 60
    assert all(attack.why and attack.on for attack in ATTACKS)


@pytest.mark.parametrize("name", ALL)
def test_honest_certificates_are_accepted_and_true(name: str) -> None:
    honest = ALL[name]
    for options in ((), ("--exact",), honest.binding()):
        verdict = verify(honest.certificate, *options)
        assert verdict.accepted, verdict
    assert refutation(honest, Forgery.of(honest.certificate)) is None


@pytest.mark.parametrize(("attack", "on"), CASES)
def test_attacks_are_refused(attack: Attack, on: str, tmp_path: Path) -> None:
    honest = ALL[on]
    forgery = Forgery.of(honest.certificate)
    attack.forge(forgery)
    path = forgery.save(tmp_path / "forged.cert")
    for options in ((), ("--exact",)):
        verdict = verify(path, *options)
        if verdict.accepted:
            wrong = refutation(honest, forgery)
            assert wrong is None, f"{attack.name} ({attack.why}) was accepted: {wrong}"
            pytest.fail(f"{attack.name} was accepted, although nothing that it claims is false")
