"""Wrong logs: what stands in them, for which model they are read, and with which words."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from log_cases import machine
from tightrope.model.builder import build_from_function, build_from_rows
from tightrope.model.structure import Structured

V = "wear,broken,action,wear_next,broken_next\n"
E = "episode,step,wear,broken,action,wear_next,broken_next\n"
OK = "0,0,run,1,0\n"
OTHER = '# tightrope: {"version": 1, "structure": "0000", "source": "other.prism"}\n'
DESIGN = '{"kind": "trajectories", "episodes": 3, "steps": 9, "repeats": true}'
SHORT = f'# tightrope: {{"version": 1, "design": {DESIGN}}}\n'


@dataclass(frozen=True)
class WrongLog:
    """`content` is that of the file, None for no file; `place` is what is read, the file by default."""

    name: str
    content: str | bytes | None
    file: str = "log.csv"
    words: dict[str, Any] = field(default_factory=dict)
    model: str = "machine"
    place: str | list[str] | None = None


def _parquet(**columns: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue())


GOOD = _parquet(wear=[0], broken=[False], action=["run"], wear_next=[1], broken_next=[False])

CASES = [
    # --- files ---
    WrongLog("empty", ""),
    WrongLog("comments alone", "# nothing\n"),
    WrongLog("a blank header", " \nx\n"),
    WrongLog("no rows", V),
    WrongLog("a column twice", "wear,wear\n0,0\n"),
    WrongLog("a short row", V + OK + "0,0,run\n"),
    WrongLog("a long row", V + OK + "0,0,run,1,0,7\n"),
    WrongLog("not UTF-8", b"wear,broken,akti\xf6n\n0,0,run\n"),
    WrongLog("no such file", None),
    WrongLog("an unknown ending", V + OK, "log.xlsx"),
    WrongLog("a directory without data", "", "notes.txt", place="."),
    WrongLog("a pattern without files", V + OK, place="*.parquet"),
    WrongLog("a file twice", V + OK, place=["log.csv", "*.csv"]),
    WrongLog("a cut gzip file", gzip.compress((V + OK * 4000).encode(), mtime=0)[:60], "log.csv.gz"),
    WrongLog("no gzip file", V + OK, "log.csv.gz"),
    WrongLog("no Parquet file", "PAR1 this is none", "log.parquet"),
    WrongLog("a cut Parquet file", GOOD[:100], "log.parquet"),
    WrongLog("an empty Parquet file", b"", "log.parquet"),
    WrongLog("no Arrow file", "ARROW1 this is none", "log.arrow"),
    WrongLog("a broken line of JSON", '{"wear": 0}\n{"wear": \n', "log.jsonl"),
    WrongLog("a line that is not an object", '{"wear": 0}\n[1, 2]\n', "log.jsonl"),
    WrongLog(
        "values of two types",
        '{"wear": 0, "broken": 0, "action": "run", "wear_next": 1, "broken_next": 0}\n'
        '{"wear": "one", "broken": 0, "action": "run", "wear_next": 1, "broken_next": 0}\n',
        "log.jsonl",
    ),
    WrongLog("an unknown format", V + OK, words={"format": "xls"}),
    WrongLog("an unknown store", None, place="nowhere://bucket/log.csv"),
    WrongLog("broken metadata", "# tightrope: {oops\n" + V + OK),
    WrongLog("metadata of another version", '# tightrope: {"version": 9}\n' + V + OK),
    WrongLog("indices of another model", OTHER + "state,action,next_state\n0,run,1\n"),
    WrongLog("rows lost since it was written", SHORT + V + OK),
    # --- columns ---
    WrongLog("a variable missing", "wear,action,wear_next\n0,run,1\n"),
    WrongLog("a next value missing", "wear,broken,action,wear_next\n0,0,run,1\n"),
    WrongLog("no action", "wear,broken,wear_next,broken_next\n0,0,1,0\n"),
    WrongLog("nothing follows", "wear,broken,action\n0,0,run\n"),
    WrongLog("two actions", V.replace("action", "act,a") + "0,0,run,run,1,0\n"),
    WrongLog("two next values", "wear,broken,action,next_wear,new_wear,broken_next\n0,0,run,1,1,0\n"),
    WrongLog("bare numbers for a model with variables", "state,action,next_state\n0,run,1\n"),
    WrongLog("a count without a next state", "wear,broken,action,count\n0,0,run,3\n"),
    WrongLog("a column that is not there", V + OK, words={"columns": ["action=cmd"]}),
    WrongLog("no part of a row", V + OK, words={"columns": ["colour=action"]}),
    WrongLog("a role twice", V + OK, words={"columns": ["action=action", "action=wear"]}),
    WrongLog("a column of two meanings", V + OK, words={"columns": ["action=wear, episode=wear"]}),
    WrongLog("no equals sign", V + OK, words={"columns": ["action cmd"]}),
    WrongLog("an author's states in PRISM", V + OK, words={"states": "own"}),
    WrongLog(
        "variables of a model without",
        "state,action,next_state\n2,go,3\n",
        words={"states": "variables"},
        model="coins",
    ),
    WrongLog("no way to name states", V + OK, words={"states": "names"}),
    WrongLog("a map of nothing", V + OK, words={"maps": ["colour: 1=red"]}),
    WrongLog("a map without a colon", V + OK, words={"maps": ["action 0=run"]}),
    WrongLog("a map without a value", V + OK, words={"maps": ["action: 0=run, 1"]}),
    WrongLog("a value mapped twice", V + OK, words={"maps": ["action: 0=run, 0=repair"]}),
    WrongLog("no arithmetic", V + OK, words={"maps": ["wear: ten times"]}),
    WrongLog("a division by zero", V + OK, words={"maps": ["wear: /0"]}),
    WrongLog("a map of states by variables", V + OK, words={"maps": ["state: -1"]}),
    WrongLog("no sampling design", V + OK, words={"design": "clever"}),
    WrongLog("no planned episodes", V + OK, words={"planned_episodes": 0}),
    # --- values ---
    WrongLog("an unknown state", V + OK + "7,0,run,1,0\n"),
    WrongLog(
        "an unknown state after a map", V + "0,0,run,0.1,0\n0.7,0,run,0.1,0\n", words={"maps": ["wear: *10"]}
    ),
    WrongLog("an unknown next state", V + OK + "0,0,run,9,0\n"),
    WrongLog("a value missing", V + OK + ",0,run,1,0\n"),
    WrongLog(
        "a value missing that a map does not know",
        V + OK + "0,,run,1,0\n",
        words={"maps": ["broken: 0=false, 1=true"]},
    ),
    WrongLog("a value missing that is converted", V + OK + ",0,run,1,0\n", words={"maps": ["wear: *1"]}),
    WrongLog("a meaning of an empty cell given twice", V + OK, words={"maps": ["broken: =false, =true"]}),
    WrongLog("an action missing", V + OK + "0,0,,1,0\n"),
    WrongLog("no number", V + OK + "zero,0,run,1,0\n"),
    WrongLog("a fraction", V + OK + "0.5,0,run,1,0\n"),
    WrongLog("a fraction after a map", V + "0,0,run,0.1,0\n0.25,0,run,1,0\n", words={"maps": ["wear: *10"]}),
    WrongLog(
        "a value that is not mapped",
        V + "0,0,1,1,0\n0,0,5,1,0\n",
        words={"maps": ["action: 0=repair, 1=run"]},
    ),
    WrongLog("a disabled action", V + OK + "0,0,repair,0,0\n"),
    WrongLog("an action of no model", V + OK + "0,0,fly,1,0\n"),
    WrongLog("an action's number too large", V + OK + "0,0,4,1,0\n"),
    WrongLog("an ambiguous action", "state,action,next_state\n0,go,1\n", model="twins"),
    WrongLog("action and choice disagree", "state,choice,action,next_state\n0,1,stop,1\n", model="twins"),
    WrongLog("a number of two meanings", "state,action,next_state\n1,0,1\n", model="crossed"),
    WrongLog("an impossible transition", V + OK + "0,0,run,2,0\n"),
    WrongLog("a negative count", V.replace("\n", ",count\n") + "0,0,run,1,0,-4\n"),
    WrongLog("half a count", V.replace("\n", ",count\n") + "0,0,run,1,0,2.5\n"),
    WrongLog("a negative batch", "batch," + V.replace("\n", ",count\n") + "-1,0,0,run,1,0,4\n"),
    WrongLog(
        "counts beyond all bounds", V.replace("\n", ",count\n") + "0,0,run,1,0,900000000000000000\n" * 6
    ),
    WrongLog("a flag that is none", V.replace("\n", ",done\n") + "0,0,run,1,0,perhaps\n"),
    WrongLog("a time that is none", V.replace("\n", ",time\n") + "0,0,run,1,0,soon\n"),
    WrongLog(
        "a type without numbers",
        _parquet(
            wear=pa.array([1], type=pa.timestamp("ms")),
            broken=[False],
            action=["run"],
            wear_next=[1],
            broken_next=[False],
        ),
        "log.parquet",
    ),
    WrongLog("an index too large", "state,action,next_state\n0,run,1\n99,run,1\n", words={"states": "index"}),
    WrongLog("none of the author's states", "state,action,next_state\n2,go,3\n9,go,3\n", model="coins"),
    # --- episodes ---
    WrongLog("a broken chain", E + "0,0,0,0,run,1,0\n0,1,2,0,run,2,0\n"),
    WrongLog("rows after the end", E.replace("\n", ",done\n") + "0,0,0,0,run,1,0,1\n0,1,1,0,run,1,0,0\n"),
    WrongLog("a step twice", E + "0,0,0,0,run,0,0\n0,0,0,0,run,1,0\n"),
    WrongLog("an episode without a name", E + "0,0,0,0,run,0,0\n,1,0,0,run,1,0\n"),
    WrongLog("a step that is not a number", E + "0,0,0,0,run,0,0\n0,one,0,0,run,1,0\n"),
    # --- readings that look wrong ---
    WrongLog("nothing left", V + "7,0,run,1,0\n0,0,fly,1,0\n", words={"skip_invalid": True}),
    WrongLog("variables counted from 1", V + "1,1,run,2,1\n2,1,repair,1,1\n2,1,run,2,1\n"),
    WrongLog(
        "numbers of the model", "state,action,next_state\n0,go,1\n0,go,2\n1,go,3\n1,go,0\n", model="coins"
    ),
    WrongLog("numbers from 1", "state,action,next_state\n1,go,2\n1,go,3\n2,go,4\n2,go,1\n", model="coins"),
    WrongLog(
        "the other way round",
        "wear,broken,action,wear_next,broken_next\n1,0,run,0,0\n2,0,run,1,0\n3,0,run,2,0\n",
    ),
    WrongLog(
        "variables changed over",
        "wear,broken,action,wear_next,broken_next\n0,1,run,0,2\n0,2,run,0,3\n0,2,repair,0,1\n",
    ),
    WrongLog("choices from 1", V + "1,0,1,2,0\n1,0,2,0,0\n1,0,2,0,0\n"),
    WrongLog("actions by number", V + "1,0,1,0,0\n0,0,0,1,0\n3,1,2,3,1\n3,1,2,3,1\n"),
]


@cache
def model_named(name: str) -> Structured:
    """The models the logs are read for."""
    if name == "machine":
        return machine()
    if name == "coins":
        return build_from_function(
            2, lambda x: {"stay": {x: 1}} if x in (0, 4) else {"go": {x + 1: "1/2", x - 1: "1/2"}}
        )
    if name == "crossed":
        return build_from_rows(
            [(0, "go", {1: 1}), (0, "stop", {0: 1}), (1, "stop", {1: 1}), (1, "go", {0: 1})]
        )
    return build_from_rows([(0, "go", {1: 1}), (0, "go", {0: 1}), (1, "stop", {1: 1})])


def write_case(folder: Path, case: WrongLog) -> str | list[str]:
    """Write the log below the current directory; what is to be read."""
    if case.content is not None:
        content = case.content if isinstance(case.content, bytes) else case.content.encode()
        (folder / case.file).write_bytes(content)
    return case.file if case.place is None else case.place
