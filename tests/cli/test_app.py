"""The face of the command line: exit codes, what goes to which stream, and no traceback ever.

Also of `cli/demo.py` and `cli/late.py`.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import pytest
import typer

import tightrope
from tightrope.cli import app, commands, late, output
from tightrope.cli.commands import COMMANDS, Command
from tightrope.cli.everywhere import take_common
from tightrope.errors import CannotCertify, InputError, Location

Register = Callable[[Callable[..., None]], None]

HEAVY = ("numpy", "numba", "scipy", "pyarrow", "matplotlib", "highspy", "lark", "rich.progress")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Iterator[Register]:
    """Register a function as the command `trial`."""

    def register(function: Callable[..., None]) -> None:
        monkeypatch.setattr(commands.Command, "load", lambda self: function)
        monkeypatch.setattr(app, "COMMANDS", (Command("trial", "A command of the tests."),))
        app.load_group.cache_clear()

    yield register
    app.load_group.cache_clear()


def loaded_modules(code: str) -> set[str]:
    """The modules a fresh Python has imported after running `code`."""
    program = f"{code}\nimport sys\nsys.stderr.write('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split("\n"))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    modules = loaded_modules(f"from tightrope.cli.app import run\nassert run({arguments!r}) == 0")
    assert "tightrope.cli.app" in modules
    assert not modules.intersection(HEAVY)
    assert {name for name in modules if name.startswith("tightrope.cli.")} == {
        "tightrope.cli.app",
        "tightrope.cli.commands",
        "tightrope.cli.flags",
    }


def test_modules_that_are_loaded_late_are_there() -> None:
    names = re.findall(r"import (\w+) as", Path(late.__file__).with_suffix(".pyi").read_text())
    assert len(names) == len(set(names)) > 40
    assert all(getattr(late, name).__name__.endswith(f".{name}") for name in names)
    with pytest.raises(AttributeError, match="no module is called 'nothing'"):
        late.__getattr__("nothing")


def test_importing_the_package_imports_nothing_heavy() -> None:
    modules = loaded_modules("import tightrope\ntightrope.InputError")
    assert "tightrope.errors" in modules
    assert not modules.intersection((*HEAVY, "typer", "rich"))


def test_help_lists_every_command_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for entry in COMMANDS:
        assert f"{entry.name} {entry.summary}" in out.replace(" │ │ ", " ")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--version"]) == 0
    assert capsys.readouterr() == (f"tightrope {tightrope.__version__}\n", "")


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([name, "--help"]) == 0
    captured = capsys.readouterr()
    assert f"Usage: tightrope {name}" in captured.out
    assert f"tightrope {name} " in captured.out.split("Example", 1)[1]
    assert captured.err == ""
    assert max(len(line) for line in captured.out.splitlines()) <= 80


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InputError("n is missing", hint="give n=5"), 2, "error: n is missing\nhint: give n=5\n"),
        (
            InputError("no such label", Location("m.prism", 3, 7, 'label "a" = b;')),
            2,
            'error: m.prism:3:7: no such label\n    label "a" = b;\n          ^\n',
        ),
        (CannotCertify("the region is empty"), 1, "error: the region is empty\n"),
        (MemoryError(), 1, "error: out of memory\nhint: a smaller instance of the model may fit\n"),
        (PermissionError(13, "Permission denied", "a.csv"), 2, "error: a.csv: Permission denied\n"),
        (OSError(28, "No space left on device"), 2, "error: No space left on device\n"),
        (typer.Abort(), 130, "interrupted\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_failures_become_words_and_exit_codes(
    error: BaseException,
    code: int,
    text: str,
    command: Register,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise error

    command(fail)
    assert app.run(["trial"]) == code
    assert capsys.readouterr() == ("", text)


def test_an_internal_error_says_how_to_report_it(
    command: Register,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("by nought")

    command(fail)
    monkeypatch.delenv("TIGHTROPE_DEBUG", raising=False)
    assert app.run(["trial"]) == 70
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("internal error: ZeroDivisionError: by nought\n")
    assert "TIGHTROPE_DEBUG=1" in captured.err
    assert "Traceback" not in captured.err

    monkeypatch.setenv("TIGHTROPE_DEBUG", "1")
    assert app.run(["trial"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_warnings_go_to_stderr_in_plain_words(command: Register, capsys: pytest.CaptureFixture[str]) -> None:
    def caution() -> None:
        warnings.warn("2 states are deadlocks", stacklevel=1)
        typer.echo("answer")

    command(caution)
    assert app.run(["trial"]) == 0
    assert capsys.readouterr() == ("answer\n", "warning: 2 states are deadlocks\n")


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_command_may_choose_its_exit_code(code: int, command: Register) -> None:
    def leave() -> None:
        raise typer.Exit(code)

    command(leave)
    assert app.run(["trial"]) == code


USAGE_ERRORS = [
    (["nosuch"], "No such command 'nosuch'"),
    (["trail"], "Did you mean 'trial'?"),
    (["--nosuch"], "No such option: --nosuch"),
    (["--versoin"], "--version"),
    (["trial"], "Missing argument 'file'"),
    (["trial", "a", "b"], "unexpected extra argument"),
    (["trial", "a", "--nosuch"], "No such option: --nosuch"),
    (["trial", "a", "--nosuch=3"], "No such option: --nosuch"),
    (["trial", "a", "--episodes"], "'--episodes' requires an argument"),
    (["trial", "a", "--episodes", "many"], "Invalid value for '--episodes': it must be an integer"),
    (["trial", "a", "--episodes", "0"], "'--episodes': it must be greater than or equal to 1"),
    (["trial", "a", "--episodes", "1.5"], "Invalid value for '--episodes': it must be an integer"),
    (["trial", "a", "--delta", "little"], "Invalid value for '--delta': it must be a number"),
    (["trial", "a", "--json=yes"], "'--json' does not take a value"),
    (["trial", "a", "-q"], "No such option: -q"),
]


@pytest.mark.parametrize(("arguments", "text"), USAGE_ERRORS)
def test_wrong_options_exit_2(
    arguments: list[str],
    text: str,
    command: Register,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def trial(
        file: str,
        episodes: Annotated[int, typer.Option(min=1)] = 1,
        delta: float = 0.1,
        json: Annotated[bool, typer.Option("--json")] = False,
    ) -> None:
        """Does nothing."""

    command(trial)
    assert app.run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert text in captured.err
    assert "--help' lists what it accepts" in captured.err


def test_a_closed_pipe_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "tightrope", "--help"], stdout=closed, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (141, "")


def test_main_leaves_with_the_exit_code() -> None:
    done = subprocess.run([sys.executable, "-m", "tightrope", "nosuch"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: No such command 'nosuch'")


def _option(flag: str) -> SimpleNamespace:
    """An option that takes one value, as the command line knows it."""
    return SimpleNamespace(
        param_type_name="option", is_flag=False, opts=[flag], secondary_opts=[], name=flag[2:], multiple=False
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "1e-3", "--precision", "1e-9"], "--precision is given twice and takes one value"),
    ],
)
def test_an_option_given_twice_is_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last one would win, and the other one be lost without a word."""
    assert app.run(["check", "nowhere.prism", "--prop", "P=? [ F done ]", *options]) == 2
    assert f"error: {message}" in capsys.readouterr().err
    lists = ["--param", "p=0.1:0.3", "--param", "q=0.1:0.5", "--at", "p=0.1", "--json", "--at=q=0.2"]
    flags = ("--param", "--at", "--precision", "--outcomes", "--breakdown", "--tree", "--sets")
    command = SimpleNamespace(params=[_option(flag) for flag in flags])
    assert take_common(command, "check", lists) == ["--param", "p=0.1:0.3,q=0.1:0.5", "--at", "p=0.1,q=0.2"]
    old = ["--return-range", "0,5", "--breakdown", "--threshold=0.9", "--tree"]
    assert take_common(command, "learn", old) == [
        *("--outcomes", "range=0,5", "--breakdown", "all:0.9", "--tree", "1%")
    ]
    noted = [
        "--return-range is now written --outcomes range=0,5",
        "--threshold is now written --breakdown all:0.9",
    ]
    assert capsys.readouterr().err.splitlines() == [f"note: {line}" for line in noted]
    within = [
        (["--intersect"], "parameter"),
        (["--intersect", "--sets", "all"], "all"),
        (["--sets=x", "--intersect"], "x"),
    ]
    for words, kind in within:
        assert take_common(command, "learn", words) == ["--sets", f"{kind}+tied"]
        assert capsys.readouterr().err == f"note: --intersect is now written --sets {kind}+tied\n"
    assert app.run(["check", "nowhere.prism", "-fair"]) == 2
    assert "fairness (-fair) is not supported" in capsys.readouterr().err
    twice = ["--param", "p=0.5:0.6", "--param", "q=0:0"]
    assert app.run(["info", "bench:betting(5)", *twice]) == 0
    assert "0.5<=p<=0.6, 0<=q<=0" in capsys.readouterr().out
    assert app.run(["check", "nowhere.prism", "--const", "n=1", "--const", "k=2"]) == 2
    assert "nowhere.prism" in capsys.readouterr().err


