"""Only files that tightrope wrote, and nobody has changed since, are replaced; foreign ones never."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path

import pytest

from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.io.output import MANIFEST, Manifest, add_file, claim, read_manifest

pytestmark = pytest.mark.usefixtures("empty_pictures", "built_once")
MODEL = "bench:betting(8)"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "data.parquet"
    assert run(["sample", MODEL, "--episodes", "200", "--seed", "3", "-o", str(file)]) == 0
    return file


def fill(path: Path, kind: str = "learn", **files: str) -> None:
    with claim(path, kind).filling("result") as folder:
        for name, text in files.items():
            (folder / name).write_text(text)


def contents(path: Path) -> dict[str, str]:
    found = (f for f in path.rglob("*") if f.is_file() and f.name != MANIFEST)
    return {str(file.relative_to(path)): file.read_text() for file in found}


def test_a_run_replaces_its_own_files_and_removes_what_it_no_longer_writes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(out, result="1", extra="1")
    fill(out, result="2", other="2")
    assert contents(out) == {"result": "2", "other": "2"}
    assert sorted(os.listdir(tmp_path)) == ["out"]
    assert sorted(os.listdir(out)) == ["other", "result", MANIFEST]
    known = read_manifest(out)
    assert known is not None and known.kind == "learn" and set(known.files) == {"result", "other"}


def test_foreign_and_changed_files_are_named_and_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(out, result="1", policy="1")
    (out / "chapter.tex").write_text("years")
    (out / "policy").write_text("edited by hand")
    (out / "figures").mkdir()
    with pytest.raises(InputError) as refused:
        claim(out, "learn")
    text = str(refused.value)
    assert "did not write: chapter.tex, figures/" in text and "changed since: policy" in text
    assert "name another directory" in text
    assert contents(out) == {"result": "1", "policy": "edited by hand", "chapter.tex": "years"}


def test_a_directory_without_a_manifest_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "result.json").write_text("{}")
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"did not write: chapter1.tex, result.json; it was not changed"):
        claim(tmp_path / "thesis", "learn")


def test_kinds_of_runs_do_not_overwrite_each_other(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(out, "online", result="1")
    with pytest.raises(InputError, match="'tightrope online' wrote, and 'tightrope learn' does not"):
        claim(out, "learn")


@pytest.mark.parametrize("manifest", ["", "[]", '{"format": "tightrope manifest", "version": 9}'])
def test_a_broken_manifest_owns_nothing(tmp_path: Path, manifest: str) -> None:
    (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(InputError, match="not a manifest that says"):
        claim(tmp_path, "learn")


def test_a_manifest_does_not_reach_outside(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    content = {"format": "tightrope manifest", "version": 1, "kind": "learn", "added": {}, "replacing": {}}
    (tmp_path / "out" / MANIFEST).write_text(json.dumps({**content, "files": {"../precious": None}}))
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(InputError, match="not a manifest that says"):
        claim(tmp_path / "out", "learn")


def test_places_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    for place, said in (
        ("../file", "it is a file"),
        ("../no/where", "there is no directory"),
        (".", "where the program runs"),
        ("..", "where the program runs"),
        ("../home", "it is your home"),
    ):
        with pytest.raises(InputError, match=said):
            claim(place, "learn")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(InputError, match="no permission"):
        claim(tmp_path / "new", "learn")


def test_links_are_followed_to_the_directory_but_are_foreign_inside(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    fill(tmp_path / "link", result="1")
    assert (tmp_path / "link").is_symlink() and contents(tmp_path / "real") == {"result": "1"}
    (tmp_path / "precious").write_text("1")
    (tmp_path / "real" / "result").unlink()
    (tmp_path / "real" / "result").symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match="changed since: result"):
        claim(tmp_path / "link", "learn")


def test_what_changes_while_computing_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    mine = claim(out, "learn")
    fill(out, result="another run")
    with pytest.raises(InputError, match="changed since this run began"), mine.filling() as folder:
        (folder / "result").write_text("mine")
    again = claim(out, "learn")
    (out / "notes").write_text("mine")
    with pytest.raises(InputError, match="did not write: notes"), again.filling() as folder:
        (folder / "result").write_text("mine")
    assert contents(out) == {"result": "another run", "notes": "mine"}
    assert not [name for name in os.listdir(out) if name.startswith(".")]


@pytest.mark.parametrize("number", range(6))
def test_killed_between_any_two_files_both_runs_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A process that dies while files take their places leaves no result, or a whole one."""
    out = tmp_path / "out"
    fill(out, result="1", a="1", stale="1")
    calls = 0
    really = os.replace

    def dies(source: object, target: object) -> None:
        nonlocal calls
        if calls == number:
            raise KeyboardInterrupt
        calls += 1
        really(source, target)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", dies)
        with contextlib.suppress(KeyboardInterrupt):
            fill(out, result="2", a="2", b="2")
    left = contents(out)
    if "result" in left:
        assert {left["a"], left.get("b", "1")} == {left["result"]}
    fill(out, result="3", c="3")
    assert contents(out) == {"result": "3", "c": "3"}


