"""The registry of regions: capabilities of all kinds, and a kind that another package adds."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tightrope as tr
from learning_cases import case, counts_of
from tightrope.ambiguity.sets import SetsKind
from tightrope.certify.learned import certificate_of
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.regions.polytope import Polytope
from tightrope.regions.registry import own_kinds, region_kind, region_names

NAME = "betting(4)"
OWN = ("polytope", "l1", "ellipsoid", "likelihood", "slab", "joint", "chi2")
OUTSIDE = '''
from tightrope.regions.event_polytope import POLYTOPE
from tightrope.regions.likelihood import LIKELIHOOD
from tightrope.regions.region import RegionKind


class Halves(RegionKind):
    """The polytope at half of δ."""

    value = "halves"

    def build(self, task):
        from dataclasses import replace

        return replace(POLYTOPE.build(replace(task, delta=task.delta / 2)), kind=self)


class Wrong(type(LIKELIHOOD)):
    """The region of a tenth of the confidence that is asked for."""

    value = "wrong"

    def build(self, task):
        from dataclasses import replace

        made = LIKELIHOOD.build(replace(task, delta=0.9))
        return replace(made, kind=self, ledger=replace(made.ledger, delta=task.delta))


class Other(Halves):
    """Claims the proof of intervals, and says of none that it is made of them."""

    value = "other"
    certificate = "intervals"


class Unknown(Halves):
    """Claims a proof that the checker does not have."""

    value = "unknown"
    certificate = "an oracle"


NOTHING = 17
'''
ENTRIES = """[tightrope.regions]
halves = outside_region:Halves
wrong = outside_region:Wrong
nothing = outside_region:NOTHING
other = outside_region:Other
unknown = outside_region:Unknown
missing = outside_region_that_is_not_there:Kind
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that offers a region, and two that are no good."""
    (tmp_path / "outside_region.py").write_text(OUTSIDE)
    about = tmp_path / "outside_region-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-region\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("outside_region", None)


def test_what_each_kind_can_do() -> None:
    kinds = {kind.value: kind for kind in own_kinds()}
    assert tuple(kinds) == region_names()[:7] == OWN
    assert {name for name, kind in kinds.items() if kind.needs_order} == {"joint", "likelihood", "slab"}
    assert {name for name, kind in kinds.items() if not kind.has_facets} == {"ellipsoid"}
    assert {name for name, kind in kinds.items() if kind.serves_rates} == {"polytope", "likelihood"}
    assert {name for name, kind in kinds.items() if kind.certificate is None} == {"chi2"}
    for kind in kinds.values():
        assert pickle.loads(pickle.dumps(kind)) == kind and region_kind(kind) is kind
        assert hash(kind) == hash(region_kind(kind.value)) and kind.value in repr(kind)
    assert [kind for kind in SetsKind if kind.refusal(kinds["slab"])] == [
        SetsKind.UNTIED,
        SetsKind.TIED,
        SetsKind.PARAMETER,
    ]
    with pytest.raises(InputError, match="not one of polytope, l1, ellipsoid, likelihood, slab, joint, chi2"):
        region_kind("ball")


def test_a_region_of_another_package_is_learned_with(outside: None) -> None:
    assert region_names()[7:] == ("halves", "missing", "nothing", "other", "unknown", "wrong")
    known, counts = case(NAME), counts_of(NAME)
    result = tr.learn(known.problem, counts, delta=0.1, region="halves", sets="expression")
    assert isinstance(result.region, Polytope) and result.decisions.region == region_kind("halves")
    own = tr.learn(known.problem, counts, delta=0.05, region="polytope", sets="expression")
    assert result.robust.interval == own.robust.interval
    assert own.verdict.word.value == "proved" and result.verdict.word.value == "nominal"
    for name in ("halves", "other", "unknown"):
        result = tr.learn(known.problem, counts, delta=0.1, region=name, sets="expression")
        assert "no method in the checker" in result.verdict.why
        with pytest.raises(tr.InputError, match=f"certificates do not cover the region {name}"):
            certificate_of(result, counts)
    for name, why in (("nothing", "is not a region of the name"), ("missing", "cannot be loaded")):
        with pytest.raises(InputError, match=why):
            tr.learn(known.problem, counts, region=name)


def test_a_region_that_names_a_method_is_proved_by_its_certificate_alone(
    outside: None, tmp_path: Path
) -> None:
    known, counts = case(NAME), counts_of(NAME)
    words = {"delta": 0.1, "sets": "expression", "outcomes": "none"}
    honest = tr.learn(known.problem, counts, region="likelihood", **words)
    result = tr.learn(known.problem, counts, region="wrong", **words)
    assert result.robust.interval.lower > honest.robust.interval.lower
    assert result.verdict.word.value == "nominal"
    assert "a certificate that verify accepts is proof" in result.verdict.why
    tr.certify(result, tmp_path / "c.cert")
    verdict = tr.verify(tmp_path / "c.cert", model=known.model, data=counts)
    assert verdict.word == "proved"
    lower, _ = verdict.values["robust policy"]
    assert lower <= honest.robust.interval.lower + 1e-6


def test_the_command_line_takes_it(outside: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data.csv")
    model = f"bench:{NAME}"
    assert run(["sample", model, "--episodes", "60", "--seed", "2", "-o", data]) == 0
    asked = ["learn", model, "--data", data, "--region", "halves", "--sets", "expression"]
    assert run([*asked, "--json"]) == 1
    shown = capsys.readouterr().out
    assert '"region": "halves"' in shown and '"verdict": "nominal"' in shown
    certificate = tmp_path / "no.cert"
    assert run([*asked, "--certificate", str(certificate)]) == 2 and not certificate.exists()
    assert "certificates do not cover the region halves" in capsys.readouterr().err
    assert run(["learn", model, "--data", data, "--region", "ball"]) == 2
    assert (
        "not one of polytope, l1, ellipsoid, likelihood, slab, joint, chi2, halves" in capsys.readouterr().err
    )