@pytest.mark.parametrize("numeric", [False, True])
def test_tables_keep_within_80_columns_and_show_every_cell(numeric: bool) -> None:
    draw = random.Random(4)
    words = ["", "θ ≤ 1", "[0, 1]", "日本", "e\u0301", "x" * 25, "one two three " * 6, "−∞"]
    for _ in range(60):
        columns = ["name", "value", "n"][: draw.randint(1, 3)]
        rows = [[draw.choice(words) for _ in columns] for _ in range(draw.randint(0, 4))]
        lines = output.table_lines(output.Table(columns, rows, "T", numeric), verbose=True)
        assert lines[0] == "T" and max(map(len, lines)) <= 82
        text = "".join("".join(lines).split())
        assert all(text.count(word) for row in rows for cell in row for word in cell.split())
    table = output.Table(("n",), [(str(n),) for n in range(78)])
    assert output.table_lines(table, verbose=False)[-1] == "  66 more (--verbose)"


def test_an_answer_has_ten_lines_and_is_whole_with_verbose() -> None:
    rows = [("row", f"{n}: " + "word " * 40) for n in range(9)]
    brief = output.render("FIRST", output.Content(rows), verbose=False).splitlines()
    assert len(brief) <= 10 and max(map(len, brief)) <= 80
    assert brief[-1].strip() == "more       5 rows (--verbose)" and brief[2].endswith(" …")
    whole = output.render("FIRST", output.Content(rows), verbose=True)
    assert whole.count("word") == 360
    command = ("next", "tightrope learn " + "x" * 90)
    assert output.render("F", output.Content([command]), verbose=False).endswith("x" * 90)
