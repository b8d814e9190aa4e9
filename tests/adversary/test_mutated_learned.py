"""Learned certificates changed at random: what is accepted, no point of the honest region refutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversary.archive import Forgery
from adversary.attacks_learned import narrow, tight
from adversary.examples import EXAMPLES
from adversary.honest import ALL, COSTS, DOMAINS, LEARNED, OTHERWISE, QUOTIENTS, REMEMBERED, SLAB_COUPLED
from adversary.judge import refutation, verify
from adversary.mutations import mutation
from adversary.proved import NOT_COVERED, proved_code

MUTATED = (*LEARNED, *DOMAINS, *REMEMBERED, COSTS, QUOTIENTS, SLAB_COUPLED)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutants") / "mutant.cert"


@settings(max_examples=EXAMPLES // 2)
@given(data=st.data())
def test_no_mutant_claims_more_than_the_region_allows(place: Path, data: st.DataObject) -> None:
    honest = ALL[data.draw(st.sampled_from([one.name for one in MUTATED]))]
    forgery = Forgery.of(honest.certificate)
    gain = data.draw(st.sampled_from(["none", "claim", "bounds"]))
    if gain == "claim":
        tight(data.draw(st.sampled_from([0.99, 0.9, 0.5])))(forgery)
    elif gain == "bounds" and not honest.policy and honest not in (*OTHERWISE, *REMEMBERED, COSTS):
        narrow(data.draw(st.sampled_from([0.999, 0.9, 0.5])))(forgery)
    paths = [path for path in forgery.fields() if not path.startswith(("about", "problem"))]
    changes = [gain, *(data.draw(mutation(forgery, paths)) for _ in range(data.draw(st.integers(1, 3))))]
    exactly = data.draw(st.booleans())
    verdict = verify(forgery.save(place), *(["--exact"] if exactly else []))
    proved = proved_code(place)
    if verdict.accepted or proved == 0:
        assert refutation(honest, forgery) is None, changes
    assert proved == NOT_COVERED or (proved == 0) == verdict.accepted, (changes, proved, verdict)
