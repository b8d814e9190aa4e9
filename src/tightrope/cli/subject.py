"""What is learned about: a parametric model and one question. Shared by the commands that learn."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.cli.model_source import LoadedModel, load_model
from tightrope.cli.options import parse_constants
from tightrope.cli.output import warn
from tightrope.cli.questions import read_properties
from tightrope.cli.records import SubjectOptions
from tightrope.errors import InputError
from tightrope.logic.product_problem import ProductProblem, product_problem
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem


@dataclass(frozen=True)
class Subject:
    """The model by the name it was given, as it was loaded, and what is asked of it."""

    source: str
    loaded: LoadedModel
    model: ParametricMDP
    query: Query
    product: ProductProblem | None = None
    """The question as one about a product, where it is temporal."""

    @property
    def problem(self) -> Problem:
        """Both together."""
        return self.product or Problem(self.model, self.query)

    def point_text(self, at: str | None) -> dict[str, str] | None:
        """The true parameters, where they are known."""
        from tightrope.benchmarks.instance import decimal_text

        if at is None and self.loaded.benchmark is None:
            return None
        point = self.loaded.point(at)
        return {n: decimal_text(v) for n, v in zip(self.model.parameters.names, point, strict=True)}


def load_subject(asked: SubjectOptions, temporal: bool = False) -> Subject:
    """Load the model and the question; refuse models without parameters and questions without a value.

    `temporal`: formulas of LTL are wanted as well."""
    constants = parse_constants(asked.const)
    properties = read_properties([] if asked.prop is None else [asked.prop])
    loaded = load_model(asked.model, properties.model_constants(constants), asked.param, asked.domain)
    queries = properties.queries(loaded, constants, asked.discount, asked.terminal_reward)
    if len(queries) != 1:
        raise InputError(f"learning goes with one property, not {len(queries)}")
    query, product = queries[0], None
    if temporal and query.kind is QueryKind.LTL and isinstance(loaded.model, ParametricMDP):
        product, reading = product_problem(loaded.model, query)
        warn(reading)
        query = product.query
    elif not query.is_plain:
        raise query.refusal()
    if query.is_threshold:
        raise InputError(
            f"{query.text} is true or false, but learning needs a value to optimise",
            hint="ask for the value: Pmax=? [ … ]",
        )
    if not isinstance(loaded.model, ParametricMDP) or not loaded.model.parameters.names:
        raise InputError(
            f"{asked.model} has no parameters: there is nothing to learn about it",
            hint="'tightrope check' computes the values of such a model",
        )
    return Subject(asked.model, loaded, loaded.model, query, product)
