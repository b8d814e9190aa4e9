"""The likelihood region of rates: its mixture, its half-spaces, what it learns, and the command."""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

import tightrope as tr
from tightrope.cli.app import run
from tightrope.data.exposure import read_exposure
from tightrope.errors import InputError
from tightrope.prism.load import load_prism_text
from tightrope.regions.rate_box import (
    enclose_likelihood,
    estimate_jointly,
    likelihood_of,
    region_of_rates,
    threshold,
)
from tightrope.statistics.rates import SHAPE, RateClasses, RateLikelihood, estimate_rates, middles_of

RING = """
ctmc
const double a; const double b;
module ring
  s : [0..3];
  [] true -> a*(1+mod(s,3)) + b : (s'=mod(s+1,4)) + a + b*(s+1) : (s'=mod(s+2,4));
endmodule
label "far" = s=3;
"""
RACE = RING.replace("a + b*(s+1) : (s'=mod(s+2,4))", "a*b*(s+1) : (s'=mod(s+2,4))")
TRUTH = {"a": 0.5, "b": 0.3}
POINT = np.array([[0.5, 0.3]])


@pytest.fixture(scope="module")
def ring() -> tr.ParametricCTMC:
    return load_prism_text(RING, box="a=0.01:10,b=0.01:10")


def likelihood_at(model: tr.ParametricCTMC, seed: int, episodes: int = 10) -> tuple[RateLikelihood, Any]:
    seen = read_exposure(tr.simulate_times(model.instantiate(TRUTH), episodes, seed, 10), model)
    classes = RateClasses.of(model)
    likelihood, chosen = likelihood_of(model, classes, seen.jumps, seen.waited)
    return likelihood, middles_of(model, classes)[chosen]


@pytest.mark.parametrize("episodes", [1, 30])
def test_the_mixture_is_a_close_lower_bound_of_its_integral(ring: tr.ParametricCTMC, episodes: int) -> None:
    likelihood, middle = likelihood_at(ring, 3, episodes)
    centre = likelihood.estimate()
    peak = float(likelihood.at(centre[None])[0])
    assert np.abs(likelihood.slopes(centre)[0]).max() < 1e-3 * likelihood.exposure.sum()

    spread = np.sqrt(np.diag(np.linalg.inv(likelihood.slopes(centre)[1])))
    low, high = np.maximum(centre - 9 * spread, 0.01), np.minimum(centre + 9 * spread, 10.0)
    cells = 400
    step = (high - low) / cells
    grid = np.stack(np.meshgrid(*(low[k] + step[k] * (np.arange(cells) + 0.5) for k in (0, 1))), axis=-1)
    points = grid.reshape(-1, 2)
    density = np.exp(likelihood.at(points) - peak) / (points.prod(axis=1) * log(1000) ** 2)
    true = peak + log(density.sum() * step.prod())
    for turned in (True, False):
        assert likelihood._over_cells(centre, turned) <= true + 1e-3
    both = np.logaddexp(log(0.9) + true, log(0.1) + likelihood._over_classes(middle))
    found = likelihood.log_mixture(middle, centre)
    assert both - (0.3 if episodes == 1 else 0.1) < found <= both + 1e-3


def test_mixture_over_true_values_has_a_mean_of_at_most_one(ring: tr.ParametricCTMC) -> None:
    """The mean of a supermartingale, and how often it ever exceeds 1/δ, over seeded runs."""
    ratios = []
    for seed in range(50):
        likelihood, middle = likelihood_at(ring, seed, 2)
        mixture = likelihood.log_mixture(middle, likelihood.estimate())
        ratios.append(np.exp(mixture - likelihood.at(POINT)[0]))
    mean, error = np.mean(ratios), np.std(ratios) / np.sqrt(len(ratios))
    assert 0 < mean <= 1 + 3 * error
    assert np.mean(np.array(ratios) >= 10) <= 0.1


def test_half_spaces_hold_the_region_and_touch_it(ring: tr.ParametricCTMC) -> None:
    likelihood, middle = likelihood_at(ring, 5)
    level, centre = threshold(likelihood, middle, 0.05)
    region = enclose_likelihood(likelihood, ring, level, centre)
    rng = np.random.default_rng(1)
    width = region.upper - region.lower
    points = region.lower - 0.1 * width + 1.2 * width * rng.random((40_000, 2))
    inside = points[likelihood.at(points) >= level]
    assert len(inside) > 5000
    assert (inside @ region.matrix.T <= region.bound + 1e-9).all()
    assert (inside >= region.lower).all() and (inside <= region.upper).all()
    for slope, constant in zip(likelihood.slope, likelihood.constant, strict=True):
        low, high = region.bounds_of(slope, float(constant))
        values = inside @ slope + constant
        assert low <= values.min() and values.max() <= high
        assert high - low <= 1.06 * (values.max() - values.min())


