"""What is written as JSON is described once: records print it and read it back, schemas publish it.

Also of `io/answers.py`, `io/comparisons.py`, `io/coding.py`.
"""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from places import TESTS
from report_cases import STORED
from tightrope.cli.app import run as command
from tightrope.cli.check_answers import CheckAnswer, DomainAnswer
from tightrope.cli.data import DataAnswer
from tightrope.cli.export import ExportAnswer
from tightrope.cli.info import InfoAnswer
from tightrope.cli.learn_run import LearnAnswer
from tightrope.cli.sample import SampleAnswer
from tightrope.cli.verify import VerifyAnswer
from tightrope.errors import InputError
from tightrope.io.coding import from_text, read_document, to_text
from tightrope.io.output import Manifest
from tightrope.io.results import Interval, PolicyDocument, ResultDocument
from tightrope.learning.online.run import OnlineRecord

ROOT = TESTS.parent
SCHEMAS = ROOT / "docs" / "schemas"
TOOL = runpy.run_path(str(ROOT / "tools" / "schemas.py"))
DOCUMENTS, schema_texts = TOOL["DOCUMENTS"], TOOL["schema_texts"]

MODEL = """mdp
const double p;
module coin
  s : [0..2] init 0;
  [flip] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [wait] s=0 -> 0.5 : (s'=0) + 0.5 : (s'=2);
  [done] s>0 -> true;
endmodule
label "won" = s=1;
"""
PROPERTY = 'Pmax=? [ F "won" ]'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("documents")
    (place / "coin.prism").write_text(MODEL)
    return place


def answered(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert command([str(argument) for argument in (*arguments, "--json")]) == 0
    return capsys.readouterr().out.strip().splitlines()[-1]


def test_what_commands_print_is_read_back_by_its_record(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data, proof, run = (folder / name for name in ("coin.prism", "d.parquet", "c.cert", "run"))
    asked = ("--prop", PROPERTY)
    printed: dict[type, str] = {
        InfoAnswer: answered(capsys, "info", model),
        SampleAnswer: answered(
            capsys, "sample", model, "--at", "p=0.6", "--episodes", 50, "--seed", 1, "-o", data
        ),
        DataAnswer: answered(capsys, "data", data, "--model", model),
        CheckAnswer: answered(capsys, "check", model, *asked, "--at", "p=0.6", "--all-states"),
        DomainAnswer: answered(capsys, "check", model, *asked, "--sets", "expression"),
        LearnAnswer: answered(
            capsys,
            "learn",
            model,
            *asked,
            "--data",
            data,
            "--sets",
            "tied",
            "--certificate",
            proof,
            "-o",
            run,
        ),
        VerifyAnswer: answered(capsys, "verify", proof, "--model", model, "--data", data),
        ExportAnswer: answered(capsys, "export", model, "-o", folder / "coin.drn"),
        OnlineRecord: answered(
            capsys, "online", model, *asked, "--at", "p=0.6", "--episodes", 3, "--sets", "tied"
        ),
    }
    for kind, text in printed.items():
        record: Any = from_text(text, kind)
        assert json.loads(to_text(record)) == json.loads(text), kind.__name__
    assert from_text(printed[LearnAnswer], LearnAnswer).robust_policy.upper <= 1.0
    checked: Any = from_text(printed[CheckAnswer], CheckAnswer)
    assert [row.state for row in checked.states] == [f"(s={i})" for i in range(3)]
    for file, kind in (
        ("result.json", ResultDocument),
        ("robust-policy.json", PolicyDocument),
        ("tightrope-manifest.json", Manifest),
    ):
        content = (run / file).read_text()
        assert json.loads(to_text(from_text(content, kind))) == json.loads(content), file


def test_files_written_by_an_earlier_version_are_the_same_when_written_again() -> None:
    content = (STORED / "result.json").read_text()
    assert json.loads(to_text(from_text(content, ResultDocument))) == json.loads(content)


def test_schemas_are_current() -> None:
    published = {path.name: path.read_text() for path in SCHEMAS.glob("*.json")}
    assert published == schema_texts(), "run: python tools/schemas.py docs/schemas"
    assert len(published) == len(DOCUMENTS)


def test_schemas_have_the_keys_that_scripts_rely_on() -> None:
    schema = json.loads(schema_texts()["learn-2.schema.json"])
    answer = schema["$defs"]["LearnAnswer"]
    keys = {"empty", "fallback", "value", "robust_policy", "widths", "ledger", "seconds"}
    assert keys <= set(answer["properties"])
    assert {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]} in (
        schema["$defs"]["Interval"]["properties"]["lower"],
        answer["properties"]["guarantee"],
    )


def test_infinities_are_words() -> None:
    text = to_text(Interval(-math.inf, math.inf))
    assert text == '{"lower":"-inf","upper":"inf"}'
    assert from_text(text, Interval) == Interval(-math.inf, math.inf)
    for wrong in ('{"lower":"small","upper":1}', '{"lower":true,"upper":1}', '{"lower":null,"upper":1}'):
        with pytest.raises(msgspec.ValidationError, match=r"Expected a number.*lower"):
            from_text(wrong, Interval)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "this is not JSON"),
        (b'{"format": "x"}', "this is a 'x', not a 'tightrope result'"),
        (b'{"format": "tightrope result"}', "does not say its 'version'"),
        (
            b'{"format": "tightrope result", "version": "one"}',
            "Expected 'int | null', got 'str' - at 'version'",
        ),
        (b'{"format": "tightrope result", "version": 2}', "has version 2, and 1 is understood"),
        (b'{"format": "tightrope result", "version": 0}', "has version 0, and 1 is understood"),
        (b'{"format": "tightrope result", "version": 1, "versions": {"a": 1}}', "at 'versions[...]'"),
    ],
)
def test_files_that_are_not_the_document_end_in_words(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_document(file, ResultDocument, "tightrope result", 1)
    assert words in str(raised.value) and str(file) in str(raised.value)
