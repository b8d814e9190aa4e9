"""Certificates of values, changed at random: what is accepted is true, and a second checker agrees."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversary.archive import Forgery
from adversary.attacks_values import claim_values
from adversary.examples import EXAMPLES
from adversary.honest import ALL, TIMED, VALUES
from adversary.judge import refutation, verify
from adversary.mutations import mutation
from adversary.second import second_verdict


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutants") / "mutant.cert"


@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_mutant_claims_more_than_the_truth(place: Path, data: st.DataObject) -> None:
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
    exactly = data.draw(st.booleans())
    verdict = verify(place, *(["--exact"] if exactly else []))
    if verdict.accepted:
        assert refutation(honest, forgery) is None, changes
    second = second_verdict(place)
    if exactly:
        assert (second == 0) == verdict.accepted, (changes, second, verdict)
    elif verdict.accepted:
        assert second == 0, (changes, second, verdict)
