"""Models by their names, as commands load them."""

from __future__ import annotations

from tightrope.cli.options import ModelOptions
from tightrope.cli.sources import Loaded, Question


def load_model(
    source: str, const: list[str] | None = None, param: str | None = None, domain: str | None = None
) -> Loaded:
    """Build the model of this name."""
    return Question.of(ModelOptions(model=source, const=const, param=param, domain=domain)).load()
