"""Inputs of commands: the MODEL argument (`tightrope.loading`), `--prop` and `--data`.

A benchmark has defaults: property, terminal reward, true parameters. `--prop` is a property or a file of
properties; `--const` values that a property file declares are the file's, the others the model's. Statements
about a log are checked before a model is built, and its import settings are printed before it is used.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

import tightrope as tr
from tightrope.cli import late
from tightrope.cli.flags import as_flags
from tightrope.cli.options import ModelOptions, StudyOptions, SubjectOptions, parse_constants, places_of
from tightrope.cli.output import Content, answer, build_progress, count, reading_progress, say, warn
from tightrope.errors import InputError, Location
from tightrope.io.coding import from_plain, to_plain
from tightrope.io.log_words import LOCAL, WORDS, LogWords
from tightrope.io.results import KeptFacts, ReadingFacts
from tightrope.loading import BENCHMARK, ModelRequest, ReadModel, read_model
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.free import NUMBERS_UNUSED
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parameters import parse_point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP
from tightrope.numerics.text import number_text, plain_suffix, read_program_text
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.property_syntax import PropertyFile
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Boundary, BoundaryOf, Query, read_query
from tightrope.prism.properties.resolve import PropertyOptions
from tightrope.prism.properties.shape import EMBEDDED, refuse_time, speaks_of_time
from tightrope.problem import AnyModel, Model, Problem, require_discrete

if TYPE_CHECKING:
    from tightrope.certify.certificate_file import CertificateFile
    from tightrope.certify.certify import Learned
    from tightrope.data.read_options import LogReadOptions
    from tightrope.io.table.data_table import DataTable, LogFile
    from tightrope.model.objective import Objective
    from tightrope.numerics.arrays import BoolArray
    from tightrope.prism.explore.search import Judge

MANY_TRANSITIONS = 100_000
"""Transitions from which on memory that building has left is worth giving back."""


@dataclass(frozen=True)
class Loaded(ReadModel):
    """A model with its name and the seconds its build took."""

    source: str = ""
    seconds: float = 0.0

    @property
    def discrete(self) -> Model:
        """The model, in discrete time."""
        return require_discrete(self.model)

    def point(self, at: str | None) -> tuple[Fraction, ...]:
        """The point that `--at` gives; without it, a benchmark's true one."""
        behind = self.model.model if isinstance(self.model, POMDP) else self.model
        known = behind.parameters if isinstance(behind, ParametricMDP | ParametricCTMC) else None
        if at is not None:
            return parse_point(at, () if known is None else known.names, "--at")
        if self.benchmark is not None:
            return self.benchmark.truth
        if known is not None and known.names:
            raise InputError(
                f"the model has parameters: {known.listed}",
                hint=f"give a point with --at {known.example(',')}",
            )
        return ()


def longest(loaded: Loaded, cap: int | None) -> int:
    """The steps after which an episode is cut off: the benchmark's where nothing is said."""
    return cap or (late.simulator.DEFAULT_CAP if loaded.benchmark is None else loaded.benchmark.episode_cap)


def episode_end(states: int, objective: Objective, cap: int) -> tuple[BoolArray | None, int]:
    """The states in which an episode ends, and the steps after which it is decided or cut off."""
    steps = late.design.deciding_steps(objective)
    return late.design.find_decided_states(objective, states), cap if steps is None else max(
        1, min(cap, steps)
    )


