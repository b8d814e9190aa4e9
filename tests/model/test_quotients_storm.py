"""Random small models with quotients at random rational points: Storm's exact values and ours."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest
import stormpy

import tightrope as tr
from storm import build_with_storm, plain_from_storm, plain_from_tightrope
from tightrope.prism.load import load_prism_text

STATES = 6
ASKED = "Pmax=? [ F s=5 ]"


def draw_text(generator: random.Random) -> str:
    """Choices with two or three outcomes, all over one denominator, which is positive for p, q > 0."""
    lines = []
    for state in range(STATES - 2):
        for action in ("a", "b")[: generator.randint(1, 2)]:
            weights = [
                f"{generator.randint(1, 4)}*{generator.choice(['p', 'q', 'p*q', 'p*p', '1', '(1+q)'])}"
                for _ in range(generator.randint(2, 3))
            ]
            total = "+".join(weights)
            goals = generator.sample(range(STATES), len(weights))
            updates = " + ".join(
                f"{w}/({total}) : (s'={goal})" for w, goal in zip(weights, goals, strict=True)
            )
            lines.append(f"  [{action}] s={state} -> {updates};")
    body = "\n".join(lines)
    return (
        f"mdp\nconst double p;\nconst double q;\nmodule m\n  s : [0..{STATES - 1}] init 0;\n{body}\n"
        f"  [] s>={STATES - 2} -> true;\nendmodule\n"
    )


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(4))
def test_models_and_values_at_a_point(seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    text = draw_text(generator)
    path = tmp_path / "drawn.prism"
    path.write_text(text, encoding="utf-8")
    model = load_prism_text(text, box="p=0.01:1,q=0.01:1")
    assert isinstance(model, tr.ParametricMDP)
    assert model.expressions.denominators
    point = {name: Fraction(generator.randint(1, 40), 41) for name in ("p", "q")}
    theirs = build_with_storm(path, {}, "parametric", tmp_path)
    ours = plain_from_tightrope(model, point, action_names=True)
    assert plain_from_storm(theirs, point).choices == ours.choices

    program = stormpy.parse_prism_program(str(path), simplify=False)
    program, _ = stormpy.instantiate_constants(program, ",".join(f"{k}={v}" for k, v in point.items()))
    (formula,) = stormpy.parse_properties(ASKED, program)
    storm = stormpy.build_model[stormpy.Rational](program, [formula])
    exact = Fraction(str(stormpy.model_checking(storm, formula)[storm.initial_states[0]]).split()[0])
    found = tr.solve(model.problem(ASKED).at(**point), precision=1e-9).at_initial_states
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower < 1e-8
    interval = tr.solve(model.problem(ASKED), sets="expression").interval
    assert interval.lower <= exact
