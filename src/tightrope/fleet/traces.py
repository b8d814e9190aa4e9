"""Traces of agents and processes as logs: spans, evaluations, exports and transcripts become steps.

Every reader makes runs, each a list of calls (tool, result, cost) with a score. Each call is two rows, so
the log is a chain: the agent decides from where it is (action `agent`), then the tool has a result (the
action is the tool). States are `start`, `TOOL`, `TOOL.retry` (called again after a failure), `TOOL:RESULT`,
and the end of the run: `success`, `failure`, `score X` for a score in between, `unscored` or `cut`.

Files are untrusted: sizes, lines, members of archives and nesting are limited, and XML entities are refused.
Classes are registered as entry points of `tightrope.logs`; JSON lines are recognised by their first keys.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeAlias
from xml.parsers import expat

import pyarrow as pa

from tightrope.errors import InputError, Location
from tightrope.io.table.arrow import InMemory
from tightrope.io.table.data_table import DataTable, LogFile, LogFormat, explain_errors

Fields: TypeAlias = dict[str, Any]
"""A JSON object."""

MOST_LINE = 1 << 24
MOST_BYTES = 1 << 30
MOST_MEMBER = 1 << 26
MOST_MEMBERS = 100_000
MOST_DEPTH = 64
MOST_MARK = 1 << 12
CODE = re.compile(r"[^\n\r]{1,40}")
"""A result that is one word; longer texts are outputs of tools."""

OK, ERROR, TIMEOUT = "ok", "error", "timeout"
FAILED = {ERROR, TIMEOUT}
OPEN = {"unscored", "cut"}
"""Ends of runs that may not be over."""
GOOD = {"c", "correct", "true", "pass", "passed", "success", "1", "1.0", "yes"}
BAD = {"i", "incorrect", "n", "false", "fail", "failed", "failure", "0", "0.0", "no"}


@dataclass
class ToolCall:
    """One call of a tool: its result, and what it cost (tokens or money) since the call before."""

    tool: str
    result: str = OK
    cost: float = 0.0


@dataclass
class Run:
    """One run of an agent: its calls in order, and how it came out."""

    name: str
    task: str | None = None
    calls: list[ToolCall] = field(default_factory=list)
    end: str | None = None
    cost: float = 0.0
    """Of what happened after the last call."""

    def rows(self) -> Iterator[tuple[str, str, str, float]]:
        """(state, action, next state, cost) of its steps."""
        where, failed = "start", None
        for call in self.calls:
            tool = f"{call.tool}.retry" if failed == call.tool else call.tool
            yield where, "agent", tool, 0.0
            where = f"{call.tool}:{call.result}"
            yield tool, call.tool, where, call.cost
            failed = call.tool if call.result in FAILED else None
        self.end = self.end or "unscored"
        yield where, "agent", self.end, self.cost


def end_of(score: object, where: Location) -> str | None:
    """How a run with this score ends.

    >>> [end_of(score, Location("x")) for score in ("C", True, 0, 0.25, None)]
    ['success', 'success', 'failure', 'score 0.25', None]
    """
    text = "" if score is None else str(score).strip()
    if text.lower() in GOOD | BAD:
        return "success" if text.lower() in GOOD else "failure"
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise InputError(
            f"{text[:40]!r} is not a score",
            where,
            "a score is from 0 (failure) to 1 (success), true or false, C or I, pass or fail",
        )
    return f"score {number:.3g}" if 0.0 < number < 1.0 else "success" if number else "failure"


def result_of(value: object, error: object = None) -> str:
    """The outcome of a call: what it returned if that is a word, else `ok`; errors and time-outs by name.

    >>> result_of(None), result_of("found"), result_of("", "TimeoutError: 30 s"), result_of(False)
    ('ok', 'found', 'timeout', 'error')
    """
    if error not in (None, False, "", {}):
        return TIMEOUT if re.search(r"time.?out|timed.?out|deadline", str(error), re.I) else ERROR
    if value is None or isinstance(value, bool):
        return ERROR if value is False else OK
    text = str(value).strip()
    if isinstance(value, dict | list) or not CODE.fullmatch(text):
        return OK
    return {"success": OK, "failure": ERROR, "failed": ERROR, "timed out": TIMEOUT}.get(text.lower(), text)


class Traces(LogFormat):
    """A format of traces: `runs` of a file become the rows of a table."""

    mapping = ""
    """How the format's records became calls."""

    def runs(self, file: LogFile) -> Iterable[Run]:
        """The runs of a file, in order."""
        return ()

    def open(self, file: LogFile) -> DataTable:
        with explain_errors(file.name):
            runs = [run for run in self.runs(file) if run.calls or run.end]
        if not runs:
            raise InputError(f"there are no runs in the file ({self.name})", Location(file.name))
        steps = [
            (run.name, step, *row, run.task, row[2] == run.end and row[2] not in OPEN, row[2] == "cut")
            for run in runs
            for step, row in enumerate(run.rows())
        ]
        columns = dict(zip(COLUMNS, map(list, zip(*steps, strict=True)), strict=True))
        unused = {name for name in ("task", "cost") if not any(columns[name])}
        shown = {name: values for name, values in columns.items() if name not in unused}
        ends = Counter((run.end or "unscored").partition(" ")[0] for run in runs)
        listed = ", ".join(f"{number:,} {end}" for end, number in sorted(ends.items()))
        calls = sum(len(run.calls) for run in runs)
        made = f"{self.name}: {self.mapping}; {calls:,} calls in {len(runs):,} runs ({listed})"
        return replace(HeldRuns(made).hold(pa.table(shown), file.name), file=file, keys=file.keys)


