"""Reading JANI files: a program of the PRISM language comes out, and from it the model.

What is not understood is refused with the path of the place, never passed over. Properties: `properties`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

from tightrope.errors import InputError, Location
from tightrope.io.jani.automata import Automaton, read_automaton, synchronise
from tightrope.io.jani.declarations import Transient, read_constants, read_variables
from tightrope.io.jani.nodes import TRUE, Node, Places, conjunction, expression
from tightrope.io.jani.properties import STEPS, TIME, ReadProperty, counts_steps, property_of
from tightrope.io.number_text import LONGEST, exact_number
from tightrope.io.text_file import shorten
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.text_reading import reading
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program
from tightrope.prism.load import BuildWords, PrismRates, build_model, build_rates
from tightrope.prism.parse import syntax
from tightrope.prism.parse.diagnostics import Complaint

_CTMC = re.compile(r'"type"\s*:\s*"ctmc"')
_KNOWN = (
    *("jani-version", "name", "metadata", "type", "features", "actions", "constants", "variables"),
    *("restrict-initial", "properties", "automata", "system"),
)
_TYPES = {"dtmc": syntax.ModelType.DTMC, "mdp": syntax.ModelType.MDP, "ctmc": syntax.ModelType.CTMC}


def read_jani(
    path: str | Path, constants: Mapping[str, str] | None = None, **said: Unpack[BuildWords]
) -> ParametricMDP | IntervalMDP:
    """The model of a JANI file; the arguments are those of `load_prism`."""
    file = Path(path)
    with _naming_paths(file) as places:
        return build_model(_program(_parse(file), places, str(file), constants or {}), **said).model


def read_jani_rates(
    path: str | Path, constants: Mapping[str, str] | None = None, **said: Unpack[BuildWords]
) -> PrismRates:
    """The chain in continuous time of a JANI file."""
    file = Path(path)
    with _naming_paths(file) as places:
        return build_rates(_program(_parse(file), places, str(file), constants or {}), **said)


def is_jani_ctmc(path: str | Path) -> bool:
    """Whether a file of JSON says that its type is ctmc; what else is wrong with it, reading it says."""
    with reading(Path(path)) as opened:
        return _CTMC.search(opened.read()) is not None


def read_program(path: str | Path, constants: Mapping[str, str] | None = None) -> Program:
    """The program that a JANI file stands for."""
    file = Path(path)
    with _naming_paths(file) as places:
        return _program(_parse(file), places, str(file), constants or {})


def read_properties(path: str | Path) -> list[ReadProperty]:
    """The properties of a JANI file in our own words, or why there are none for one of them."""
    file = Path(path)
    with _naming_paths(file) as places:
        root = Node(_parse(file), "", places)
        return [property_of(root, node) for node in root.each("properties")]


@contextmanager
def _naming_paths(file: Path) -> Iterator[Places]:
    """What is wrong inside is said with the path of the place in the file."""
    places = Places()
    try:
        yield places
    except Complaint as complaint:
        where = "" if complaint.position is None else places.paths[complaint.position.line - 1]
        raise _at_path(complaint.message, where, file, complaint.hint) from None
    except InputError as error:
        if error.location is None or error.location.line is None or error.location.file != str(file):
            raise
        if error.location.text is None:  # a place in the text of the file itself
            raise
        where = places.paths[error.location.line - 1]
        raise _at_path(error.message, where, file, error.hint) from None
    except RecursionError:
        raise InputError("its expressions are nested too deeply", Location(str(file))) from None


def _at_path(message: str, where: str, file: Path, hint: str | None) -> InputError:
    return InputError(f"{where}: {message}" if where else message, Location(str(file)), hint)


def _parse(file: Path) -> Any:
    """The content, with decimals as the exact numbers that are written."""
    with reading(file) as opened:
        text = opened.read()
    try:
        return json.loads(
            text.removeprefix("\ufeff"),
            parse_float=_decimal,
            parse_int=_integer,
            parse_constant=_no_number,
        )
    except json.JSONDecodeError as error:
        raise InputError(
            f"this is not JSON: {error.msg}", Location(str(file), error.lineno, error.colno)
        ) from None
    except RecursionError:
        raise InputError("it is nested too deeply", Location(str(file))) from None
    except ValueError as error:
        raise InputError(f"this is not JSON that can be read: {error}", Location(str(file))) from None


def _decimal(text: str) -> Fraction:
    """A decimal exactly; its exponent is looked at before anything is built of it."""
    try:
        return exact_number(text)
    except ValueError:
        raise ValueError(f"a number has more than {LONGEST} digits: {shorten(text, 20)}") from None


def _integer(text: str) -> int:
    if len(text) > LONGEST:
        raise ValueError(f"a number has more than {LONGEST} digits: {shorten(text, 20)}")
    return int(text)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _program(content: Any, places: Places, file: str, given: Mapping[str, str]) -> Program:
    root = Node(content, "", places)
    root.members(_KNOWN)
    kind = root.at("type").text()
    if kind not in _TYPES:
        root.at("type").fail(f"models of type {kind} are not supported: only dtmc, mdp and ctmc are")
    variables, transients = read_variables(root.each("variables"), {})
    by_name = {each.name: each for each in transients}
    taken = {each.name() for key in ("constants", "variables") for each in root.each(key)}
    automata = _automata(root, taken, by_name)
    for automaton in automata:
        transients += automaton.transients
    synchronisations, earned = synchronise(root.at("system"), automata)
    in_state = _in_state(automata, transients)
    init, variables, modules = _initial(root, variables, automata)
    position = root.position
    model = syntax.Model(
        type=_TYPES[kind],
        constants=tuple(read_constants(root)),
        formulas=tuple(
            syntax.Formula(t.name, in_state.get(t.name, t.default), t.node.position) for t in transients
        ),
        labels=tuple(
            syntax.LabelDefinition(t.title, syntax.Name(t.name, position), t.node.position)
            for t in transients
            if t.is_label and t.title not in ("init", "deadlock")
        ),
        globals=tuple(variables),
        modules=modules,
        rewards=(*_rewards(transients, in_state, earned), *_steps(root)),
        init=init,
        source="\n".join(places.paths),
        file=file,
    )
    return expand(model, given, synchronisations)


def _automata(root: Node, taken: set[str], transients: Mapping[str, Transient]) -> list[Automaton]:
    """One instance per element of the system; local variables whose names clash get its name in front."""
    declared = {each.name(): each for each in root.each("automata")}
    root.at("system").members(("elements", "syncs"))
    used: dict[str, int] = {}
    found = []
    for element in root.at("system").each("elements"):
        element.members(("automaton", "input-enable"))
        if element.has("input-enable") and element.at("input-enable").value:
            element.fail("'input-enable' is not supported")
        name = element.at("automaton").text()
        if name not in declared:
            element.fail(f"there is no automaton '{name}'")
        used[name] = used.get(name, 0) + 1
        instance = name if used[name] == 1 else f"{name}_{used[name]}"
        scope: dict[str, str] = {}
        for each in declared[name].each("variables"):
            own = each.name()
            while scope.get(each.name(), own) in taken:
                scope[each.name()] = f"{instance}_{scope.get(each.name(), own)}"
            taken.add(scope.get(each.name(), own))
        has_rates = root.at("type").value == "ctmc"
        found.append(read_automaton(declared[name], instance, scope, transients, has_rates))
    if not found:
        root.at("system").fail("the system has no automaton")
    return found


def _in_state(automata: list[Automaton], transients: list[Transient]) -> dict[str, syntax.Expression]:
    """What transient variables are in a state, where locations say so."""
    found: dict[str, syntax.Expression] = {}
    for automaton in automata:
        for name, value in automaton.in_state.items():
            if name in found:
                node = next(each.node for each in transients if each.name == name)
                node.fail(f"two automata say what '{name}' is in a state")
            found[name] = value
    return found


def _initial(
    root: Node, variables: list[syntax.Variable], automata: list[Automaton]
) -> tuple[syntax.Expression | None, list[syntax.Variable], tuple[Any, ...]]:
    """A condition on the initial states where values alone do not say it, and variables to go with it."""
    restricted = [each for automaton in automata for each in automaton.initial]
    if root.has("restrict-initial"):
        restricted.append(expression(root.at("restrict-initial").at("exp"), {}))
    modules = tuple(automaton.module for automaton in automata)
    everything = [*variables, *(each for module in modules for each in module.variables)]
    if not everything:
        root.fail("the model has no variables and one location only: it has a single state")
    if not restricted and all(each.initial is not None for each in everything):
        return None, variables, modules
    position = root.position
    given = [
        syntax.Binary("=", syntax.Name(each.name, each.position), each.initial, each.position)
        for each in everything
        if each.initial is not None
    ]
    freed = [_without_value(each) for each in variables]
    modules = tuple(
        type(m)(m.name, tuple(_without_value(v) for v in m.variables), m.commands, m.position)
        for m in modules
    )
    return conjunction([*given, *restricted], position), freed, modules


def _without_value(variable: syntax.Variable) -> syntax.Variable:
    return syntax.Variable(variable.name, variable.type, variable.low, variable.high, None, variable.position)


def _steps(root: Node) -> tuple[syntax.Rewards, ...]:
    """One for every step, or per unit of time, where a property counts that."""
    position = root.position
    always = syntax.RewardItem(False, None, TRUE, syntax.Literal(1, syntax.Type.INT, position), position)
    name = TIME if root.at("type").value == "ctmc" else STEPS
    return (syntax.Rewards(name, (always,), position),) if counts_steps(root) else ()


def _rewards(
    transients: list[Transient],
    in_state: Mapping[str, syntax.Expression],
    earned: Mapping[str, list[syntax.RewardItem]],
) -> tuple[syntax.Rewards, ...]:
    """Numbers that are said of states or earned by edges, under the names of their variables."""
    found = []
    for each in transients:
        if each.is_label or (each.name not in in_state and each.name not in earned):
            continue
        position = each.node.position
        if getattr(each.default, "value", None) != 0:
            each.node.fail(f"'{each.name}' is earned, so its initial value must be 0")
        items = list(earned.get(each.name, ()))
        if each.name in in_state:
            items.insert(0, syntax.RewardItem(False, None, TRUE, syntax.Name(each.name, position), position))
        found.append(syntax.Rewards(each.title or None, tuple(items), position))
    return tuple(found)
