"""A file that exists is replaced where tightrope wrote it or the user says so, and is else refused first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tightrope
from places import TESTS
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io import output
from tightrope.io.explicit import claim_explicit, read_explicit
from tightrope.io.output import (
    CERTIFICATE,
    DATA,
    DRN,
    FIGURE,
    POLICY,
    REPORT,
    TABLES,
    UMB,
    FileKind,
    claim_file,
)

pytestmark = pytest.mark.usefixtures("empty_pictures", "built_once")
MODEL = "bench:betting(3)"
RECORDS = TESTS.parent / "docs" / "results"

COMMANDS: dict[str, tuple[str, FileKind | None]] = {
    "sample MODEL --episodes 20 -o OUT.csv": ("OUT.csv", DATA),
    "sample MODEL --episodes 20 --raw -o OUT.parquet": ("OUT.parquet", DATA),
    "export MODEL -o OUT.drn": ("OUT.drn", DRN),
    "export MODEL -o OUT.umb": ("OUT.umb", UMB),
    "export MODEL -o OUT": ("OUT.tra", None),
    "export MODEL -o OUT.tra": ("OUT.lab", None),
    "check MODEL --certificate OUT": ("OUT", CERTIFICATE),
    "check MODEL --policy-out OUT": ("OUT", POLICY),
    "check MODEL --sets expression --certificate OUT": ("OUT", CERTIFICATE),
    "check MODEL --sets expression --policy-out OUT": ("OUT", POLICY),
    "learn MODEL --data DATA --certificate OUT": ("OUT", CERTIFICATE),
    "report RESULT -o OUT.html": ("OUT.html", REPORT),
    "report RESULT -o page.html --picture OUT.png": ("OUT.png", FIGURE),
    "data DATA --model MODEL --plot OUT.png": ("OUT.png", FIGURE),
    "data DATA --model MODEL --plot OUT.svg": ("OUT.svg", FIGURE),
    "data DATA --model MODEL --plot OUT.pdf": ("OUT.pdf", FIGURE),
    "bench --tables RECORDS -o OUT.tex": ("OUT.tex", TABLES),
    "bench --tables RECORDS -o OUT.txt": ("OUT.txt", TABLES),
    "bench --tables RECORDS -o OUT.md": ("OUT.md", TABLES),
}

each_command = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with data and a result."""
    folder = tmp_path_factory.mktemp("made")
    data, result = str(folder / "data.parquet"), str(folder / "result")
    assert run(["sample", MODEL, "--episodes", "200", "--seed", "3", "-o", data]) == 0
    assert run(["learn", MODEL, "--data", data, "--sets", "tied", "-o", result]) == 0
    (folder / "records").mkdir()
    for name, kept in (
        ("records.jsonl", 12),
        ("online.jsonl", 2),
    ):  # few: tables are not what is tested
        lines = (RECORDS / name).read_text().splitlines(keepends=True)
        (folder / "records" / name).write_text("".join(lines[:kept]))
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def words(command: str, made: Path) -> list[str]:
    given = {
        "MODEL": MODEL,
        "DATA": str(made / "data.parquet"),
        "RESULT": str(made / "result"),
        "RECORDS": str(made / "records"),
    }
    return [given.get(word, word.replace("OUT", "out")) for word in command.split()]


def target(command: str) -> Path:
    return Path(COMMANDS[command][0].replace("OUT", "out"))


