"""Readers of traces: what becomes a step, every format the same runs, and what is refused with its place."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.fleet import traces
from tightrope.io.table.data_table import DataTable
from tightrope.io.table.files import find_files, open_table

STATES = ["start", "search", "search:ok", "edit", "edit:error", "edit.retry", "edit:timeout"]


def opened(path: Path, format: str | None = None) -> DataTable:
    return open_table(find_files(path, format)[0])


def column(table: DataTable, name: str) -> list[Any]:
    return [value for chunk in table.chunks([name]) for value in chunk.columns[name].to_pylist()]


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def transcript(path: Path) -> Path:
    return write(
        path,
        [
            {
                "run": 1,
                "task": "a",
                "step": 1,
                "tool": "search",
                "result": "text\nof lines",
                "cost": 5,
            },
            {"run": 1, "step": 2, "tool": "edit", "result": False, "cost": 7},
            {"run": 1, "step": 3, "tool": "edit", "error": "timed out after 30 s"},
            {"run": 1, "step": 4, "score": 1, "cost": 2},
            {"run": 2, "task": "b", "tool": "search", "result": None, "score": "0.25"},
        ],
    )


def otlp(path: Path) -> Path:
    def span(name: str, begin: int, **attributes: Any) -> dict[str, Any]:
        kinds = {int: "intValue", str: "stringValue"}
        listed = [
            {"key": key.replace("__", "."), "value": {kinds[type(v)]: v}} for key, v in attributes.items()
        ]
        return {"traceId": "t1", "name": name, "startTimeUnixNano": str(begin), "attributes": listed}

    tool = {"gen_ai__operation__name": "execute_tool"}
    spans = [
        span("invoke_agent x", 1, task="a", score=1),
        span(
            "chat m",
            2,
            gen_ai__operation__name="chat",
            gen_ai__usage__input_tokens=3,
            gen_ai__usage__output_tokens=2,
        ),
        span("execute_tool edit", 40, **tool, gen_ai__tool__name="edit", error__type="timeout"),
        span("execute_tool search", 9, **tool, gen_ai__tool__name="search"),
        {**span("execute_tool edit", 30, **tool), "status": {"code": 2}},
    ]
    other = {"traceId": "t2", "name": "execute_tool search", "startTimeUnixNano": "5", "attributes": []}
    groups = [{"scopeSpans": [{"spans": spans}]}, {"scopeSpans": [{"spans": [other]}]}]
    return write(path, [{"resourceSpans": groups}])


def langfuse(path: Path) -> Path:
    def seen(kind: str, name: str, second: int, **more: Any) -> dict[str, Any]:
        return {"type": kind, "name": name, "startTime": f"2026-01-01T00:00:{second:02}Z", **more}

    observations = [
        seen("GENERATION", "llm", 1, usage={"total": 5}),
        seen("TOOL", "search", 2),
        seen("TOOL", "edit", 5, level="ERROR", statusMessage="Timeout"),
        seen("TOOL", "edit", 4, level="ERROR"),
        seen("SPAN", "wrapper", 0),
    ]
    lines = [{"id": "x", "metadata": {"task": "a"}, "scores": [{"value": 1}], "observations": observations}]
    return write(path, [*lines, {"id": "y", "observations": [seen("SPAN", "search", 1)]}])


def evaluation(path: Path, sample: Any = None) -> Path:
    failed = {"type": "timeout", "message": "too slow"}
    events = [
        {"event": "model", "output": {"usage": {"total_tokens": 5}}},
        {"event": "tool", "function": "search", "result": "…"},
        {"event": "tool", "function": "edit", "error": {"type": "parsing", "message": "?"}},
        {"event": "tool", "function": "edit", "error": failed},
    ]
    samples = [
        {"id": "a", "epoch": 1, "events": events, "scores": {"match": {"value": "C"}}},
        {"id": "b", "epoch": 1, "events": events[1:2], "limit": {"type": "time"}},
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for one in samples if sample is None else [sample]:
            text = one if isinstance(one, str) else json.dumps(one)
            archive.writestr(f"samples/{'x' if isinstance(one, str) else one.get('id')}_1.json", text)
    return path


XES = """<?xml version="1.0"?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org/">
  <trace><string key="concept:name" value="c1"/><string key="outcome" value="success"/>
    <event><string key="concept:name" value="search"/>
      <string key="lifecycle:transition" value="complete"/></event>
    <event><string key="concept:name" value="edit"/>
      <string key="lifecycle:transition" value="start"/></event>
    <event><string key="concept:name" value="edit"/>
      <string key="lifecycle:transition" value="ate_abort"/></event>
  </trace>
  <trace><event><string key="concept:name" value="search"/></event></trace>
