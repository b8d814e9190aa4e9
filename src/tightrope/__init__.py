"""Robust policies for Markov decision processes with unknown parameters, learned from data.

The public names below are loaded when they are first used, so `import tightrope` costs
nothing: neither numpy nor numba is imported before a model is built.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from tightrope.coupled.result import CoupledStatus, CoupledValue
    from tightrope.coupled.synthesis import coupled_policy
    from tightrope.coupled.value import coupled_value
    from tightrope.data.counts import Counts
    from tightrope.data.reading import read_counts
    from tightrope.data.simulator import Simulator
    from tightrope.errors import CannotCertify, InputError, Location, TightropeError
    from tightrope.formats.drn import read_drn, write_drn
    from tightrope.formats.explicit import read_explicit, write_explicit
    from tightrope.formats.policy import Policy
    from tightrope.formats.umb import write_umb
    from tightrope.learning.domain import over_domain
    from tightrope.learning.learn import learn, learn_all
    from tightrope.learning.online.learner import OnlineLearner
    from tightrope.learning.options import LearnOptions
    from tightrope.learning.result import LearningResult
    from tightrope.model.builder import build_from_function, build_from_rows
    from tightrope.model.expressions import Expressions
    from tightrope.model.mdp import MDP, IntervalMDP
    from tightrope.model.objective import Direction, Objective, ObjectiveKind
    from tightrope.model.parameters import LinearConstraint, Parameters
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.model.polynomial import Polynomial
    from tightrope.model.structure import RewardStructure, Structure
    from tightrope.prism.load import load_prism
    from tightrope.proof.verification import verify
    from tightrope.solver.solution import Solution
    from tightrope.solver.solve import solve

_HOME = {
    "CannotCertify": "errors",
    "Counts": "data.counts",
    "CoupledStatus": "coupled.result",
    "CoupledValue": "coupled.result",
    "Direction": "model.objective",
    "Expressions": "model.expressions",
    "InputError": "errors",
    "IntervalMDP": "model.mdp",
    "LearnOptions": "learning.options",
    "LearningResult": "learning.result",
    "LinearConstraint": "model.parameters",
    "Location": "errors",
    "MDP": "model.mdp",
    "Objective": "model.objective",
    "ObjectiveKind": "model.objective",
    "OnlineLearner": "learning.online.learner",
    "Parameters": "model.parameters",
    "ParametricMDP": "model.parametric_mdp",
    "Policy": "formats.policy",
    "Polynomial": "model.polynomial",
    "RewardStructure": "model.structure",
    "Simulator": "data.simulator",
    "Solution": "solver.solution",
    "Structure": "model.structure",
    "TightropeError": "errors",
    "build_from_function": "model.builder",
    "build_from_rows": "model.builder",
    "coupled_policy": "coupled.synthesis",
    "coupled_value": "coupled.value",
    "learn": "learning.learn",
    "learn_all": "learning.learn",
    "load_prism": "prism.load",
    "over_domain": "learning.domain",
    "read_counts": "data.reading",
    "read_drn": "formats.drn",
    "read_explicit": "formats.explicit",
    "solve": "solver.solve",
    "verify": "proof.verification",
    "write_drn": "formats.drn",
    "write_explicit": "formats.explicit",
    "write_umb": "formats.umb",
}
"""Where each public name lives, below this package; the imports above say the same to type checkers."""

__all__ = [
    "MDP",
    "CannotCertify",
    "Counts",
    "CoupledStatus",
    "CoupledValue",
    "Direction",
    "Expressions",
    "InputError",
    "IntervalMDP",
    "LearnOptions",
    "LearningResult",
    "LinearConstraint",
    "Location",
    "Objective",
    "ObjectiveKind",
    "OnlineLearner",
    "Parameters",
    "ParametricMDP",
    "Policy",
    "Polynomial",
    "RewardStructure",
    "Simulator",
    "Solution",
    "Structure",
    "TightropeError",
    "__version__",
    "build_from_function",
    "build_from_rows",
    "coupled_policy",
    "coupled_value",
    "learn",
    "learn_all",
    "load_prism",
    "over_domain",
    "read_counts",
    "read_drn",
    "read_explicit",
    "solve",
    "verify",
    "write_drn",
    "write_explicit",
    "write_umb",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'tightrope' has no attribute {name!r}")
    value = getattr(import_module(f"tightrope.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