@each_command
def test_a_foreign_file_is_refused_before_anything_is_read(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = target(command)
    file.write_text("years of work\n")
    nothing = Path("nowhere")  # no model, log or result: whatever is read first would be missed first
    missing = [
        str(nothing) if word in ("RECORDS", "RESULT", "DATA") else word.replace("OUT", "out")
        for word in command.replace("MODEL", "missing.prism").split()
    ]
    assert run(missing) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert f"{file} exists and is no" in said and "it was not changed" in said
    assert "name another file, or replace it with --overwrite" in said
    assert file.read_text() == "years of work\n"
    assert os.listdir() == [file.name]


@pytest.mark.thinned(5)
@each_command
def test_a_foreign_file_is_replaced_where_the_user_says_so_and_then_its_own(command: str, made: Path) -> None:
    file, kind = target(command), COMMANDS[command][1]
    file.write_text("years of work\n")
    assert run([*words(command, made), "--overwrite"]) == 0
    assert b"years of work" not in file.read_bytes()
    kinds = (CERTIFICATE, DATA, DRN, FIGURE, POLICY, REPORT, TABLES, UMB)
    assert kind is None or [k for k in kinds if output.has_mark(file, k)] == [kind]
    first = file.stat().st_ino
    os.link(file, "kept")  # so that the number is not given to the next file
    assert run(words(command, made)) == 0
    assert file.stat().st_ino != first


@pytest.mark.parametrize("kind", [CERTIFICATE, DATA, DRN, FIGURE, POLICY, REPORT, TABLES, UMB])
@pytest.mark.parametrize(
    "content",
    [
        b"PK\x03\x04 cut off",
        b"PAR1 cut off",
        b"\x89PNG\r\n\x1a\n cut off",
        b"%PDF-1.4\n/Creator (LaTeX with hyperref)",
        b'{"format": "another policy"}',
        b"<!DOCTYPE html>\n<html><head><title>tightrope</title></head></html>",
        b"\\documentclass{book} % tables generated by `tightrope bench --tables`",
        b"state,action,next_state\n0,a,1\n",
        b"\x1f\x8b\x08 cut off",
        b"@type: MDP\n// Written by tightrope\n",
    ],
)
def test_files_of_others_have_no_mark(kind: FileKind, content: bytes) -> None:
    Path("file").write_bytes(content)
    assert not output.has_mark(Path("file"), kind)
    with pytest.raises(InputError, match=r"was not (changed|overwritten)"):
        claim_file("file", kind)


def test_certificates_of_earlier_formats_are_known_and_other_archives_are_not() -> None:
    head = {"format": 3, "kind": "value", "header": {}, "about": {}, "digest": "00"}
    np.savez("old.npz", header=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8))
    claim_file("old.npz", CERTIFICATE)
    np.savez("own.npz", header=np.arange(3))
    with zipfile.ZipFile("own.zip", "w") as archive:
        archive.writestr("header.json", '{"title": "thesis"}')
        archive.writestr("digest", "")
    for name in ("own.npz", "own.zip"):
        with pytest.raises(InputError, match="not a certificate that tightrope wrote"):
            claim_file(name, CERTIFICATE)


def test_an_empty_file_and_a_link_to_nothing_may_be_written() -> None:
    Path("empty.csv").touch()
    Path("link.csv").symlink_to("later.csv")
    for name in ("empty.csv", "link.csv"):
        assert run(["sample", MODEL, "--episodes", "5", "-o", name]) == 0
    assert Path("later.csv").is_file() and Path("link.csv").is_symlink()
    assert run(["sample", MODEL, "--episodes", "5", "-o", "link.csv"]) == 0


def test_links_are_judged_by_what_they_lead_to(capsys: pytest.CaptureFixture[str]) -> None:
    Path("thesis.tex").write_text("years")
    Path("data.csv").symlink_to("thesis.tex")
    assert run(["sample", MODEL, "--episodes", "5", "-o", "data.csv"]) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    assert "data.csv, a link to" in said and "thesis.tex, exists and is not a data file" in said
    assert Path("thesis.tex").read_text() == "years"
    Path("round.csv").symlink_to("round.csv")
    assert run(["sample", MODEL, "--episodes", "5", "-o", "round.csv"]) == 2
    assert "a link that leads in a circle" in capsys.readouterr().err.replace("\n", " ")