def give_back_memory() -> None:
    """Return freed memory to the operating system before solving needs it (glibc)."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True)
class LogRequest:
    """The places that `--data` names, in their order, and what is said about them."""

    places: tuple[str, ...]
    options: LogReadOptions

    @staticmethod
    def of(words: LogWords, places: Sequence[str]) -> LogRequest:
        """The log at these places, read as the options of a command say."""
        return LogRequest(tuple(places), late.read_options.LogReadOptions(**vars(words)).resolved())

    def tables(self) -> tuple[DataTable, ...]:
        """Every table that is meant; what is no data file is refused before a model is built for it."""
        self.options.check()
        return late.files.open_tables(self.places, self.options.format)

    def read(self, model: Model, tables: tuple[DataTable, ...]) -> tr.Reading:
        """The counts, with a sign of life while they are read."""
        with reading_progress() as progress:
            return late.reading.read_tables(tables, model, replace(self.options, progress=progress))


def log_options(words: LogWords) -> list[str]:
    """The options by which a log is read, as they are typed."""
    typed: list[str] = []
    for name, word in WORDS.items():
        value = getattr(words, name)
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is True:
                typed.append(word.flag)
            elif one not in (None, False, LOCAL):
                typed += [word.flag, str(one)]
    return typed


def model_words(request: ModelOptions) -> list[str]:
    """The options that say more about the model, as they are typed."""
    words = [word for given in request.const or () for word in ("--const", given)]
    for flag, value in (("--param", request.param), ("--domain", request.domain)):
        words += [] if value is None else [flag, value]
    return words


def example_property(model: Model | ParametricCTMC) -> str:
    """A property that the model has an answer to: of its first label, else of its first reward."""
    structure = model.structure
    way = "max" if structure.has_choices else ""
    labels = [name for name in structure.labels if name not in ("init", "deadlock")]
    if labels:
        return f'P{way}=? [ F "{labels[0]}" ]'
    rewards = [f'R{{"{name}"}}{way}=? [ C<=10 ]' for name in structure.rewards if name]
    return rewards[0] if rewards else f"P{way}=? [ F true ]"


def read_facts(reading: tr.Reading) -> ReadingFacts:
    """How a log was read, for JSON."""
    return ReadingFacts(
        rows=reading.rows,
        read_as=list(reading.read_as),
        notes=list(reading.notes),
        dropped=dict(reading.dropped),
        censored=list(reading.counts.design.censored),
        kept=UNSET if reading.kept is None else from_plain(reading.kept.to_json(), KeptFacts),
        names={role: dict(names) for role, names in reading.counts.names.items()} or UNSET,
    )


def reading_facts(reading: tr.Reading | tr.Exposure) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """How much was read and what is noteworthy about it; the import settings, for --verbose."""

    if isinstance(reading, tr.Exposure):
        jumps, cut = count(int(reading.jumps.sum()), "jump"), count(reading.censored, "sojourn")
        time = number_text(float(reading.waited.sum()))
        size = f"{jumps} in {count(reading.episodes, 'episode')}, time {time}, {cut} cut off"
        return [("data", size)], [("import", reading.read_as)]
    episodes = reading.counts.design.episodes
    rows, steps = count(reading.rows, "row"), reading.counts.steps
    size = f"{count(steps, 'transition')} in {rows} of counts" if steps > reading.rows else rows
    size += "" if episodes is None else f", {count(episodes, 'episode')}"
    size += f" in {count(len(reading.files), 'file')}" if len(reading.files) > 1 else ""
    facts = [("data", size), *(("note", as_flags(line)) for line in reading.notes)]
    files = [("file", name) for name in reading.files] if len(reading.files) > 1 else []
    missing = [("excluded", line) for line in reading.counts.design.censored]
    return facts, [*missing, *files, *(("import", line) for line in reading.read_as)]


def answer_from(
    reading: tr.Reading | tr.Exposure,
    result: Learned | tr.Diagnosis | tr.Plan,
    record: Struct | Mapping[str, object],
    show: Callable[[], Content],
) -> None:
    """Print what data say: as JSON, or the answer, then how the data were read."""

    def content() -> Content:
        rest, (facts, settings) = show(), reading_facts(reading)
        return replace(rest, rows=[*rest.rows, *facts], more=[*rest.more, *settings])

    answer(result.verdict, result.headline(), record, content)


def prove(result: Learned, model: str, file: Path, verify: bool = True) -> CertificateFile | None:
    """The certificate of what data have shown, with warnings; none where these refute the model: the file of
    an earlier run stays."""
    if (why := late.certify.why_refuted(result)) is not None:
        warn(why + (f"; {file} is from an earlier run" if file.exists() else ""))
        return None
    proof = late.certify.learned_file(result, {"model": model}, verify)
    for words in proof.notes:
        warn(words)
    return proof


def _digest(file: LogFile) -> str:
    digest = sha256()
    with file.open() as raw:
        while block := raw.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


PROPERTY_SUFFIXES = (".props", ".prop", ".pctl", ".prctl")


@dataclass(frozen=True)
class Question:
    """The model and the properties that the options of a command name, before anything is built."""

    request: ModelOptions
    files: tuple[PropertyFile, ...]

    @staticmethod
    def of(request: ModelOptions, properties: Sequence[str] | None = None) -> Question:
        """What `--prop` names, or other properties in its place."""
        texts = getattr(request, "prop", None) if properties is None else properties
        return Question(request, read_properties([texts] if isinstance(texts, str) else texts))

    @cached_property
    def constants(self) -> dict[str, str]:
        """The values of `--const`."""
        return parse_constants(self.request.const)

    @property
    def boundary(self) -> BoundaryOf:
        """Where a build for these properties may stop."""
        return BoundaryOf(self.files, self.constants)

    @property
    def is_timed(self) -> bool:
        """Whether a property speaks of time."""
        return any(speaks_of_time(file) for file in self.files)

    @property
    def _shown(self) -> str:
        source = self.request.model
        return source if source.startswith(BENCHMARK) else Path(source).name

    def load(
        self,
        boundary: Boundary | None = None,
        *,
        timed: bool = False,
        untimed: bool = False,
        observed: bool = False,
        quiet: bool = False,
        judge: Judge | None = None,
    ) -> Loaded:
        """Build the model, as far as the `boundary` of a question and its `judge` ask; `quiet`: the range of
        parameters of a chain in continuous time does not matter."""
        begin, request = time.perf_counter(), self.request
        declared = {constant.name for file in self.files for constant in file.constants}
        constants = {name: text for name, text in self.constants.items() if name not in declared}
        place = request.model, constants, request.param, request.domain
        with build_progress(self._shown) as progress:
            how = ModelRequest(*place, boundary, untimed, timed, judge)
            read = read_model(how, progress, None if quiet else warn)
        if isinstance(read.model, POMDP) and not observed:
            raise InputError(
                f"{self._shown} is partially observable, and this command is not supported for such models",
                hint="'check' bounds what controllers can reach, 'learn' learns about one",
            )
        if read.model.structure.transitions >= MANY_TRANSITIONS:
            give_back_memory()
        return Loaded(**vars(read), source=request.model, seconds=time.perf_counter() - begin)

    def load_embedded(self, at: str | None) -> Loaded:
        """The jumps of a chain at a point, which certificates are about; what speaks of time is refused."""
        for file in self.files:
            refuse_time(file, EMBEDDED)
        loaded = self.load(timed=True, quiet=at is not None)
        assert isinstance(loaded.model, ParametricCTMC)
        jumps = late.discrete.embed(loaded.model.instantiate(loaded.point(at)))
        return replace(loaded, model=jumps, is_partial=False)

    def queries(self, loaded: Loaded) -> list[Query]:
        """What every property asks of the model; a benchmark's own where none was given."""
        files, model = self.files, loaded.model
        discount, terminal_reward = (getattr(self.request, n, None) for n in ("discount", "terminal_reward"))
        if not files:
            if loaded.benchmark is None:
                hint = "say what to compute with --prop 'Pmax=? [ F \"goal\" ]'"
                raise InputError("no property is given", hint=hint)
            files = (parse_properties(loaded.benchmark.property_text, "the benchmark's property"),)
            if terminal_reward is None:
                terminal_reward = loaded.benchmark.terminal_reward
        options = PropertyOptions(
            constants=self.constants,
            is_interval=isinstance(model.model if isinstance(model, POMDP) else model, IntervalMDP),
            is_timed=isinstance(model, ParametricCTMC)
            or (loaded.automaton is not None and any(speaks_of_time(file) for file in files)),
            discount=discount,
            terminal_reward=terminal_reward,
        )
        structure = model.structure
        queries = [read_query(one, file, structure, options) for file in files for one in file.wanted]
        if not queries:
            raise InputError("there is no property to check", Location(files[0].file))
        return queries

    def query(self, loaded: Loaded, refusal: str, hint: str | None = None) -> Query:
        """The only one; more of them are refused in these words."""
        queries = self.queries(loaded)
        if len(queries) != 1:
            raise InputError(f"{refusal}, not {len(queries)}", hint=hint)
        return queries[0]