class HeldRuns(InMemory):
    """The rows of runs in memory, with a line on how they were made."""

    def __init__(self, made: str):
        self.made = (made,)


COLUMNS = ("run", "step", "state", "action", "next_state", "cost", "task", "terminated", "truncated")


def mark_of(file: LogFile) -> str:
    """Tells the runs of a file from those of others, whatever it is called: a digest of how it begins."""
    with file.open() as raw:
        return blake2b(file.expand(raw).read(MOST_MARK), digest_size=8).hexdigest()


def json_lines(file: LogFile) -> Iterator[tuple[Location, Fields]]:
    """The objects of the lines, each with its place."""
    for number, line in enumerate(_lines(file), start=1):
        if line.strip():
            where = Location(file.name, number)
            content = parse(line, where)
            if not isinstance(content, dict):
                raise InputError("the line is not a JSON object", where, 'each line is like {"run": 1, …}')
            yield where, content


def parse(text: str | bytes, where: Location) -> object:
    """JSON, refused in words."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = f", column {error.colno}" if error.lineno == 1 else f", line {error.lineno}"
        hint = "the file may be truncated"
        raise InputError(f"not JSON: {error.msg}{at}", where, hint) from error
    except (RecursionError, ValueError) as error:
        words = "it nests too deeply" if isinstance(error, RecursionError) else str(error).split(";")[0]
        raise InputError(f"the JSON cannot be read: {words}", where) from error


def _lines(file: LogFile) -> Iterator[bytes]:
    """The lines of a file, decompressed, as long as they and all of them together are not too long."""
    total = 0
    with file.open() as raw:
        stream, rest = file.expand(raw), b""
        while block := stream.read(1 << 16):
            total += len(block)
            if total > MOST_BYTES:
                raise InputError(f"more than {MOST_BYTES:,} bytes of traces", Location(file.name), SPLIT)
            *whole, rest = (rest + block).split(b"\n")
            yield from whole
            if len(rest) > MOST_LINE:
                raise InputError(f"a line has more than {MOST_LINE:,} bytes", Location(file.name), SPLIT)
        yield rest


SPLIT = "write the runs into several files"


def _number(value: object, what: str, where: Location) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not 0.0 <= number < 1e15:
        raise InputError(f"{what} is {str(value)[:40]!r}, not a number from 0 on", where)
    return number


class Transcript(Traces):
    """JSON lines `run, step, tool, result, score`."""

    name, suffixes, is_text = "transcript", (".transcript",), True
    mapping = "each line with a tool is a call, `error` and a false result are failures, `score` ends a run"

    def accepts(self, data: object) -> bool:
        return _has_keys(data, "run", "tool") or _has_keys(data, "run", "score")

    def runs(self, file: LogFile) -> Iterable[Run]:
        runs: dict[str, Run] = {}
        steps: dict[str, float] = {}
        mark = mark_of(file)
        for where, line in json_lines(file):
            if line.get("run") is None or ("tool" not in line and "score" not in line):
                raise InputError("the line names no `run`, or neither `tool` nor `score`", where)
            name = str(line["run"])
            run = runs.setdefault(name, Run(f"{mark} {name}"))
            if (step := line.get("step")) is not None:
                number = _number(step, "`step`", where)
                if number <= steps.get(name, -1.0):
                    raise InputError(f"step {step} of run {name} comes after step {steps[name]:g}", where)
                steps[name] = number
            if line.get("task") is not None:
                run.task = str(line["task"])
            cost = _number(line.get("cost") or 0, "`cost`", where)
            if line.get("tool") is not None:
                result = result_of(line.get("result"), line.get("error"))
                run.calls.append(ToolCall(str(line["tool"]), result, cost))
            else:
                run.cost += cost
            if (end := end_of(line.get("score"), where)) is not None:
                if run.end not in (None, end):
                    raise InputError(f"run {name} has two scores, {run.end} and {end}", where)
                run.end = end
        return runs.values()


@dataclass
class Span:
    """A span of OpenTelemetry or an observation of Langfuse: when it began, what it was."""

    begin: str
    tool: str | None
    result: str
    cost: float


def assemble(run: Run, spans: list[Span]) -> Run:
    """The calls of a run from its spans in order of time; what models cost counts for the next call."""
    waiting = 0.0
    for span in sorted(spans, key=lambda one: one.begin):
        if span.tool is None:
            waiting += span.cost
            if span.result in FAILED:
                run.calls.append(ToolCall("model", span.result, waiting))
                waiting = 0.0
        else:
            run.calls.append(ToolCall(span.tool, span.result, waiting + span.cost))
            waiting = 0.0
    run.cost += waiting
    return run


TASKS = ("task", "task.id", "test.case.id", "gen_ai.task.id")
SCORES = ("gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value", "score")


class OpenTelemetry(Traces):
    """Spans with the GenAI conventions: OTLP's JSON lines (`resourceSpans`), or one span per line."""

    name, suffixes, is_text = "OpenTelemetry spans", (".otlp",), True
    mapping = (
        "each trace is a run, each span `execute_tool` a call; tokens of model calls are the cost of the "
        "next call, failed model calls are calls of `model`; `gen_ai.evaluation.score` ends a run"
    )

    def accepts(self, data: object) -> bool:
        return (
            _has_keys(data, "resourceSpans")
            or _has_keys(data, "trace_id")
            or _has_keys(data, "traceId", "spanId")
        )

    def runs(self, file: LogFile) -> Iterable[Run]:
        runs: dict[str, Run] = {}
        spans: dict[str, list[Span]] = {}
        for where, line in json_lines(file):
            groups = _list(line, "resourceSpans", where) if "resourceSpans" in line else None
            for one in [line] if groups is None else _spans_in(groups, where):
                about = _object(one.get("context")) or one
                trace = about.get("traceId", about.get("trace_id"))
                if not isinstance(trace, str) or not isinstance(one.get("name"), str):
                    raise InputError("a span has no name or no trace id", where)
                run = runs.setdefault(trace, Run(trace))
                if (span := _otel_span(one, run, where)) is not None:
                    spans.setdefault(trace, []).append(span)
        return [assemble(run, spans.get(name, [])) for name, run in runs.items()]


