"""The reference of the command line, written from the app itself: every command and option with its help."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, get_args

from typer.main import get_command

from tightrope.cli.app import build_app
from tightrope.cli.commands import COMMANDS


def command_reference() -> str:
    """One section per command, in the order of `tightrope --help`."""
    return "\n\n".join(_section(command.name) for command in COMMANDS)


def _section(name: str) -> str:
    group: Any = get_command(build_app(name))
    command = group.commands[name]
    arguments = [each for each in command.params if not each.opts[0].startswith("-")]
    options = [each for each in command.params if each.opts[0].startswith("-")]
    usage = " ".join(
        ["tightrope", name, *(_placeholder(each) for each in arguments), *(["[OPTIONS]"] * bool(options))]
    )
    parts = [f"## {name}", f"```text\n{usage}\n```", *_paragraphs(command.help)]
    rows = [*(_argument_row(each) for each in arguments), *(_option_row(each) for each in options)]
    if rows:
        parts.append("\n".join(["| option | |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _paragraphs(text: str) -> list[str]:
    """The help, its examples as code."""
    found = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("Example: "):
            found.append(f"```sh\n{paragraph.removeprefix('Example: ')}\n```")
        else:
            found.append(re.sub(r"(?<![\w-])(--[a-z][\w-]*)", r"`\1`", _plain(paragraph)))
    return found


def _placeholder(parameter: Any) -> str:
    word = parameter.metavar or parameter.name.upper()
    word = f"{word}..." if parameter.nargs != 1 and not word.endswith("...") else word
    return word if parameter.required else f"[{word}]"


def _argument_row(parameter: Any) -> str:
    return f"| `{_cell(_placeholder(parameter))}` | {_cell(_plain(parameter.help or ''))} |"


def _option_row(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    choices = _choices(parameter)
    if choices:
        names += " " + " or ".join(f"`{choice}`" for choice in choices)
    elif parameter.metavar:
        names += f" `{_cell(parameter.metavar)}`"
    elif not getattr(parameter, "is_flag", False):
        names += f" `{parameter.name.upper()}`"
    words = [_plain(parameter.help or "")]
    if parameter.required:
        words.append("**Required.**")
    if parameter.multiple and "repeat" not in words[0]:
        words.append("May be repeated.")
    default = getattr(parameter.default, "value", parameter.default)
    if parameter.show_default and default not in (None, False, "", (), []):
        words.append(f"Default: `{default}`.")
    return f"| {names} | {_cell(' '.join(words))} |"


def _choices(parameter: Any) -> list[str]:
    """The words an option may be, where it is one of a few."""
    kind = parameter.type_descriptor.annotation
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, Enum):
            return [str(member.value) for member in each]
    return []


def _plain(text: str) -> str:
    """Text in which Markdown finds nothing to do; the terminal's own escapes go."""
    return re.sub(r"([*_<\[\]])", r"\\\1", text.replace("\\[", "["))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
