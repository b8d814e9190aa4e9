"""The table of what works with what: the page shows it, and queries are answered or refused as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

import tightrope as tr
from tightrope.prism.load import load_prism_text
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.properties.capabilities import (
    CAPABILITIES,
    ModelKind,
    QueryKind,
    Task,
    capability_table,
    supports,
)
from tightrope.prism.properties.query import parse_query
from tightrope.prism.properties.shape import kind_of

MODEL = """dtmc
const double p;
formula a = x=1;
formula b = x=3;
module m
  x : [0..3];
  [] x=0 -> p : (x'=1) + 1-p : (x'=2);
  [] x=1 -> p : (x'=3) + 1-p : (x'=0);
  [] x=2 -> 0.5 : (x'=0) + 0.5 : (x'=1);
  [] x=3 -> 1 : true;
endmodule
label "goal" = x=3;
label "up" = x<2;
label "crash" = x>3;
label "a" = x=1;
label "b" = x=3;
rewards "cost"
  x<3 : 1;
endrewards
"""
CHAIN = MODEL.replace("dtmc", "ctmc").replace("const double p;", "const double p = 0.6;")
EXAMPLES = [(kind, text) for kind, row in CAPABILITIES.items() for text in row.examples]


def model() -> tr.ParametricMDP:
    built = load_prism_text(MODEL, domain="0.1<=p<=0.9")
    assert isinstance(built, tr.ParametricMDP)
    return built


def test_every_kind_has_a_row_and_the_page_shows_them() -> None:
    assert list(CAPABILITIES) == list(QueryKind)
    page = Path(__file__).parents[1] / "docs" / "properties.md"
    assert capability_table() in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "text"), EXAMPLES)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_examples_are_of_their_kind_and_answered(kind: QueryKind, text: str) -> None:
    file = parse_properties(text, "example")
    assert kind_of(file.properties[0].formula, file) is kind
    tr.solve(tr.Problem(model().instantiate(p=0.6), text))


@pytest.mark.parametrize("kind", QueryKind)
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_continuous_time_takes_what_the_table_says(kind: QueryKind, tmp_path: Path) -> None:
    (tmp_path / "chain.prism").write_text(CHAIN)
    chain, row = tr.load(tmp_path / "chain.prism"), CAPABILITIES[kind]
    problem = tr.Problem(chain, row.examples[0])
    if ModelKind.CONTINUOUS in row.models:
        tr.solve(problem)
        return
    with pytest.raises(tr.InputError, match="in continuous time"):
        tr.solve(problem)


@pytest.mark.parametrize("kind", [kind for kind in QueryKind if not supports(kind, Task.LEARN)])
def test_learning_refuses_the_others(kind: QueryKind) -> None:
    with pytest.raises(tr.InputError):
        tr.learn(tr.Problem(model(), CAPABILITIES[kind].examples[0]), [[((0,), "", (1,))]])


@pytest.mark.parametrize("kind", [kind for kind in QueryKind if not supports(kind, Task.CERTIFICATE)])
@pytest.mark.filterwarnings("ignore::tightrope.ReadingWarning")
def test_certificates_refuse_the_others(kind: QueryKind, tmp_path: Path) -> None:
    problem = tr.Problem(model().instantiate(p=0.6), CAPABILITIES[kind].examples[0])
    with pytest.raises(tr.InputError):
        tr.certify(problem, tmp_path / "x.cert")
    assert not (tmp_path / "x.cert").exists()


def test_a_refusal_names_the_option_the_property_and_the_reason() -> None:
    query = parse_query('A [ F "goal" ]', model().structure)
    with pytest.raises(tr.InputError, match=r"--certificate does not go with A \[.*\]: certificates are"):
        query.require(Task.CERTIFICATE)
    query.require(Task.CHECK)
