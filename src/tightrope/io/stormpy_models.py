"""Models to and from stormpy, Storm's Python package (an optional extra).

A model is exchanged as a DRN file, exactly: parameters, intervals, labels, rewards, action names, variables.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tightrope.errors import InputError
from tightrope.io.drn.read import read_drn
from tightrope.io.drn.write import write_drn
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import Ranges, box_text
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP

Model = ParametricMDP | IntervalMDP | MDP | POMDP


def to_stormpy(model: Model) -> Any:
    """The model as Storm's own: over rational functions, intervals, or doubles.

    >>> import tightrope as tr
    >>> storm = tr.to_stormpy(tr.load("bench:betting(5)"))  # doctest: +SKIP
    >>> storm.nr_states, storm.has_parameters  # doctest: +SKIP
    (225, True)
    """
    stormpy = _stormpy()
    if not isinstance(model, Model):
        raise InputError(f"`model` is a {type(model).__name__}, not a model of tightrope")
    behind = model.model if isinstance(model, POMDP) else model
    if isinstance(behind, IntervalMDP):
        number: Any = stormpy.RationalInterval
    elif isinstance(behind, ParametricMDP):
        number = stormpy.RationalFunction if behind.parameters.names else stormpy.Rational
    else:
        number = float
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.drn"
        write_drn(model, file)
        return stormpy.build_model_from_drn[number](str(file), options=options)


def from_stormpy(storm: Any, *, params: Ranges | str | None = None, domain: str | None = None) -> Model:
    """A model of Storm's as ours; it knows no domain, so `params` and `domain` are those of `load`.

    >>> import tightrope as tr
    >>> model = tr.load("bench:betting(5)")
    >>> tr.from_stormpy(tr.to_stormpy(model), domain=model.parameters.text()).states  # doctest: +SKIP
    225
    """
    stormpy = _stormpy()
    if not hasattr(storm, "nr_states"):
        raise InputError(f"`storm` is a {type(storm).__name__}, not a model of stormpy")
    options = stormpy.io.DirectEncodingExporterOptions()
    options.allow_placeholders = True
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.drn"
        stormpy.io.export_to_drn(storm, str(file), options=options)
        try:
            return read_drn(file, box=box_text(params), domain=domain)
        except InputError as error:  # without the name of a file that nobody knows
            raise InputError(error.message, hint=error.hint) from None


def _stormpy() -> Any:
    try:
        import stormpy
        import stormpy.io
    except ImportError:
        raise InputError(
            "models of Storm need the package stormpy", hint="pip install 'tightrope[storm]'"
        ) from None
    return stormpy