def _object(value: object) -> Fields:
    """An object, empty where there is none."""
    return value if isinstance(value, dict) else {}


def _list(content: Mapping[str, object], key: str, where: Location) -> list[Fields]:
    """A list of objects."""
    value = content.get(key) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InputError(f"`{key}` is not a list of objects", where)
    return value


def _spans_in(groups: Iterable[Fields], where: Location) -> Iterator[Fields]:
    for resource in groups:
        for scope in _list(resource, "scopeSpans", where):
            yield from _list(scope, "spans", where)


def _attributes(content: Mapping[str, object], where: Location) -> Fields:
    """Attributes as a mapping, also where OTLP lists them by kind."""
    given = content.get("attributes") or {}
    if isinstance(given, dict):
        return given
    listed = _list(content, "attributes", where)
    pairs = ((str(one.get("key")), one.get("value")) for one in listed)
    return {
        key: next(iter(value.values()), None) if isinstance(value, dict) else value for key, value in pairs
    }


def _otel_span(one: Fields, run: Run, where: Location) -> Span | None:
    """A call of a tool or model; what a span says of the run goes there."""
    attributes = _attributes(one, where)
    for key in TASKS:
        if attributes.get(key) is not None:
            run.task = str(attributes[key])
    events = [_attributes(event, where) for event in _list(one, "events", where)]
    for about in (attributes, *events):
        score = next((about[key] for key in SCORES if about.get(key) is not None), None)
        run.end = end_of(score, where) or run.end
    operation = attributes.get("gen_ai.operation.name") or one["name"].partition(" ")[0]
    begin = one.get("startTimeUnixNano", one.get("start_time"))
    if operation not in ("execute_tool", "chat", "text_completion", "generate_content"):
        return None
    if begin is None:
        raise InputError("a span has no time of its start", where)
    status = _object(one.get("status"))
    code = str(status.get("code", status.get("status_code", "")))
    failed = code in ("2", "STATUS_CODE_ERROR", "ERROR")
    error = attributes.get("error.type") or (status.get("message", "error") if failed else None)
    tokens = [attributes.get(f"gen_ai.usage.{kind}_tokens") or 0 for kind in ("input", "output")]
    cost = sum(_number(part, "a number of tokens", where) for part in tokens)
    tool = None
    if operation == "execute_tool":
        tool = str(attributes.get("gen_ai.tool.name") or one["name"].partition(" ")[2] or one["name"])
    return Span(str(begin).zfill(30), tool, result_of(None, error), cost)