def test_shared_parameters_are_known_more_closely_together(ring: tr.ParametricCTMC) -> None:
    seen = read_exposure(tr.simulate_times(ring.instantiate(TRUTH), 60, 2, 20), ring)
    apart = region_of_rates(estimate_rates(ring, seen.jumps, seen.waited, 0.05), ring.parameters)
    events, region = estimate_jointly(ring, seen.jumps, seen.waited, 0.05)
    assert ((region.upper - region.lower) < 0.8 * (apart.upper - apart.lower)).all()
    assert (region.lower <= POINT[0]).all() and (POINT[0] <= region.upper).all()
    for base, low, high in zip(events.classes.base, events.lower, events.upper, strict=True):
        assert low <= float(base.evaluate((0.5, 0.3))) <= high


def test_rates_of_their_own_are_mixed_by_class_in_closed_form() -> None:
    moves = "[] x=0 -> a:(x'=1); [] x=1 -> b:(x'=0);"
    text = f"ctmc const double a; const double b; module m x:[0..1]; {moves} endmodule"
    model = load_prism_text(text, box="a=0.01:10,b=0.01:10")
    likelihood, middle = likelihood_at(model, 4)
    assert not likelihood.mixes_parameters()
    k, t, scale = likelihood.events, likelihood.exposure, SHAPE / middle
    terms = SHAPE * np.log(scale) + gammaln(SHAPE + k) - gammaln(SHAPE) - (SHAPE + k) * np.log(scale + t)
    assert likelihood.log_mixture(middle, likelihood.estimate()) == pytest.approx(terms.sum(), abs=1e-6)


def test_rates_that_are_not_affine_keep_intervals_of_their_own() -> None:
    model = load_prism_text(RACE, box="a=0.01:10,b=0.01:10")
    asked = 'P=? [ F<=2 "far" ]'
    log_ = tr.simulate_times(model.instantiate(TRUTH), 40, 1, 20)
    result = tr.learn(tr.Problem(model, asked), log_, delta=0.1, region="likelihood")
    exact = tr.solve(model.instantiate(TRUTH), asked).bounds
    assert exact is not None and result.value is not None
    assert result.value.lower <= exact[0] <= exact[1] <= result.value.upper
    assert "for 1 that are not affine" in result.ledger.lines[-1] and result.ledger.holds_at_all_times
    with pytest.raises(InputError, match="for rates there are 'polytope' and 'likelihood'"):
        tr.learn(tr.Problem(model, asked), log_, region="slab")
    square = "ctmc const double a; module m x:[0..1]; [] x=0->a*a:(x'=1); [] x=1->1:(x'=0); endmodule"
    one = load_prism_text(square, box="a=0.1:5")
    short = tr.simulate_times(one.instantiate(a=1), 5, 1, 5)
    with pytest.raises(InputError, match="no rate is affine"):
        tr.learn(tr.Problem(one, "S=? [ x=1 ]"), short, region="likelihood")


def test_a_log_that_no_rates_explain_is_empty(ring: tr.ParametricCTMC) -> None:
    narrow = load_prism_text(RING, box="a=4:10,b=4:10")
    log_ = tr.simulate_times(ring.instantiate(TRUTH), 20, 1, 20)
    assert tr.learn(tr.Problem(narrow, 'P=? [ F<=1 "far" ]'), log_, region="likelihood").region.is_empty


def test_learn_takes_the_region(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, log_ = tmp_path / "ring.sm", tmp_path / "log.csv"
    model.write_text(RING)
    made = ("--at", "a=0.5,b=0.3", "--episodes", "30", "--time", "20", "-o", str(log_), "--json")
    assert run(["sample", str(model), *made]) == 0
    capsys.readouterr()
    widths = []
    asked = ("--data", str(log_), "--prop", 'P=? [ F<=2 "far" ]', "--delta", "0.05", "--json")
    for region in ("polytope", "likelihood"):
        words = ["learn", str(model), "--param", "a=0.01:10,b=0.01:10", *asked, "--region", region]
        assert run(words) == 0
        found = json.loads(capsys.readouterr().out)
        widths.append(found["value"]["upper"] - found["value"]["lower"])
    assert found["ledger"]["method"] == "likelihood region of rates, by a mixture"
    assert widths[1] < 0.8 * widths[0]
    assert run([*words[:-1], "slab"]) == 2
    assert "for rates there are 'polytope' and 'likelihood'" in capsys.readouterr().err
