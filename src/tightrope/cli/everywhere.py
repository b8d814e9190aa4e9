"""Options of every command (`COMMON`), a file of settings, and `-o -` for standard output.

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
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from tightrope.cli import output
from tightrope.errors import InputError, Location, suggest

SETTINGS = Path("tightrope.toml")
KEYS = {
    "model": "model",
    "property": "prop",
    "const": "const",
    "param": "param",
    "domain": "domain",
    "data": "data",
    "reading": "reading",
    "delta": "delta",
}
"""What a file may set, and the field of a command that this is."""

STREAMED = {"export": ".drn", "sample": ".csv", "draft": ".prism", "report": ".html"}
"""The commands that write one file, and its format where it goes to standard output."""

COMMON = {
    "--json": "one JSON object on stdout, nothing else",
    "--quiet": "the answer alone",
    "--verbose": "technical notes as well",
    "--accept-nominal": "exit code 0 for nominal results, too",
    "--overwrite": "replace files that tightrope did not write, too; directories stay protected",
}
"""Switches of every command, and what they do."""

HELP = (
    f"Every command takes {', '.join(f'{flag} ({what})' for flag, what in COMMON.items())}, --config FILE "
    "and --no-config (settings; tightrope.toml where there is one)."
)


def take_common(command: Any, name: str, arguments: Sequence[str]) -> list[str]:
    """The arguments without those that every command takes, and with what a file of settings adds."""
    rest: list[str] = []
    tokens = iter(arguments)
    file: Path | None = SETTINGS if SETTINGS.is_file() else None
    flags: set[str] = set()
    declared = {spelling for each in command.params for spelling in each.opts}
    for token in tokens:
        if token == "--":
            rest += [token, *tokens]
        elif token in COMMON:
            flags.add(token[2:].replace("-", "_"))
            rest += [token] if token in declared else []
        elif token == "--no-config":
            file = None
        elif token == "--config" or token.startswith("--config="):
            file = Path(token.partition("=")[2] or next(tokens, ""))
        else:
            rest.append(token)
    output.set_common(arguments, flags)
    return rest if file is None else _add_settings(command, name, rest, file)


def read_settings(file: Path) -> dict[str, Any]:
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


def _add_settings(command: Any, name: str, arguments: list[str], file: Path) -> list[str]:
    settings = read_settings(file)
    if "--help" in arguments or "-h" in arguments:
        return arguments
    options = {each.name: each for each in command.params if each.param_type_name == "option"}
    positional = [each.name for each in command.params if each.param_type_name == "argument"]
    places, given = _places(arguments, options)
    added: list[str] = []
    used: list[str] = []
    after = arguments.index(name) + 1
    if positional[:1] == ["model"] and "model" in settings:
        if len(places) > 1 and arguments[places[1]] != str(settings["model"]):
            output.say(f"settings of {file}: not used, they are about {settings['model']}")
            return arguments
        if len(places) == 1:
            arguments = [*arguments[:after], str(settings["model"]), *arguments[after:]]
            used.append("model")
    for key, field in KEYS.items():
        if key in settings and field in options and field not in given:
            added += [max(options[field].opts, key=len), str(settings[key])]
            used.append(key)
    if used:
        output.say(f"settings of {file}: {', '.join(used)}")
    after += "model" in used
    return [*arguments[:after], *added, *arguments[after:]]


def _places(arguments: Sequence[str], options: dict[str, Any]) -> tuple[list[int], set[str]]:
    """Where arguments stand that are no options, the command itself first, and the options that are given."""
    spelt = {spelling: each for each in options.values() for spelling in (*each.opts, *each.secondary_opts)}
    places: list[int] = []
    given: set[str] = set()
    skip = False
    for place, token in enumerate(arguments):
        if skip:
            skip = False
        elif token.startswith("-") and token != "-":
            spelling = token.partition("=")[0] if token.startswith("--") else token[:2]
            if (option := spelt.get(spelling)) is not None:
                given.add(option.name)
                alone = token == spelling
                skip = alone and not getattr(option, "is_flag", False)
        else:
            places.append(place)
    return places, given


@contextmanager
def streaming(name: str, arguments: Sequence[str]) -> Iterator[list[str]]:
    """The arguments with a file in place of `-o -`, which is copied to standard output in the end."""
    places = [
        i for i, word in enumerate(arguments[:-1]) if word in ("-o", "--output") and arguments[i + 1] == "-"
    ]
    if not places:
        yield list(arguments)
        return
    if name not in STREAMED:
        raise InputError(
            f"-o -: what {name} writes is no single file",
            hint=f"give a directory, or let 'tightrope {name} … --json' print the result",
        )
    import shutil
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
