"""One battery every front end must pass: the same model, however it was told.

The model comes as PRISM text, from the Python builder (a successor function, and rows), through DRN
files (ours and Storm's) and through explicit files. All of them must be the same model.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import stormpy
from stormpy import io

from same_model import assert_same_model
from storm import PlainModel, plain_from_tightrope
from tightrope.io.drn.read import read_drn
from tightrope.io.drn.write import write_drn
from tightrope.io.explicit import read_explicit, write_explicit
from tightrope.model.builder import build_from_function, build_from_rows
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism

PARAMETRIC = """
mdp
const double p;
const double q;
module walk
  x : [0..4] init 2;
  wet : bool init false;
  [left]  x>0 & x<4 -> p : (x'=x-1) + 1-p : (x'=x-1) & (wet'=true);
  [right] x>0 & x<4 -> p*q : (x'=x+1) + 0.5*q*(1-p) : (x'=0) & (wet'=true) + 1-p*q-0.5*q*(1-p) : true;
  [stay]  x=0 | x=4 -> true;
endmodule
label "home" = x=4;
label "wet" = wet;
rewards "steps" [left] true : 1; [right] true : 1.5; endrewards
rewards "far" x<2 : 2-x; endrewards
"""

INTERVAL = """
mdp
module walk
  x : [0..4] init 2;
  wet : bool init false;
  [left]  x>0 & x<4 -> [0.25,0.5] : (x'=x-1) + [0.5,0.75] : (x'=x-1) & (wet'=true);
  [right] x>0 & x<4 -> [0.1,0.3] : (x'=x+1) + [0.2,0.4] : (x'=0) & (wet'=true) + [0.3,0.7] : true;
  [stay]  x=0 | x=4 -> true;
endmodule
label "home" = x=4;
label "wet" = wet;
rewards "steps" [left] true : 1; [right] true : 1.5; endrewards
rewards "far" x<2 : 2-x; endrewards
"""

TEXTS = {"parametric": PARAMETRIC, "interval": INTERVAL}
DOMAIN = "1/10<=p<=9/10, q<=3/4, p+q<=3/2"
POINT = {"p": Fraction(3, 10), "q": Fraction(5, 8)}


class Place(NamedTuple):
    x: int
    wet: bool


def parameters() -> Parameters:
    from tightrope.model.parameters import parse_domain

    return parse_domain(DOMAIN, ("p", "q"))


def distributions(kind: str) -> Callable[[Place], dict[str, dict[Place, Any]]]:
    """The model once more, as a function."""
    p, q = parameters().symbols()
    left = (p, 1 - p) if kind == "parametric" else ((0.25, 0.5), (0.5, 0.75))
    if kind == "parametric":
        right = (p * q, q * (1 - p) / 2, 1 - p * q - q * (1 - p) / 2)
    else:
        right = ((0.1, 0.3), (0.2, 0.4), (0.3, 0.7))

    def successors(place: Place) -> dict[str, dict[Place, Any]]:
        x, wet = place
        if x in (0, 4):
            return {"stay": {place: 1}}
        back = {Place(x - 1, wet): left[0], Place(x - 1, True): left[1]}
        if wet:
            back = {Place(x - 1, True): 1 if kind == "parametric" else (0.75, 1)}
        return {
            "left": back,
            "right": {Place(x + 1, wet): right[0], Place(0, True): right[1], place: right[2]},
        }

    return successors


def from_prism(kind: str, folder: Path) -> Any:
    (folder / "model.prism").write_text(TEXTS[kind], encoding="utf-8")
    return load_prism(folder / "model.prism", domain=DOMAIN if kind == "parametric" else None)


def from_function(kind: str, folder: Path) -> Any:
    return build_from_function(
        Place(2, False),
        distributions(kind),
        parameters() if kind == "parametric" else None,
        labels={"home": lambda place: place.x == 4, "wet": lambda place: place.wet},
        choice_rewards={"steps": lambda place, action: {"left": 1, "right": 1.5, "stay": 0}[action]},
        state_rewards={"far": lambda place: max(2 - place.x, 0)},
    )


def from_rows(kind: str, folder: Path) -> Any:
    """The states found by the function, numbered from the other end."""
    successors = distributions(kind)
    seen = [Place(2, False)]
    for place in seen:
        for row in successors(place).values():
            seen.extend(target for target in row if target not in seen)
    seen.reverse()
    number = {place: k for k, place in enumerate(seen)}
    rows = [
        (number[place], action, {number[target]: value for target, value in row.items()})
        for place in seen
        for action, row in successors(place).items()
    ]
    return build_from_rows(
        rows,
        parameters() if kind == "parametric" else None,
        initial=number[Place(2, False)],
        labels={
            "home": [k for k, place in enumerate(seen) if place.x == 4],
            "wet": [k for k, place in enumerate(seen) if place.wet],
        },
        choice_rewards={"steps": [{"left": 1, "right": 1.5, "stay": 0}[action] for _, action, _ in rows]},
        state_rewards={"far": [max(2 - place.x, 0) for place in seen]},
        valuations={"x": [place.x for place in seen], "wet": [place.wet for place in seen]},
    )


def from_our_drn(kind: str, folder: Path) -> Any:
    write_drn(from_prism(kind, folder), folder / "ours.drn")
    return read_drn(folder / "ours.drn")


def from_storms_drn(kind: str, folder: Path) -> Any:
    """Built and written by Storm, domain given anew."""
    (folder / "model.prism").write_text(TEXTS[kind], encoding="utf-8")
    program = stormpy.parse_prism_program(str(folder / "model.prism"))
    value_type = stormpy.RationalFunction if kind == "parametric" else stormpy.Interval
    options = stormpy.BuilderOptions(build_full=True)
    io.export_to_drn(stormpy.build_model[value_type](program, options=options), str(folder / "storm.drn"))
    return read_drn(folder / "storm.drn", domain=DOMAIN if kind == "parametric" else None)


def from_explicit(kind: str, folder: Path) -> Any:
    """Explicit files hold numbers, so a parametric model goes through them at a point."""
    write_explicit(at_point(from_prism(kind, folder)), folder / "m")
    return read_explicit(folder / "m")


def at_point(model: Any) -> Any:
    if isinstance(model, ParametricMDP):
        return model.instantiate([POINT[name] for name in model.parameters.names])
    return model


FRONT_ENDS = [from_function, from_rows, from_our_drn, from_storms_drn, from_explicit]


def seen_through(model: Any) -> PlainModel:
    return plain_from_tightrope(model, POINT, action_names=True)


@pytest.mark.parametrize("kind", ["parametric", "interval"])
@pytest.mark.parametrize("front_end", FRONT_ENDS, ids=lambda f: f.__name__)
def test_the_same_model(front_end: Callable[[str, Path], Any], kind: str, tmp_path: Path) -> None:
    reference = from_prism(kind, tmp_path)
    model = front_end(kind, tmp_path)
    if front_end is from_explicit:
        reference = at_point(reference)
        assert isinstance(model, MDP if kind == "parametric" else IntervalMDP)
    elif kind == "parametric":
        assert model.parameters == reference.parameters
    assert type(model) is type(reference)
    assert seen_through(model) == seen_through(reference)


@pytest.mark.parametrize("kind", ["parametric", "interval"])
def test_files_keep_the_order_too(kind: str, tmp_path: Path) -> None:
    reference = from_prism(kind, tmp_path)
    assert_same_model(from_our_drn(kind, tmp_path), reference)
    assert_same_model(from_explicit(kind, tmp_path), at_point(reference))
    assert from_our_drn(kind, tmp_path).hash() == reference.hash()
