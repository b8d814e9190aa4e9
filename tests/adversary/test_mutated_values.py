"""Certificates of values, changed at random: what is accepted is true, and the proved checker agrees, in
rationals. The verdict does not depend on float64, which only decides what is sure."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversary.archive import Forgery
from adversary.attacks_values import claim_values
from adversary.examples import EXAMPLES
from adversary.honest import ALL, TIMED, VALUES
from adversary.judge import refutation, verify
from adversary.mutations import mutation
from adversary.proved import is_judged_alike
from tightrope_check.numbers import Arithmetic


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutants") / "mutant.cert"


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_mutant_claims_more_than_the_true_value(place: Path, data: st.DataObject) -> None:
    honest = ALL[data.draw(st.sampled_from([one.name for one in (*VALUES, *TIMED)]))]
    forgery = Forgery.of(honest.certificate)
    paths = [path for path in forgery.fields() if not path.startswith("about")]
    changes = []
    for _ in range(data.draw(st.integers(1, 3))):
        changes.append(data.draw(mutation(forgery, paths)))
    if data.draw(st.booleans()):
        with suppress(KeyError, TypeError, ValueError, IndexError, AttributeError, Warning):
            claim_values(forgery)
    forgery.save(place)
    verdict = verify(place, *(["--exact"] if data.draw(st.booleans()) else []))
    if verdict.accepted:
        assert refutation(honest, forgery) is None, changes
    assert is_judged_alike(place, verdict.accepted), (changes, verdict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arithmetic, "error", coarse)
        assert verify(place).accepted == verdict.accepted, changes


def coarse(n: Arithmetic, operations: Any, size: Any) -> Any:
    """Error bounds as of numbers with 22 bits, or of a machine that adds up badly."""
    return 0 if n.exact else 2.0**30 * operations * (n.epsilon * size + n.tiny)


@pytest.mark.parametrize("name", [one.name for one in VALUES])
def test_honest_certificates_do_not_need_float64(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arithmetic, "error", coarse)
    assert verify(ALL[name].certificate).accepted