</log>
"""


@pytest.mark.parametrize(
    ("make", "name", "second"),
    [
        (transcript, "runs.jsonl", "score 0.25"),
        (otlp, "spans.jsonl", "unscored"),
        (langfuse, "export.jsonl", "unscored"),
        (evaluation, "log.eval", "cut"),
    ],
)
def test_all_formats_give_the_same_steps(make: Any, name: str, second: str, tmp_path: Path) -> None:
    table = opened(make(tmp_path / name))
    state, after = column(table, "state"), column(table, "next_state")
    assert state == [*STATES, "start", "search", "search:ok"]
    assert after == [*STATES[1:], "success", "search", "search:ok", second]
    assert column(table, "action")[:7] == ["agent", "search", "agent", "edit", "agent", "edit", "agent"]
    assert column(table, "cost")[1] == 5.0
    assert column(table, "task")[0] == "a"
    over = [i for i, one in enumerate(column(table, "terminated")) if one]
    assert over == ([6] if second in ("cut", "unscored") else [6, 9])
    assert [i for i, one in enumerate(column(table, "truncated")) if one] == ([9] if second == "cut" else [])
    assert "4 calls in 2 runs" in table.format.made[0]


def test_xes_plain_and_compressed(tmp_path: Path) -> None:
    (tmp_path / "log.xes").write_text(XES)
    (tmp_path / "log.xes.gz").write_bytes(gzip.compress(XES.encode()))
    for name in ("log.xes", "log.xes.gz"):
        table = opened(tmp_path / name)
        ends = ["search", "search:ok", "edit", "edit:error", "success", "search", "search:ok", "finished"]
        assert column(table, "next_state") == ends


def test_other_spellings(tmp_path: Path) -> None:
    """Spans as Python's exporter writes them, Langfuse as one list, observations without their traces."""
    span = {"name": "execute_tool", "context": {"trace_id": "0x1"}, "start_time": "2026-01-01T00:00:00Z"}
    span |= {"attributes": {"gen_ai.tool.name": "search", "gen_ai.operation.name": "execute_tool"}}
    assert "search:ok" in column(opened(write(tmp_path / "s.otlp", [span])), "state")
    listed = tmp_path / "export.json"
    lines = langfuse(tmp_path / "lines.jsonl").read_text().splitlines()
    listed.write_text(json.dumps([json.loads(line) for line in lines]))
    assert len(column(opened(listed, "langfuse"), "state")) == 10
    flat = [{"traceId": "t", "type": "TOOL", "name": "search", "startTime": "1", "level": "DEFAULT"}]
    assert column(opened(write(tmp_path / "flat.jsonl", flat)), "state") == ["start", "search", "search:ok"]


