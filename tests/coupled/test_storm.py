"""Coupled intervals of chains against Storm's parameter lifting on boxes of parameters.

Storm refines the region until its extremal value is within a precision; ours must contain it and be as tight
as the gap says.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import stormpy
import stormpy.pars
from stormpy.pars import OptimizationDirection as Direction

from named_models import load_model
from places import TESTS
from tightrope.ambiguity.sets import rectangular
from tightrope.coupled.result import CoupledStatus
from tightrope.coupled.value import bound_coupled_value
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.properties.query import parse_query
from tightrope.regions.event_polytope import domain_region

MODELS = TESTS / "models"
PRECISION = 1e-3

PRODUCTS = """
dtmc
const double p; const double q;
module climb
  s : [0..4] init 0;
  [] s=0 -> p*q : (s'=1) + 1-p*q : (s'=2);
  [] s=1 -> 1-p : (s'=3) + p : (s'=4);
  [] s=2 -> q*(1-p) : (s'=3) + 1-q*(1-p) : (s'=4);
  [] s>2 -> true;
endmodule
label "high" = s=3;
"""

CASES = [
    ("biased_die.prism", "", {"p": (0.3, 0.6), "q": (0.4, 0.7)}, 'P=? [ F "six" ]'),
    ("biased_die.prism", "", {"p": (0.3, 0.6), "q": (0.4, 0.7)}, 'R=? [ F "done" ]'),
    (
        "retransmission.prism",
        "N=3,MAX=2",
        {"lossAck": (0.05, 0.2), "lossFrame": (0.1, 0.3)},
        'P=? [ F "delivered" ]',
    ),
    (PRODUCTS, "", {"p": (0.2, 0.7), "q": (0.3, 0.8)}, 'P=? [ F "high" ]'),
]


def storm_range(
    file: Path, constants: str, box: dict[str, tuple[float, float]], text: str
) -> tuple[float, float]:
    parsed = stormpy.parse_prism_program(str(file))
    program, _ = stormpy.instantiate_constants(parsed, constants)
    (wanted,) = stormpy.parse_properties(text, program)
    options = stormpy.BuilderOptions(build_full=True)
    model = stormpy.build_model[stormpy.RationalFunction](program, options=options)
    bounds = ",".join(f"{low}<={name}<={high}" for name, (low, high) in box.items())
    region = stormpy.pars.parse_region(bounds, model.collect_all_parameters())
    found = [
        stormpy.pars.compute_extremal_value(
            model, wanted, region=region, direction=direction, precision=PRECISION, absolute_precision=True
        )[0]
        for direction in (Direction.MINIMIZE, Direction.MAXIMIZE)
    ]
    return float(found[0]), float(found[1])


@pytest.mark.parametrize(
    ("file", "constants", "box", "text"), CASES, ids=["die", "die reward", "retransmission", "products"]
)
def test_parameter_lifting_finds_the_same_range(
    file: str, constants: str, box: dict[str, tuple[float, float]], text: str, tmp_path: Path
) -> None:
    path = MODELS / file
    if file is PRODUCTS:
        path = tmp_path / "products.prism"
        path.write_text(PRODUCTS, encoding="utf-8")
    low, high = storm_range(path, constants, box, text)
    bounds = ",".join(f"{name}={a}:{b}" for name, (a, b) in box.items())
    loaded = load_model(str(path), [constants] if constants else None, bounds)
    model = loaded.model
    assert isinstance(model, ParametricMDP) and model.choices == model.states
    objective = parse_query(text, model.structure).objective
    value = bound_coupled_value(
        rectangular(domain_region(model), model), objective, np.zeros(model.states, dtype=np.int64)
    )
    assert value.status in (CoupledStatus.EXACT, CoupledStatus.CERTIFIED)
    slack = 2 * PRECISION + value.gap * value.width
    assert value.lower - PRECISION <= low <= value.lower + slack
    assert value.upper - slack <= high <= value.upper + PRECISION
