"""The benchmark suite: from `bench:rover(125,125)` to an instance, and from there to a model.

    >>> instance = parse_bench("bench:betting(50)")
    >>> instance.sizes.states, instance.truth_text
    (13500, 'p=0.55,q=0.0004')

The listed instances are those of the paper's tables, with the sizes they must have and the value
of their property at the true point. Any other arguments that a family accepts are fine too; their
constants, domain and true point follow the family's rules, their sizes are not known beforehand.

Importing this module costs nothing: the front end is loaded when a model is built.
"""

from __future__ import annotations

import re
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tightrope.benchmarks.families import FAMILIES, Arguments, Family
from tightrope.benchmarks.instance import Instance, Sizes
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.model.structure import Structure
    from tightrope.prism.explore.search import Progress
    from tightrope.prism.properties.query import Query

PREFIX = "bench:"

_SHAPE = re.compile(r"\s*(?P<family>[A-Za-z_]\w*)\s*(?:\((?P<arguments>[^()]*)\))?\s*")

# Arguments: |S|, |T|, |Λ|, the optimum at the true point, the paper's name where it differs.
_Row = tuple[int, int, int, str] | tuple[int, int, int, str, str]
_LISTED: dict[str, dict[Arguments, _Row]] = {
    "aircraft": {
        (20, 10): (1833, 23743, 271, "0.262"),
        (50, 10): (5463, 73033, 721, "0.7421"),
        (100, 20): (39028, 551598, 1441, "0.8118"),
        (200, 40): (294458, 4285228, 2881, "0.8308"),
    },
    "betting": {
        (25,): (3625, 27703, 1283, "19.043"),
        (50,): (13500, 111678, 2613, "27.011"),
        (100,): (52000, 448378, 5283, "44.858"),
        (135,): (93825, 817943, 7147, "59.347", "betting(150)"),
    },
    "engagement": {
        (50,): (994, 2962, 61, "42.495"),
        (100,): (1994, 5962, 61, "42.4645"),
        (300,): (5994, 17962, 61, "42.461"),
        (1000,): (19994, 59962, 61, "42.461"),
    },
    "rover": {
        (10, 10): (5139, 24515, 145, "0.7646"),
        (50, 50): (191868, 1003861, 643, "0.5162"),
        (75, 75): (550447, 2973287, 943, "0.6120"),
        (125, 125): (1749083, 9591771, 1543, "0.6036"),
    },
    "glider": {
        (11, 9): (99, 1316, 227, "20.88"),
        (21, 17): (357, 5208, 785, "42.68"),
        (51, 47): (2397, 37068, 4984, "113.9"),
        (71, 67): (4757, 74308, 9785, "161.3", "glider(106,99)"),
    },
    "parallel": {
        (5,): (3051, 15543, 477, "26.619"),
        (6,): (5046, 30746, 597, "27.77"),
        (10,): (21006, 187730, 1077, "32.311"),
        (20,): (151556, 1846840, 185209, "28.510"),
    },
}


def parse_bench(text: str) -> Instance:
    """The instance that `bench:NAME(ARGS)` names; the prefix may be left out."""
    match = _SHAPE.fullmatch(text.removeprefix(PREFIX))
    if match is None:
        raise InputError(
            f"'{text}' does not name a benchmark", hint=f"write bench:NAME(ARGS); there are {_signatures()}"
        )
    name = match["family"]
    if name not in FAMILIES:
        close = get_close_matches(name.lower(), FAMILIES, 1)
        suggestion = f"did you mean {FAMILIES[close[0]].signature}? " if close else ""
        raise InputError(
            f"there is no benchmark family '{name}'", hint=f"{suggestion}there are {_signatures()}"
        )
    family = FAMILIES[name]
    return instance_of(family, _integers(text, family, match["arguments"]))


def instance_of(family: Family, arguments: Arguments) -> Instance:
    """The family at these arguments; whatever is known about it comes along."""
    _check(family, arguments)
    row = _LISTED[family.name].get(arguments)
    return Instance(
        family=family.name,
        arguments=arguments,
        constants=family.constants(arguments),
        parameter_names=family.parameter_names,
        domain=family.domain(arguments),
        truth=family.truth(arguments),
        property_text=family.property_text,
        terminal_reward=family.terminal_reward,
        episode_cap=family.episode_cap,
        sizes=Sizes(*row[:3]) if row else None,
        optimum=Decimal(row[3]) if row else None,
        paper_name=row[4] if row and len(row) == 5 else None,
    )


def list_instances() -> tuple[Instance, ...]:
    """The instances of the paper's tables, family by family, small ones first."""
    return tuple(
        instance_of(FAMILIES[family], arguments) for family, rows in _LISTED.items() for arguments in rows
    )


def load(instance: Instance, progress: Progress | None = None) -> ParametricMDP:
    """Build the model of an instance over its domain."""
    from tightrope.model.parametric_mdp import ParametricMDP
    from tightrope.prism.load import load_prism

    constants = {name: str(value) for name, value in instance.constants.items()}
    model = load_prism(instance.path, constants=constants, domain=instance.domain, progress=progress)
    if not isinstance(model, ParametricMDP):
        raise TypeError(f"{instance.path} is not a parametric model")
    return model


def question(instance: Instance, structure: Structure) -> Query:
    """What the default property of an instance asks of its model, terminal reward included."""
    from tightrope.prism.properties.query import parse_query
    from tightrope.prism.properties.resolve import PropertyOptions

    options = PropertyOptions(terminal_reward=instance.terminal_reward)
    where = f"the property of bench:{instance.name}"
    return parse_query(instance.property_text, structure, options, where)


def _signatures() -> str:
    return ", ".join(family.signature for family in FAMILIES.values())


def _integers(text: str, family: Family, arguments: str | None) -> Arguments:
    parts = [part.strip() for part in arguments.split(",")] if arguments and arguments.strip() else []
    if len(parts) != len(family.argument_names):
        raise InputError(
            f"'{text}' has {len(parts)} argument{'' if len(parts) == 1 else 's'}, "
            f"{family.name} takes {len(family.argument_names)}",
            hint=f"write bench:{family.signature}, such as bench:{_example(family)}",
        )
    for argument, part in zip(family.argument_names, parts, strict=True):
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", part):
            raise InputError(
                f"'{text}': {argument} must be an integer, got '{part}'",
                hint=f"write bench:{family.signature}, such as bench:{_example(family)}",
            )
    return tuple(int(part) for part in parts)


def _check(family: Family, arguments: Arguments) -> None:
    limits = zip(family.minimum, family.maximum or (None,) * len(arguments), strict=True)
    for argument, value, (least, most) in zip(family.argument_names, arguments, limits, strict=True):
        if value < least:
            raise InputError(f"{family.signature}: {argument} must be at least {least}, got {value}")
        if most is not None and value > most:
            raise InputError(
                f"{family.signature}: {argument} must be at most {most}, got {value}",
                hint=_hint_at_renamed(family, arguments) or family.maximum_reason,
            )


def _hint_at_renamed(family: Family, request: Arguments) -> str | None:
    """A hint for those who ask for an instance by the name it has in the paper."""
    for arguments, row in _LISTED[family.name].items():
        if len(row) == 5 and row[4] == _spell(family, request):
            return f"the instance that the paper calls {row[4]} is bench:{_spell(family, arguments)}"
    return None


def _example(family: Family) -> str:
    return _spell(family, next(iter(_LISTED[family.name])))


def _spell(family: Family, arguments: Arguments) -> str:
    return f"{family.name}({','.join(map(str, arguments))})"
