"""From fixpoint equations to verified bounds: decide what graphs decide, collapse, order, solve block by
block, certify.

The steps, each in a file of its own:

1. An acyclic system needs one backward pass with safe rounding, and nothing else.
2. Otherwise states whose value the graph alone decides (0, 1, ∞) get it exactly: `decided`.
3. End components in which someone could idle are collapsed: `quotient`. What is left has one solution.
   Games that keep such components (nature cuts transitions against the agent) go through `games`.
4. Components in reverse topological order (`ordering`), each to a verified bound (`blocks`).
5. `certify` picks the policy and the ranking and checks every inequality once more on the model as given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.model.graph.components import strongly_connected_components
from tightrope.model.graph.support import Support
from tightrope.model.step_choices import StepChoices
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.solver.blocks import BlockSolver
from tightrope.solver.certify import certified
from tightrope.solver.decided import Decision, decide
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.games import play
from tightrope.solver.kernel import Kernel
from tightrope.solver.meter import Meter
from tightrope.solver.ordering import portions
from tightrope.solver.quotient import collapse
from tightrope.solver.solution import Status
from tightrope.solver.system import System


@dataclass(frozen=True, eq=False)
class Fixpoint:
    """Bounds of the equations' value, a policy that attains the agent's one, and the ranking that
    certifies the owners'.
    """

    lower: FloatArray
    upper: FloatArray
    policy: OffsetArray
    ranking: OffsetArray
    unit: float
    steps: StepChoices | None = None


def solve_equations(
    kernel: Kernel, equations: Equations, precision: float, relative: bool, meter: Meter
) -> Fixpoint:
    """Verified bounds for every state, within `precision` unless the meter says why not."""
    system, structure = equations.system, equations.system.structure
    support = Support(structure, kernel.lower, kernel.upper)
    usable = support.possible
    if not system.enabled.all():
        usable = usable & system.enabled[structure.transition_choice]
    lower, upper = equations.value.copy(), equations.value.copy()
    sinks = equations.sinks(support, usable)
    lower[sinks.states], upper[sinks.states] = sinks.value, sinks.value
    settled = equations.fixed.copy()
    settled[sinks.states] = True
    components = strongly_connected_components(support, usable=usable, expand=~settled)
    if components.is_acyclic:
        policy = default_policy(equations)
        for portion in portions(components, system.leader, settled):
            kernel.backward(system, portion.block, lower, upper, policy)
        ranking = np.empty(structure.states, np.int64)
        ranking[components.order] = np.arange(structure.states)
        if equations.meaning is Meaning.TOTAL:
            ranking *= structure.states + 1  # every state a layer of its own
        return Fixpoint(lower, upper, policy, ranking, system.unit)

    decision = decide(support, equations)
    lower[decision.states], upper[decision.states] = (
        decision.value[decision.states],
        decision.value[decision.states],
    )
    settled = equations.fixed | decision.states
    if settled.all():  # the graph has decided everything
        return _finish(kernel, support, equations, decision, lower, upper, meter)
    agent_owns, nature_owns = equations.agent_owns, equations.nature_owns
    if agent_has_no_choice(system, settled):
        agent_owns = nature_owns
    quotient = collapse(support, system, ~settled, agent_owns, nature_owns) if equations.can_idle else None
    if quotient is not None and not quotient.is_exact:
        played = play(kernel, equations, precision, relative, meter, solve_equations)
        lower, upper = played.lower, played.upper
    else:
        _solve_blocks(
            kernel,
            support,
            equations,
            usable,
            quotient.system if quotient else system,
            settled,
            lower,
            upper,
            precision,
            relative,
            meter,
        )
    return _finish(kernel, support, equations, decision, lower, upper, meter)


def _solve_blocks(
    kernel: Kernel,
    support: Support,
    equations: Equations,
    usable: BoolArray,
    system: System,
    settled: BoolArray,
    lower: FloatArray,
    upper: FloatArray,
    precision: float,
    relative: bool,
    meter: Meter,
) -> None:
    """Fill in the bounds of all states that are not settled.

    Block k of K may be precision·(1 + k/K)/2 wide: a block adds to the width it inherits, never the other
    way round."""
    structure = system.structure
    components = strongly_connected_components(support, usable=usable, expand=~settled)
    meter.place = np.full(structure.states, -1, np.int32)
    solver = BlockSolver(kernel, support, equations, system, relative, meter)
    scratch = np.empty(structure.states, np.int64)
    todo = list(portions(components, system.leader, settled))
    cyclic = sum(portion.cyclic for portion in todo)
    done = 0
    for portion in todo:
        if not portion.cyclic:
            kernel.backward(system, portion.block, lower, upper, scratch)
            continue
        done += 1
        budget = 0.5 * precision * (1 + done / cyclic)
        solver.solve(portion.block, lower, upper, budget, connected=portion.connected)


def _finish(
    kernel: Kernel,
    support: Support,
    equations: Equations,
    decision: Decision,
    lower: FloatArray,
    upper: FloatArray,
    meter: Meter,
) -> Fixpoint:
    certificate = certified(kernel, support, equations, decision, lower, upper)
    if not certificate.holds:
        meter.stopped = meter.stopped or Status.PRECISION_LIMIT
    return Fixpoint(
        certificate.lower, certificate.upper, certificate.policy, certificate.ranking, equations.system.unit
    )


def default_policy(equations: Equations) -> OffsetArray:
    """The first enabled choice of every state; one with a reward where a total reward is maximised."""
    system, structure = equations.system, equations.system.structure
    policy = structure.choice_start[:-1].copy()
    preferred = [] if system.enabled.all() else [system.enabled]
    if equations.meaning is Meaning.TOTAL and system.agent_maximises:
        preferred.append(system.enabled & (system.reward > 0))
    for mask in preferred:
        choices = np.flatnonzero(mask)[::-1]
        policy[structure.choice_state[choices]] = choices
    return policy


def agent_has_no_choice(system: System, settled: BoolArray) -> bool:
    open_choices = np.add.reduceat(system.enabled.astype(np.int32), system.structure.choice_start[:-1])
    return bool(np.all(settled | (open_choices <= 1)))
