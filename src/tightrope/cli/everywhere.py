"""From arguments as they are typed to those that a command takes: one pass for all commands.

Options of every command (`COMMON`), old options (`MOVED`), lists that are given several times (`JOINED`), a
file of settings, and `-o -` for standard output.

`tightrope.toml` in the working directory sets options:

    model = "pump.prism"
    property = 'Pmax=? [ F "repaired" ]'
    reading = "log.reading.toml"
    delta = 0.01

The command line takes precedence; a command ignores keys it does not use. If another MODEL is given, the file
is not used. The first line on stderr names the file and its use. `--config FILE`, `--no-config` override it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tightrope.cli import output
from tightrope.cli.flags import BARE, DEFAULTS, MOVED
from tightrope.errors import InputError, Location, suggest

SETTINGS = Path("tightrope.toml")
_AS_FIELDS = ("const", "param", "domain", "data", "reading", "delta")
KEYS = {"model": "model", "property": "prop", **{name: name for name in _AS_FIELDS}}
"""What a file may set, and the field of a command that this is."""

STREAMED = {"export": ".drn", "sample": ".csv", "draft": ".prism", "report": ".html"}
"""The commands that write one file, and its format where it goes to standard output."""

COMMON = {
    "--json": "one JSON object on stdout",
    "--quiet": "the answer alone",
    "--markdown": "the answer as Markdown",
    "--verbose": "technical notes",
    "--accept-nominal": "exit code 0 for nominal results",
    "--overwrite": "replace files that tightrope did not write (directories stay protected)",
}
"""Switches of every command, and what they do."""

JOINED = ("at", "param", "const")
"""Options that are lists: `--param p=0:1 --param q=0:1` is `--param p=0:1,q=0:1`."""

CONFIG = SimpleNamespace(name="config", is_flag=False)
"""What `--config` is, which no command declares."""

HELP = (
    f"Switches of every command: {'; '.join(f'{flag}, {what}' for flag, what in COMMON.items())}; "
    "--config FILE and --no-config, settings (tightrope.toml by default)."
)


@dataclass(frozen=True)
class Typed:
    """An argument, or an option of the command (`name` is its field) with its `value`, as it is typed."""

    typed: tuple[str, ...]
    option: Any = None
    value: str = ""

    @property
    def is_place(self) -> bool:
        """Whether it is no option."""
        return self.option is None and (self.typed[0] == "-" or not self.typed[0].startswith("-"))

    @property
    def name(self) -> str:
        """The field of the option; empty where it is none."""
        return "" if self.option is None else str(self.option.name)


def words_of(command: Any, arguments: Sequence[str]) -> list[Typed]:
    """The arguments, each option with its value; old options as they are written now, with a note."""
    options = {spelling: each for each in command.params for spelling in (*each.opts, *each.secondary_opts)}
    options["--config"] = CONFIG
    words: list[Typed] = []
    parts: dict[str, dict[str, str]] = {}
    tokens = list(arguments)
    while tokens and tokens[0] != "--":
        token = tokens.pop(0)
        long = token.startswith("--")
        spelling, glued, value = token.partition("=") if long else (token[:2], token[2:], token[2:])
        moved, form = MOVED.get(spelling, ("", ""))
        option = options.get(spelling)
        if option is None and moved in options and (glued or tokens or "{}" not in form):
            value = value if glued or "{}" not in form else tokens.pop(0)
            if moved in DEFAULTS:
                text = form.removeprefix(DEFAULTS[moved]).format(value)
                part = parts.setdefault(moved, {})
                part["name" if form == "{}" else "after"] = text
                part["old"] = f"{part.get('old', '')} {spelling}"
            else:
                words.append(Typed((moved, form.format(value)), options[moved], form.format(value)))
                output.say(f"note: {spelling} is now written {moved} {form.format(value)}")
        elif token in BARE and option is not None and (not tokens or tokens[0].startswith("-")):
            parts.setdefault(token, {})
        elif option is None or getattr(option, "is_flag", False):
            words.append(Typed((token,), option))
        else:
            after = [tokens.pop(0)] if tokens and not glued else []
            words.append(Typed((token, *after), option, value or "".join(after)))
    for name, part in parts.items():
        typed = [word for word in words if word.option is options[name] and "name" not in part][:1]
        words = [word for word in words if word not in typed]
        value = part.get("name", typed[0].value if typed else DEFAULTS[name]) + part.get("after", "")
        words.append(Typed((name, value), options[name], value))
        for spelling in part.get("old", "").split():
            output.say(f"note: {spelling} is now written {name} {value}")
    return [*words, *([Typed(tuple(tokens))] if tokens else [])]


def take_common(command: object, name: str, arguments: Sequence[str]) -> list[str]:
    """The arguments without those that every command takes, and with what a file of settings adds."""
    if any(word.startswith("-") and word.lstrip("-") == "fair" for word in arguments):
        raise InputError(
            "fairness (-fair) is not supported: values are those over all policies, fair or not",
            hint="state fairness in the property: Pmin=? [ F a || G F b ]",
        )
    file: Path | None = SETTINGS if SETTINGS.is_file() else None
    output.set_common(arguments, {word[2:].replace("-", "_") for word in arguments if word in COMMON})
    rest: list[Typed] = []
    for word in words_of(command, arguments):
        if word.typed == ("--no-config",):
            file = None
        elif word.option is CONFIG:
            file = Path(word.value)
        elif word.option is not None or word.typed[0] not in COMMON:
            rest.append(word)
    words = rest if file is None else _with_settings(command, name, rest, file)
    return [token for word in _joined(name, words) for token in word.typed]


def _joined(name: str, words: Sequence[Typed]) -> list[Typed]:
    """Join the values of lists that are given several times; refuse other options that are given twice."""
    joined: dict[object, Typed] = {}
    for place, word in enumerate(words):
        is_single = word.value != "" and not getattr(word.option, "multiple", False)
        key: object = word.name if is_single else place
        if (before := joined.get(key)) is not None:
            flag = max(word.option.opts, key=len)
            if word.name not in JOINED:
                hint = f"'tightrope {name} --help' lists what it accepts"
                raise InputError(f"{flag} is given twice and takes one value", hint=hint)
            value = f"{before.value},{word.value}"
            word = Typed((flag, value), word.option, value)
        joined[key] = word
    return list(joined.values())


def read_settings(file: Path) -> dict[str, object]:
    """What a file sets; what it may not set is refused."""
    import tomllib

    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}", hint="--config names a file of settings") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"this is not TOML: {error}", Location(str(file))) from None
    for key, value in settings.items():
        if key not in KEYS:
            raise InputError(f"there is no setting {key!r}", Location(str(file)), suggest(key, list(KEYS)))
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(f"{key} is {value!r}, neither a text nor a number", Location(str(file)))
        if key == "model" and str(value).startswith("-"):
            raise InputError(f"model is {value!r}, which is an option, not a model", Location(str(file)))
    return settings


def _with_settings(command: Any, name: str, words: list[Typed], file: Path) -> list[Typed]:
    settings, typed = read_settings(file), [word.typed[0] for word in words]
    if "--help" in typed or "-h" in typed:
        return words
    options = {each.name: each for each in command.params if each.param_type_name == "option"}
    takes_model = next((each.name for each in command.params if each.param_type_name == "argument"), "")
    places = [word for word in words if word.is_place]
    used, added = list[str](), list[Typed]()
    if takes_model == "model" and "model" in settings:
        model = str(settings["model"])
        if len(places) > 1 and places[1].typed[0] != model:
            output.say(f"settings of {file}: not used, they are about {model}")
            return words
        if len(places) == 1:
            used, added = ["model"], [Typed((model,))]
    given = {word.name for word in words}
    for key, field in KEYS.items():
        if key in settings and field in options and field not in given:
            option, value = options[field], str(settings[key])
            added.append(Typed((max(option.opts, key=len), value), option, value))
            used.append(key)
    if used:
        output.say(f"settings of {file}: {', '.join(used)}")
    after = typed.index(name) + 1
    return [*words[:after], *added, *words[after:]]


@contextmanager
def streaming(name: str, arguments: Sequence[str]) -> Iterator[list[str]]:
    """The arguments with a file in place of `-o -`, which is copied to standard output in the end."""
    places = [i for i, pair in enumerate(pairwise(arguments)) if pair in (("-o", "-"), ("--output", "-"))]
    if not places:
        yield list(arguments)
        return
    if name not in STREAMED:
        raise InputError(
            f"-o -: what {name} writes is no single file",
            hint=f"give a directory, or let 'tightrope {name} … --json' print the result",
        )
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tightrope-") as folder:
        file = Path(folder) / f"{name}{STREAMED[name]}"
        replaced = list(arguments)
        replaced[places[0] + 1] = str(file)
        with redirect_stdout(sys.stderr):
            yield replaced
        if file.exists():
            with file.open(encoding="utf-8") as stream:
                shutil.copyfileobj(stream, sys.stdout)


def completed_command() -> str | None:
    """The command whose options a shell asks for, where it does."""
    words = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    return next((word for word in words.split()[1:] if not word.startswith("-")), None)