def read_own_properties(source: str, constants: Mapping[str, str]) -> tuple[PropertyFile, ...]:
    """The properties that a JANI file brings along, each with how it was read; none for other models."""
    if plain_suffix(Path(source)) != ".jani" or not Path(source).is_file():
        return ()
    from tightrope.io.jani.read import read_properties as read_jani_properties

    files = []
    for result in read_jani_properties(source, constants):
        if result.text is None:
            warn(f"the property '{result.name}' of {source} is left out: {result.reason}")
            continue
        warn(f"the property '{result.name}' of {source} is read as {result.text}")
        files.append(parse_properties(result.text, f"property '{result.name}'"))
    return tuple(files)


def read_properties(texts: Sequence[str] | None) -> tuple[PropertyFile, ...]:
    """Parse every `--prop`: a property file by its name, anything else as a property."""
    files = []
    for given in texts or ():
        before, mark, names = given.rpartition("#")  # goals.props#reach,3
        path = Path(text := before if mark else given)
        named = (read_program_text(path), text) if path.suffix in PROPERTY_SUFFIXES else (text, "--prop")
        file = parse_properties(*named)
        files.append(_choose(file, [name.strip() for name in names.split(",")]) if mark else file)
    return tuple(files)


def _choose(file: PropertyFile, names: Sequence[str]) -> PropertyFile:
    places = {each.name: i for i, each in enumerate(file.properties) if each.name is not None}
    numbers = {str(i): i - 1 for i in range(1, len(file.properties) + 1)}
    chosen = []
    for name in names:
        place = places.get(name, numbers.get(name))
        if place is None:
            listed = ", ".join(each.name or str(i) for i, each in enumerate(file.properties, start=1))
            raise InputError(f"there is no property '{name}'", Location(file.file), f"there are: {listed}")
        chosen.append(place)
    return replace(file, chosen=tuple(chosen))