def test_a_directory_is_refused_also_with_overwrite(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.csv").mkdir()
    assert run(["sample", MODEL, "--episodes", "5", "-o", "data.csv", "--overwrite"]) == 2
    assert "it is a directory" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("policy.json").write_text("secret")

    def denied(path: Path, size: int = 0) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(output, "_head", denied)
    with pytest.raises(
        InputError, match=r"cannot be read \(Permission denied\), so tightrope may not have written it"
    ):
        claim_file("policy.json", POLICY)
    claim_file("policy.json", POLICY, overwrite=True)


def test_what_comes_while_something_is_computed_is_not_lost() -> None:
    claimed = claim_file("policy.json", POLICY)
    Path("policy.json").write_text("written meanwhile")
    with pytest.raises(InputError, match=r"was not (changed|overwritten)"):
        claimed.check()


def test_files_of_a_run_are_not_replaced(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = made / "result" / "robust-policy.json"
    before = policy.read_bytes()
    assert run(["check", MODEL, "--policy-out", str(policy)]) == 2
    assert "part of what 'tightrope learn' wrote" in capsys.readouterr().err.replace("\n", " ")
    result = made / "result" / "result.json"
    assert run(["report", str(made / "result"), "-o", str(result), "--overwrite"]) == 2
    assert "part of what 'tightrope learn' wrote" in capsys.readouterr().err.replace("\n", " ")
    assert policy.read_bytes() == before and json.loads(result.read_text())


def test_a_changed_report_beside_a_result_is_replaced_only_with_overwrite(made: Path) -> None:
    assert run(["report", str(made / "result")]) == 0
    page = made / "result" / "report.html"
    page.write_text("my notes")
    assert run(["report", str(made / "result")]) == 2
    assert page.read_text() == "my notes"
    assert run(["report", str(made / "result"), "--overwrite"]) == 0
    assert run(["report", str(made / "result")]) == 0
    assert output.has_mark(page, REPORT)


def test_foreign_figures_are_refused_before_the_report_is_written(made: Path) -> None:
    Path("f").mkdir()
    Path("f/overview.pdf").write_text("mine")
    command = ["report", str(made / "result"), "-o", "page.html", "--figures", "f"]
    assert run(command) == 2
    assert os.listdir() == ["f"] and Path("f/overview.pdf").read_text() == "mine"
    assert run([*command, "--overwrite"]) == 0
    assert run(command) == 0


def test_one_name_for_two_outputs_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("b").symlink_to("a")
    assert run(["check", MODEL, "--certificate", "a", "--policy-out", "b"]) == 2
    assert "b is named for two outputs" in capsys.readouterr().err
    assert os.listdir() == ["b"]


def test_devices_are_written_and_stay_devices() -> None:
    for option in ("--certificate", "--policy-out"):
        assert run(["check", MODEL, option, "/dev/null"]) == 0
    assert run(["check", MODEL, "--certificate", "/dev/null", "--policy-out", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_is_appended_to_where_it_leads_to_a_file(place: str) -> None:
    Path("link").symlink_to("/dev/stdout")
    Path("all.txt").write_text("years of work\n")
    before = Path("all.txt").stat().st_ino
    script = (
        "from tightrope.atomic import atomic_write\n"
        "from tightrope.io.output import claim_file\n"
        "from tightrope.io.output import POLICY\n"
        f"claim_file({place!r}, POLICY).check()\n"
        "print('answer')\n"
        f"with atomic_write({place!r}) as file:\n    file.write('policy\\n')\n"
        "print('end')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(tightrope.__file__).parents[1])}
    with open("all.txt", "a") as out:
        subprocess.run([sys.executable, "-c", script], check=True, stdout=out, env=environment)
    assert Path("all.txt").read_text() == "years of work\nanswer\npolicy\nend\n"
    assert Path("all.txt").stat().st_ino == before


@pytest.mark.parametrize("name", ["m.tra", "m.srew", "m.tightrope.json"])
def test_explicit_files_that_were_changed_are_left_alone(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", MODEL, "-o", "m"]
    assert run(command) == 0
    Path(name).write_text("edited by hand")
    assert run(command) == 2
    assert f"{name} exists and is no" in capsys.readouterr().err
    assert Path(name).read_text() == "edited by hand"
    assert run([*command, "--overwrite"]) == 0
    assert run(command) == 0


def test_explicit_files_of_an_earlier_model_go_and_foreign_ones_are_refused() -> None:
    Path("plain.tra").write_text("2 2\n0 1 1\n1 1 1\n")
    assert run(["export", MODEL, "-o", "m"]) == 0
    assert Path("m.sta").exists() and Path("m.srew").exists()
    assert run(["export", "plain.tra", "-o", "m"]) == 0
    assert not Path("m.sta").exists() and not Path("m.srew").exists()
    assert read_explicit("m").structure.states == 2
    Path("m.srew").write_text("2 1\n0 5\n")
    for more in ([], ["--overwrite"]):
        assert run(["export", "plain.tra", "-o", "m", *more]) == 2
    assert Path("m.srew").read_text() == "2 1\n0 5\n"


def test_a_record_refers_to_its_own_names_only() -> None:
    Path("other").write_text("mine")
    record = {"format": "tightrope explicit files", "version": 1, "files": {"../m.sta": "0", "other": "0"}}
    Path("m.tightrope.json").write_text(json.dumps(record))
    assert claim_explicit("m")._read_record() == {}