class Langfuse(Traces):
    """Exports of Langfuse: traces with `observations`, or observations alone, as a JSON list or lines."""

    name, suffixes, is_text = "Langfuse", (".langfuse",), True
    mapping = (
        "each trace is a run, each observation TOOL (or SPAN, in a trace without any) a call; generations "
        "are the cost of the next call; the trace's scores end a run: success if all are"
    )

    def accepts(self, data: object) -> bool:
        return _has_keys(data, "observations") or _has_keys(data, "traceId", "type")

    def runs(self, file: LogFile) -> Iterable[Run]:
        runs: dict[str, Run] = {}
        seen: dict[str, list[Fields]] = {}
        for where, one in self._records(file):
            is_trace = "observations" in one
            name = one.get("id") if is_trace else one.get("traceId")
            if not isinstance(name, str):
                raise InputError("a record has neither `observations` and `id` nor `traceId`", where)
            run = runs.setdefault(name, Run(name))
            if (task := _object(one.get("metadata")).get("task")) is not None:
                run.task = str(task)
            scores = [score.get("value", score.get("stringValue")) for score in _list(one, "scores", where)]
            ends = {end for score in scores if (end := end_of(score, where))}
            run.end = "failure" if "failure" in ends else min(ends, default=run.end)
            seen.setdefault(name, []).extend(_list(one, "observations", where) if is_trace else [one])
        return [assemble(run, _observed(seen[name], file)) for name, run in runs.items()]

    def _records(self, file: LogFile) -> Iterator[tuple[Location, Fields]]:
        first = next((line for line in _lines(file) if line.strip()), b"")
        if not first.lstrip().startswith(b"["):
            yield from json_lines(file)
            return
        listed = parse(b"\n".join(_lines(file)), Location(file.name))
        for number, one in enumerate(listed if isinstance(listed, list) else [listed], start=1):
            if not isinstance(one, dict):
                raise InputError(f"entry {number} is not an object", Location(file.name))
            yield Location(f"{file.name}, entry {number}"), one