def test_an_abandoned_part_of_a_killed_run_is_cleared_away(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(out, result="1")
    (out / ".tightrope-0123456789abcdef.part").mkdir()
    (out / ".tightrope-0123456789abcdef.part" / "result").write_text("torn")
    (out / f".{MANIFEST}.0123456789abcdef.part").write_text("torn")
    fill(out, result="2")
    assert contents(out)["result"] == "2"
    assert ".tightrope-0123456789abcdef.part" not in os.listdir(out)


def test_files_are_added_beside_a_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fill(out, result="1")
    for text in ("one", "two"):
        with add_file(out / "report.html") as place:
            place.write_text(text)
    known = read_manifest(out)
    assert known is not None and set(known.added) == {"report.html"} and not known.replacing
    with (
        pytest.raises(InputError, match="is part of what"),
        add_file(out / "result"),
    ):
        raise AssertionError
    (out / "report.html").write_text("edited")
    with pytest.raises(InputError, match="or was edited"), add_file(out / "report.html"):
        raise AssertionError
    (out / "report.html").unlink()
    fill(out, result="2")
    assert contents(out) == {"result": "2"}


def test_a_directory_of_one_kind_stays_with_it_on_the_command_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thesis with a file result.json was erased, and 'learn' deleted the checkpoint of an online run."""
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "result.json").write_text("{}")
    (thesis / "chapter1.tex").write_text("years of work")
    learn = ["learn", MODEL, "--data", str(data), "--sets", "tied", "-o"]
    online = ["online", MODEL, "--episodes", "3", "--sets", "tied", "-o"]
    bench = ["bench", "betting(8)", "--methods", "tied", "-o"]
    commands = {"learn": learn, "online": online, "bench": bench, "demo": ["demo", "-o"]}
    for command in commands.values():
        assert run([*command, str(thesis)]) == 2
        assert "was not " in capsys.readouterr().err
    assert contents(thesis) == {"result.json": "{}", "chapter1.tex": "years of work"}
    for kind, command in (("online", online), ("learn", learn)):
        out = tmp_path / kind
        assert run([*command, str(out)]) == 0
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        capsys.readouterr()
        for other in {*commands} - {kind}:
            assert run([*commands[other], str(out)]) == 2
            said = capsys.readouterr().err
            assert f"'tightrope {kind}' wrote, and 'tightrope {other}' does not write over it" in said
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
        assert run([*command, str(out)]) == 0


@pytest.mark.costly("test_figures_go_beside_others_but_not_over_them")
def test_a_report_beside_a_result_is_replaced_with_it(data: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    proof = str(tmp_path / "out" / "tied.cert")
    learn = ["learn", MODEL, "--data", str(data), "--sets", "tied", "-o", out]
    for _ in range(2):
        assert run([*learn, "--certificate", proof]) == 0
        assert run(["verify", proof]) == 0
        assert run(["report", out]) == 0
        assert run(["report", out]) == 0
    assert run(learn) == 0
    names = {"result.json", "robust-policy.json", "optimistic-policy.json"}
    assert set(contents(tmp_path / "out")) == names


def test_figures_go_beside_others_but_not_over_them(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, figures = str(tmp_path / "out"), tmp_path / "figures"
    learn = ["learn", MODEL, "--data", str(data), "--sets", "tied", "-o", out]
    assert run(learn) == 0
    figures.mkdir()
    (figures / "mine.pdf").write_text("drawn by hand")
    for _ in range(2):
        assert run(["report", out, "-o", str(tmp_path / "r.html"), "--figures", str(figures)]) == 0
    (figures / "intervals.pdf").write_text("drawn by hand")
    assert run(["report", out, "-o", str(tmp_path / "r.html"), "--figures", str(figures)]) == 2
    assert "intervals.pdf was not written by tightrope, or was edited" in capsys.readouterr().err
    assert (figures / "mine.pdf").read_text() == (figures / "intervals.pdf").read_text() == "drawn by hand"


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sync to the disk fails, as the last block that is written does when there is no space left."""

    def fails(descriptor: int) -> None:
        raise FULL

    monkeypatch.setattr("os.fsync", fails)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "command",
    [
        ["learn", "--sets", "tied", "-o", "OUT"],
        ["learn", "--sets", "all", "--json", "-o", "OUT"],
        ["learn", "--sets", "tied", "--certificate", "OUT.cert"],
        ["check", "--certificate", "OUT.cert"],
        ["check", "--policy-out", "OUT.json", "--json"],
        ["check", "--sets", "expression", "--policy-out", "OUT.json"],
    ],
    ids=" ".join,
)
def test_the_answer_is_printed_before_it_cannot_be_written(
    command: list[str],
    data: Path,
    tmp_path: Path,
    full_disk: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = str(tmp_path / "out")
    given = ["--data", str(data)] if command[0] == "learn" else []
    rest = [word.replace("OUT", out) for word in command[1:]]
    assert run([command[0], MODEL, *given, *rest]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith("PROVED: ") or '"lower"' in printed.out
    assert "No space left on device" in printed.err and "cannot write" in printed.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "command",
    [
        ["sample", "--episodes", "20", "-o", "OUT.parquet"],
        ["sample", "--episodes", "20", "-o", "OUT.csv"],
        ["export", "-o", "OUT.drn"],
        ["export", "-o", "OUT.tra"],
        ["export", "-o", "OUT.umb"],
    ],
    ids=" ".join,
)
def test_nothing_half_written_is_left_on_a_full_disk(
    command: list[str], tmp_path: Path, full_disk: None, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = [word.replace("OUT", str(tmp_path / "out")) for word in command[1:]]
    assert run([command[0], MODEL, *rest]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_an_online_run_shows_the_record_that_it_cannot_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["online", MODEL, "--episodes", "5", "--sets", "tied", "--json", "-o", str(tmp_path / "out")]

    def fails(self: object, record: object) -> None:
        raise InputError("cannot write records.jsonl: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("tightrope.learning.online.run.Journal.append", fails)
        assert run(command) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out)["update"] == 0 and "No space left" in printed.err
    assert run(command) == 0


def test_a_result_and_its_report_on_a_full_disk(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The earlier result stays as it was."""
    out = tmp_path / "out"
    learn = ["learn", MODEL, "--data", str(data), "--sets", "tied", "-o", str(out)]
    assert run(learn) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(FULL))
    capsys.readouterr()
    for command in (learn, ["report", str(out)], ["report", str(out), "--figures", str(tmp_path / "f")]):
        assert run(command) == 2
        assert "No space left on device" in capsys.readouterr().err
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert Manifest("learn") != read_manifest(out)
