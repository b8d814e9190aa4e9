"""What `tightrope verify` compares a certificate with: the user's own model, property, data and policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tightrope.cli.log_source import LogRequest
from tightrope.cli.model_source import LoadedModel, load_model
from tightrope.cli.options import parse_constants
from tightrope.cli.output import warn
from tightrope.cli.questions import read_properties
from tightrope.cli.timed_model import load_embedded, refuse_options
from tightrope.errors import InputError
from tightrope.formats.policy import Policy
from tightrope.loading import ModelRequest, is_continuous
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.properties.resolve import resolve
from tightrope.proof.asked import Asked, asked_of
from tightrope.proof.verification import Own


@dataclass(frozen=True)
class Sources:
    """The options that name a model and what is asked of it, as in `check` and `learn`."""

    model: str
    prop: str | None
    at: str | None
    param: str | None
    domain: str | None
    discount: float | None
    terminal_reward: str | None
    constants: Mapping[str, str]
    translator: str | None = None

    @property
    def is_timed(self) -> bool:
        """Whether the model is in continuous time: certificates are then about its jumps."""
        return is_continuous(self.model)

    def load(self) -> tuple[LoadedModel, Objective | Asked | None]:
        """The model, and the objective where a property is given or a benchmark has one."""
        asked = read_properties([] if self.prop is None else [self.prop])
        given = asked.model_constants(self.constants)
        if self.is_timed:
            refuse_options({"--discount": self.discount, "--terminal-reward": self.terminal_reward})
            request = ModelRequest(self.model, parse_constants(given), self.param, self.domain)
            loaded = load_embedded(request, self.at, asked.files)
        else:
            loaded = load_model(self.model, given, self.param, self.domain)
        if self.prop is None and loaded.benchmark is None:
            return loaded, None
        parts = asked.parts(loaded, self.constants, self.discount, self.terminal_reward)
        if len(parts) != 1:
            raise InputError(f"a certificate is about one property, not {len(parts)}")
        one, structure = parts[0], loaded.model.structure
        if not one.is_plain:
            temporal = asked_of(one.what, one.file, structure, one.options, self.translator)
            if temporal.reading is not None:
                warn(temporal.reading)
            if temporal.sides is not None:
                warn(temporal.sides.warning)
            return loaded, temporal
        if self.translator is not None:
            raise InputError("--ltl-translator goes with temporal formulas: leave it out")
        question = resolve(one.what, one.file, structure, one.options)
        if question.reading is not None:
            warn(question.reading.warning)
        return loaded, question.objective


def own_problem(sources: Sources, log: LogRequest | None, policy: Path | None, at_point: bool) -> Own:
    """All that is compared; `at_point`: the certificate is about one point of a parametric model."""
    files = () if log is None else log.files()
    loaded, objective = sources.load()
    model, theta, counts = loaded.model, None, None
    if isinstance(model, ParametricMDP) and at_point:
        theta = loaded.point(sources.at)
    elif sources.at is not None and not sources.is_timed:
        raise InputError("--at goes with certificates about a point, this one is about none")
    if log is not None:
        if not isinstance(model, ParametricMDP):
            raise InputError(f"--data goes with parametric models, {sources.model} is none")
        counts = log.read(model, files).counts
    given: Policy | None = None
    if policy is not None:
        from tightrope.formats.policy import read_policy

        found = read_policy(policy, model.structure)
        if found.depends_on_step:
            raise InputError(f"{policy} depends on the step, and no certificate is about such a policy")
        given = found
    return Own(model, objective, theta, counts, given)