@dataclass(frozen=True)
class Subject:
    """The model as it was loaded, and what is asked of it."""

    loaded: Loaded
    query: Query
    pomdp: POMDP | None = None
    """What a controller sees of the model, where it does not see everything."""
    labelled: tr.Reading | None = None
    """The readings of a sensor that was joined with the model."""

    @property
    def model(self) -> ParametricMDP:
        """The model, in discrete time."""
        model = self.loaded.model
        assert isinstance(model, ParametricMDP)
        return model

    @property
    def problem(self) -> Problem:
        """Both together, of the partially observable model where there is one."""
        return Problem(self.pomdp or self.loaded.model, self.query)

    @property
    def is_temporal(self) -> bool:
        """Whether a formula of LTL is asked."""
        return self.query.kind is QueryKind.LTL

    def point_text(self, at: str | None) -> dict[str, str] | None:
        """The true parameters, where they are known."""
        if at is None and self.loaded.benchmark is None:
            return None
        point = self.loaded.point(at)
        return {
            n: late.instance.decimal_text(v) for n, v in zip(self.model.parameters.names, point, strict=True)
        }


DRAFTED_FROM = "// log: "
"""How lines of a drafted model begin that say where its log is, for commands without --data."""


def drafted_from(model: str) -> list[str] | None:
    """The log that a drafted model names, which is said; None where it names none."""
    path = Path(model)
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    places = [line.removeprefix(DRAFTED_FROM) for line in lines if line.startswith(DRAFTED_FROM)]
    if places:
        say(f"data: {', '.join(places)}, from which {path.name} was drafted; --data names other data")
    return places or None