def _observed(observations: list[Fields], file: LogFile) -> list[Span]:
    """The observations of a trace."""
    has_tools = any(one.get("type") == "TOOL" for one in observations)
    spans = []
    for one in observations:
        where = Location(file.name)
        kind, begin = one.get("type"), one.get("startTime")
        is_call = kind == ("TOOL" if has_tools else "SPAN")
        if not is_call and kind != "GENERATION":
            continue
        if not isinstance(begin, str):
            raise InputError(f"an observation of trace {one.get('traceId')} has no startTime", where)
        error = one.get("statusMessage") or ERROR if one.get("level") == "ERROR" else None
        usage = _object(one.get("usage"))
        cost = _number(usage.get("total") or 0, "the usage", where)
        spans.append(Span(begin, str(one.get("name")) if is_call else None, result_of(None, error), cost))
    return spans


class Inspect(Traces):
    """Inspect's `.eval` files: an archive with one JSON document per sample."""

    name, suffixes = "Inspect", (".eval",)
    mapping = (
        "each sample and epoch is a run of the task with the sample's id, each tool event a call; tokens of "
        "model calls are the cost of the next call; success if all scores are, limits cut a run"
    )

    def runs(self, file: LogFile) -> Iterable[Run]:
        with file.open() as raw:
            content = raw.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"more than {MOST_BYTES:,} bytes of traces", Location(file.name), SPLIT)
        total, runs, mark = 0, [], blake2b(content, digest_size=8).hexdigest()
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                names = [one.filename for one in archive.infolist() if one.filename.startswith("samples/")]
                if len(names) > MOST_MEMBERS:
                    raise InputError(f"more than {MOST_MEMBERS:,} samples", Location(file.name), SPLIT)
                for name in sorted(names):
                    with archive.open(name) as member:
                        text = member.read(MOST_MEMBER + 1)
                    total += len(text)
                    if len(text) > MOST_MEMBER or total > MOST_BYTES:
                        problem = (
                            f"{name} expands to more than {MOST_MEMBER:,} bytes, or all to {MOST_BYTES:,}"
                        )
                        raise InputError(problem, Location(file.name), SPLIT)
                    where = Location(f"{file.name}:{name}")
                    runs.append(_sample(parse(text, where), mark, where))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
            problem = f"the archive cannot be read: {str(error).splitlines()[0] if str(error) else 'damaged'}"
            raise InputError(
                problem, Location(file.name), "`inspect log convert --to eval` rewrites it"
            ) from error
        return runs


def _sample(sample: object, mark: str, where: Location) -> Run:
    """The run of one sample."""
    if not isinstance(sample, dict) or sample.get("id") is None:
        raise InputError("the sample has no id", where)
    task = str(sample["id"])
    run = Run(f"{mark} {task} {sample.get('epoch', 1)}", task)
    spans: list[Span] = []
    for number, event in enumerate(_list(sample, "events", where)):
        if event.get("event") == "tool":
            result = result_of(None, event.get("error"))
            spans.append(Span(f"{number:09}", str(event.get("function")), result, 0.0))
        elif event.get("event") == "model":
            usage = _object(_object(event.get("output")).get("usage"))
            cost = _number(usage.get("total_tokens") or 0, "total_tokens", where)
            spans.append(Span(f"{number:09}", None, result_of(None, event.get("error")), cost))
    listed = _object(sample.get("scores")).values()
    ends = {end_of(one.get("value") if isinstance(one, dict) else one, where) for one in listed} - {None}
    run.end = "failure" if "failure" in ends else min((one for one in ends if one), default=None)
    if run.end is None and sample.get("limit"):
        run.end = "cut"
    if sample.get("error"):
        spans.append(Span("~", "model", result_of(None, sample["error"]), 0.0))
        run.end = run.end or "failure"
    return assemble(run, spans)


