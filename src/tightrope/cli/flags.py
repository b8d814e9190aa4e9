"""The words of the library in those of the command line.

Messages of the library name Python arguments in backticks: `delta`, `sets="tied"`, `fallback=False`. Here
they become the options that a user of the command line can type: --delta, --sets tied, --no-fallback.
Whatever else stands in backticks is left as it is.
"""

from __future__ import annotations

import re

RENAMED = {
    "params": "--param",
    "property": "--prop",
    "maps": "--map",
    "seconds": "--time-limit",
    "source": "MODEL",
    "problem": "MODEL",
    "model": "MODEL",
}
"""Arguments whose options are called otherwise."""

SAME = (
    *("const", "domain", "at", "discount", "terminal_reward", "delta", "region", "sets", "interval"),
    *(
        "budget",
        "ellipsoid",
        "intersect",
        "policy",
        "precision",
        "assume_support",
        "coupled_gap",
        "device",
        "threads",
    ),
    *("data", "states", "columns", "design", "planned_episodes", "skip_invalid", "format", "engine"),
    *("scheduler", "iterations"),
)
"""Arguments whose options have the same name."""

_ARGUMENT = re.compile(r"`(?P<name>[a-z_]+)(?:=(?P<value>[^`]*))?`")


def as_flags(text: str) -> str:
    """The text with options in place of arguments.

    >>> as_flags('leave `region` out, or choose `sets="tied"`; leave `fallback=False` out')
    'leave --region out, or choose --sets tied; leave --no-fallback out'
    """
    return _ARGUMENT.sub(_option, text)


def _option(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if name == "fallback":
        return "--no-fallback"
    if name in RENAMED:
        flag = RENAMED[name]
    elif name in SAME:
        flag = f"--{name.replace('_', '-')}"
    else:
        return match[0]
    if value is None or value == "True":
        return flag
    plain = value.strip("\"'")
    if value.startswith("{"):  # a mapping: {"p": (0.1, 0.9)} is p=0.1:0.9
        plain = re.sub(r'["{} ]', "", value).replace(":", "=").replace("(", "").replace(")", "")
        plain = re.sub(r"=([^,=]+),([^,=]+)", r"=\1:\2", plain)
    return f"{flag} {plain}"