class Study:
    """A question and a log: statements are checked first, the log is read when it is first needed."""

    def __init__(self, request: StudyOptions, **how: bool):
        labelled: str | None = getattr(request, "observations", None)
        data = request.data or (None if labelled else drafted_from(request.model))
        self.log = LogRequest.of(request.reading, places_of(data, labelled))
        self.tables = self.log.tables()
        self.subject = load_subject(request, labelled=labelled, **how)

    @cached_property
    def reading(self) -> tr.Reading:
        """The log, or the labelled readings of a sensor."""
        return self.subject.labelled or self.log.read(self.subject.model, self.tables)

    @cached_property
    def exposure(self) -> tr.Exposure:
        """The log of a chain in continuous time."""
        return late.exposure.exposure_of(self.tables, self.subject.loaded.model.structure, self.log.options)

    @property
    def about(self) -> dict[str, object]:
        """What a result says about its data: files with digests, how they were read, what was dropped."""
        reading, known = self.reading, ("source", "seed", "policy", "cap", "at", "property")
        files = [table.file for table in self.tables if table.file is not None]
        digests = [_digest(file) for file in files]
        whole = (
            sha256(reading.counts.transition.tobytes()) if not files else sha256("".join(digests).encode())
        )
        return {
            "file": ", ".join(self.log.places),
            "sha256": digests[0] if len(digests) == 1 else whole.hexdigest(),
            "files": [{"file": file.name, "sha256": d} for file, d in zip(files, digests, strict=True)],
            **to_plain(read_facts(reading)),
            "sampled": {key: value for key, value in (reading.metadata or {}).items() if key in known},
        }


def load_subject(
    request: SubjectOptions,
    temporal: bool = False,
    untied: bool = False,
    any_kind: bool = False,
    observed: bool = False,
    labelled: str | None = None,
    answers: bool = False,
) -> Subject:
    """Load the model and the question; refuse models without parameters and questions without a value.

    `temporal`: formulas of LTL are wanted as well; `any_kind`: every property with a value;
    `answers`: properties that are true or false, too, and chains in continuous time. `untied`: of a model
    without parameters the probabilities are taken as unknown. `observed`: partially observable models are
    wanted as well. `labelled`: the file of a sensor's readings, which is joined with the model."""
    question = Question.of(request)
    loaded, pomdp, readings = seen_through(question.load(timed=answers, observed=observed), labelled)
    model = loaded.model
    if untied and isinstance(model, MDP | ParametricMDP) and not getattr(model, "parameters", ()):
        warn(NUMBERS_UNUSED)
        loaded = replace(loaded, model=ParametricMDP.without_numbers(model))
    hint = "name one: --prop goals.props#NAME, or its number; 'learn' takes all"
    query = question.query(loaded, "one property is required here", hint)
    if pomdp is not None and not query.is_plain:
        raise InputError(
            f"{query.text}: partially observable models take one P or R over a simple path or a reward",
            hint='ask for its parts, such as Pmax=? [ F "goal" ]',
        )
    query = paced(query, pomdp)
    is_wanted = any_kind or answers or (temporal and query.kind is QueryKind.LTL)
    if not query.is_plain and not is_wanted:
        raise query.refusal()
    if query.is_threshold and not answers:
        raise InputError(
            f"{query.text} is true or false, but learning needs a value to optimise",
            hint="ask for the value: Pmax=? [ … ]",
        )
    model = loaded.model
    if not isinstance(model, ParametricMDP | ParametricCTMC) or not model.parameters.names:
        raise InputError(
            f"{loaded.source} has no parameters: there is nothing to learn about it",
            hint="'tightrope check' computes the values of such a model; 'learn --sets untied' takes its "
            "probabilities as unknown",
        )
    return Subject(loaded, query, pomdp, readings)


def paced(query: Query, pomdp: POMDP | None) -> Query:
    """The query in the steps of a partially observable model."""
    if pomdp is None or pomdp.pace == 1 or not query.is_plain:
        return query
    return query.with_objective(pomdp.paced(query.objective), pomdp.structure)


def temporal_product(model: AnyModel, query: Query) -> Problem | None:
    """What a temporal formula asks, as a question about a product; None for others."""
    if query.kind is not QueryKind.LTL or not isinstance(model, ParametricMDP):
        return None
    problem, reading = late.product_problem.product_problem(model, query)
    warn(reading)
    return problem


def seen_through(loaded: Loaded, labelled: str | None) -> tuple[Loaded, POMDP | None, tr.Reading | None]:
    """The model behind observations, the observed one, and the readings of a sensor that is joined."""
    pomdp: POMDP | None = loaded.model if isinstance(loaded.model, POMDP) else None
    readings = None
    if labelled is not None:
        pomdp, readings = late.labelled.with_sensor(loaded.model, labelled)
    return loaded if pomdp is None else replace(loaded, model=pomdp.model), pomdp, readings