def test_plain_json_lines_are_still_rows(tmp_path: Path) -> None:
    line = {"episode": 0, "state": 1, "action": "go", "next_state": 2}
    assert opened(write(tmp_path / "log.jsonl", [line])).columns == tuple(line)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([{"run": 1, "tool": "a"}, "x"], ":2: the line is not a JSON object"),
        ([{"run": 1, "tool": "a"}, {"tool": "b"}], ":2: the line names no `run`"),
        ([{"run": 1, "tool": "a", "score": "great"}], ":1: 'great' is not a score"),
        ([{"run": 1, "tool": "a", "score": 7}], ":1: '7' is not a score"),
        ([{"run": 1, "tool": "a", "cost": -1}], ":1: `cost` is '-1'"),
        ([{"run": 1, "tool": "a", "step": 2}, {"run": 1, "tool": "a", "step": 1}], ":2: step 1 of run 1"),
        ([{"run": 1, "tool": "a", "score": 1}, {"run": 1, "score": 0}], ":2: run 1 has two scores"),
        ([{"traceId": "a", "spanId": "b"}], ":1: a span has no name"),
        ([{"traceId": "a", "spanId": "b", "name": "execute_tool x"}], ":1: a span has no time"),
        ([{"resourceSpans": [3]}], ":1: `resourceSpans` is not a list of objects"),
        ([{"observations": []}], ":1: a record has neither"),
        ([{"run": 1, "tool": None}], "there are no runs"),
    ],
)
def test_wrong_lines_are_named(lines: list[Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"JSON|run|score|cost|span|Spans|record") as refused:
        opened(write(tmp_path / "wrong.jsonl", lines))
    assert problem in str(refused.value)


def test_a_truncated_line_is_named(tmp_path: Path) -> None:
    path = transcript(tmp_path / "cut.jsonl")
    path.write_text(path.read_text()[:-10])
    with pytest.raises(InputError, match=r"cut.jsonl:5: not JSON"):
        opened(path)


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives and streams that expand, entities, nesting, endless lines and elements."""
    monkeypatch.setattr(traces, "MOST_MEMBER", 1 << 16)
    monkeypatch.setattr(traces, "MOST_LINE", 1 << 16)
    with pytest.raises(InputError, match="expands to more than"):
        opened(evaluation(tmp_path / "bomb.eval", " " * (1 << 20)))
    with pytest.raises(InputError, match="nests too deeply"):
        opened(evaluation(tmp_path / "deep.eval", "[" * 50_000))
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><log><trace/></log>'
    (tmp_path / "laughs.xes").write_text(laughs)
    with pytest.raises(InputError, match="declares a type or entities"):
        opened(tmp_path / "laughs.xes")
    (tmp_path / "deep.xes").write_text("<a>" * 100)
    with pytest.raises(InputError, match="nests too deeply"):
        opened(tmp_path / "deep.xes")
    (tmp_path / "long.xes.gz").write_bytes(gzip.compress(b'<log a="' + b"x" * (1 << 20)))
    with pytest.raises(InputError, match="an element has more than"):
        opened(tmp_path / "long.xes.gz")
    begin = b'{"run": 1, "tool": "'
    (tmp_path / "long.jsonl.gz").write_bytes(gzip.compress(begin + b"x" * (1 << 20)))
    with pytest.raises(InputError, match="a line has more than"):
        opened(tmp_path / "long.jsonl.gz")
    monkeypatch.setattr(traces, "MOST_BYTES", 1 << 17)
    (tmp_path / "many.jsonl.gz").write_bytes(gzip.compress((begin + b'x"}\n') * (1 << 14)))
    with pytest.raises(InputError, match="bytes of traces"):
        opened(tmp_path / "many.jsonl.gz")


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    whole = evaluation(tmp_path / "whole.eval").read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("samples/a.json", "[]")
    damaged = {"cut.eval": whole[:-30], "text.eval": b"nothing", "list.eval": buffer.getvalue()}
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError):
            opened(tmp_path / name)


def test_three_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces to a model, to a bound for tasks, to a comparison; how they were read is said."""
    monkeypatch.chdir(tmp_path)
    for folder, bad in (("runs", 9), ("a", 8), ("b", 2)):
        lines = []
        for one in range(240):
            call = {"tool": "search", "result": one % 7 != 0, "cost": one * bad % 50}
            lines.append({"run": one, "task": f"t{one % 60}", **call})
            lines.append({"run": one, "score": int(one % bad != 0)})
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "runs.jsonl", lines)
    asked = ["--prop", 'P=? [ F "success" ]']
    assert run(["draft", "runs/*.jsonl", "--unit", "task", "-o", "agent.prism"]) == 0
    capsys.readouterr()
    assert run(["learn", "agent.prism", *asked, "--unit", "task:0.8", "--delta", "0.1"]) == 0
    first = capsys.readouterr()
    assert "data: runs/*.jsonl, from which agent.prism was drafted; --data names other data" in first.err
    assert "average unit PROVED" in first.out
    words = [*asked, "--data", "runs/*.jsonl", "--unit", "task:0.8", "--delta", "0.1"]
    assert run(["learn", "agent.prism", *words]) == 0
    assert capsys.readouterr().out == first.out  # the same answer as with the option
    assert run(["learn", "agent.prism", *asked, "--unit", "task"]) in (0, 1)
    assert run(["compare", "--before", "a/", "--after", "b/"]) == 0
    assert capsys.readouterr().out.splitlines()[-1]
    assert run(["data", "runs", "--model", "agent.prism", "--verbose"]) == 0
    assert "each line with a tool is a call" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "runs").rename(tmp_path / "moved")
    assert run(["learn", "agent.prism", *asked, "--unit", "task"]) == 2
    assert "runs/*.jsonl" in capsys.readouterr().err
    assert run(["draft", "a", "--ends", "complete", "-o", "other.prism"]) == 0
    assert run(["learn", "other.prism", *asked]) == 2  # it was read with options, which a model does not name
    assert "give either --data FILE" in capsys.readouterr().err
