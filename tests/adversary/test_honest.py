"""What the forger starts from: honest certificates are accepted by every way to check them, and true."""

from __future__ import annotations

import pytest

from adversary import attacks_learned, attacks_newest, attacks_questions, attacks_values
from adversary.archive import Forgery
from adversary.honest import ALL
from adversary.judge import refutation, verify


def test_there_are_enough_attacks_and_no_two_of_one_name() -> None:
    listed = attacks_values, attacks_learned, attacks_questions, attacks_newest
    attacks = [attack for module in listed for attack in module.ATTACKS]
    names = [attack.name for attack in attacks]
    assert len(names) == len(set(names)) >= 60
    assert all(attack.why and attack.on and set(attack.on) <= ALL.keys() for attack in attacks)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", ALL)
def test_honest_certificates_are_accepted_and_true(name: str) -> None:
    honest = ALL[name]
    for options in ((), ("--exact",)):
        verdict = verify(honest.certificate, *options)
        assert verdict.accepted, verdict
        assert verdict.result is not None and not any(verdict.result["bound"].values())
    verdict = verify(honest.certificate, *honest.binding())
    assert verdict.accepted, verdict
    assert verdict.result is not None
    tied = verdict.result["bound"]
    assert tied["model"] is tied["property"] is True and tied["data"] is (True if honest.data else None), tied
    assert refutation(honest, Forgery.of(honest.certificate)) is None