class Xes(Traces):
    """XES event logs (IEEE 1849) of business processes."""

    name, suffixes, is_text = "XES", (".xes",), True
    mapping = (
        "each trace is a run, each event whose lifecycle is complete (or not given) a call with that result, "
        "aborts are errors; the trace's `score` or `outcome` ends a run, else it is finished"
    )

    def runs(self, file: LogFile) -> Iterable[Run]:
        reader = _XesReader(file.name, mark_of(file))
        total = 0
        with file.open() as raw:
            stream = file.expand(raw)
            while block := stream.read(1 << 16):
                total += len(block)
                if total > MOST_BYTES:
                    raise InputError(f"more than {MOST_BYTES:,} bytes of traces", Location(file.name), SPLIT)
                reader.feed(block)
        reader.feed(b"", last=True)
        return reader.runs


class _XesReader:
    """Takes an XES document in pieces; nothing that declares entities is read."""

    def __init__(self, file: str, mark: str):
        self.file, self.mark, self.runs = file, mark, list[Run]()
        self.depth, self.silent = 0, 0
        self.trace: dict[str, str] | None = None
        self.event: dict[str, str] | None = None
        self.calls: list[ToolCall] = []
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    @property
    def _where(self) -> Location:
        return Location(self.file, self.parser.CurrentLineNumber)

    def feed(self, block: bytes, last: bool = False) -> None:
        """The next piece."""
        self.silent += len(block)
        if self.silent > MOST_LINE:
            raise InputError(f"an element has more than {MOST_LINE:,} bytes", self._where)
        try:
            self.parser.Parse(block, last)
        except expat.ExpatError as error:
            problem = f"not XML: {expat.ErrorString(error.code)}"
            raise InputError(problem, Location(self.file, error.lineno)) from error

    def _refuse(self, *_: object) -> None:
        raise InputError("the document declares a type or entities, which XES does not need", self._where)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.silent, self.depth = 0, self.depth + 1
        if self.depth > MOST_DEPTH:
            raise InputError("it nests too deeply", self._where)
        if tag == "trace":
            self.trace, self.calls = {}, []
        elif tag == "event" and self.trace is not None:
            self.event = {}
        elif "key" in attributes and "value" in attributes:
            inner = self.event if self.event is not None else self.trace
            if inner is not None and self.depth == (4 if self.event is not None else 3):
                inner[attributes["key"]] = attributes["value"]

    def _end(self, tag: str) -> None:
        self.depth -= 1
        if tag == "event" and self.event is not None and self.trace is not None:
            name, cycle = self.event.get("concept:name"), self.event.get("lifecycle:transition", "complete")
            if name is None:
                raise InputError("an event has no concept:name", self._where)
            if cycle.lower() in ("complete", "ate_abort", "pi_abort"):
                result = OK if cycle.lower() == "complete" else ERROR
                cost = _number(self.event.get("cost:total", 0), "cost:total", self._where)
                self.calls.append(ToolCall(name, result, cost))
            self.event = None
        elif tag == "trace" and self.trace is not None:
            name = self.trace.get("concept:name", str(len(self.runs)))
            end = end_of(self.trace.get("score", self.trace.get("outcome")), self._where)
            self.runs.append(
                Run(f"{self.mark} {name}", self.trace.get("task"), self.calls, end or "finished")
            )
            self.trace = None


def _has_keys(data: object, *keys: str) -> bool:
    """Whether these bytes begin with a JSON object whose first line has these keys, as far as it is seen."""
    first = data.lstrip() if isinstance(data, bytes) else b""
    first = first.partition(b"\n")[0]
    return first.startswith(b"{") and all(re.search(rb'"%s"\s*:' % key.encode(), first) for key in keys)
