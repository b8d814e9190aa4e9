"""Translate Python arguments in messages of the library to options of the command line.

In backticks `delta`, `sets="tied"`, `fallback=False` become --delta, --sets tied, --no-fallback. Other text
in backticks stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tightrope.errors import suggest

NAMES = """
    above actions allow_loss alpha assume_support at at_most avoid breakdown budget chosen_at columns const
    convert_obs cost cost_range costs coupled_gap data delta design device discount domain
    drop_duplicates ellipsoid ends engine env exact export gap gaps ignored interval iterations
    known ltl_translator misfit on_drift optimality order outcomes overwrite planned_episodes plot policy
    precision prior reading refuted region select_by select_on cluster
    scheduler sets since skip_invalid states terminal_reward threads to unit until_now watched_until window
    variables within_cap
"""
"""Arguments whose options have the same name."""

OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in NAMES.split()},
    "behaviour": "--outcomes behaviour=",
    "cost_sd": "--cost-range sd=",
    "fallback": "--no-fallback",
    "format": "--data-format",
    "intersect": "--sets parameter+tied",
    "maps": "--map",
    "model": "MODEL",
    "params": "--param",
    "problem": "MODEL",
    "property": "--prop",
    "return_range": "--outcomes range=",
    "seconds": "--time-limit",
    "source": "MODEL",
    "threshold": "--breakdown all:",
}
"""An option, or the part of its value before what is given."""

MOVED = {
    "--behaviour": ("--outcomes", "behaviour={}"),
    "--breakdown-of": ("--breakdown", "{}"),
    "--cost-sd": ("--cost-range", "sd={}"),
    "--effort": ("--sets", "{}"),
    "--intersect": ("--sets", "parameter+tied"),
    "--loss": ("--tree", "{}"),
    "--return-range": ("--outcomes", "range={}"),
    "--threshold": ("--breakdown", "all:{}"),
}
"""Other options that are read, and how the same is written now."""

BARE = {"--breakdown": "all", "--tree": "1%"}
"""Options whose value may be left out, and the value that is then meant."""

DEFAULTS = {**BARE, "--sets": "parameter"}
"""Options to whose value old ones add something, and the value where it is not given."""


def likely_option(typed: str, options: Sequence[str]) -> list[str]:
    """A hint at the option that a wrong one stands for, by its name or that of its argument in Python.

    >>> likely_option("propertiy", ["--prop", "--policy"]), likely_option("foo", ["--prop"])
    (['did you mean --prop?'], [])
    """
    names = [name for name, option in OPTIONS.items() if option in (*options, "MODEL")]
    names += [option[2:].replace("-", "_") for option in options]
    hint = suggest(typed.replace("-", "_"), names)
    flags = as_flags(hint).replace(" `", " --").replace("`", "").replace("_", "-")
    return [] if hint.startswith("its") else [flags]


_ARGUMENT = re.compile(r"`(?P<name>[a-z_]+)(?:=(?P<value>[^`]*))?`")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_PLAIN = re.compile(r"[\w.,:/…-]+")
_ENTRY = re.compile(r'"(?P<key>[^"]*)": (?:\((?P<low>[^,]*), (?P<high>[^)]*)\)|(?P<value>[^,}]*))')


def as_flags(text: str) -> str:
    """The text with options in place of arguments.

    >>> as_flags('leave `region` out, or choose `sets="tied"`; leave `fallback=False` out')
    'leave --region out, or choose --sets tied; leave --no-fallback out'
    >>> as_flags('`const={"n": 50}`, `params={"p": (0.1, 0.9)}`, `maps=\\'wear: *10\\'`, `cost_range=(0, 5)`')
    "--const n=50, --param p=0.1:0.9, --map 'wear: *10', --cost-range 0,5"
    """
    return _ARGUMENT.sub(_option, text)


def _option(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if name not in OPTIONS:
        return match[0]
    if value in (None, "True", "False"):
        return OPTIONS[name].rstrip("=:")
    if value.startswith("["):  # its own option for each
        return " ".join(f"{OPTIONS[name]} {entry}" for entry in _QUOTED.findall(value))
    return f"{OPTIONS[name]}{'' if OPTIONS[name][-1] in '=:' else ' '}{_quote(value)}"


def _quote(value: str) -> str:
    """A value as it is typed in a shell."""
    if value.startswith("{"):
        return ",".join(
            f"{entry['key']}={entry['value'] if entry['low'] is None else entry['low'] + ':' + entry['high']}"
            for entry in _ENTRY.finditer(value)
        )
    if value.startswith("("):
        return value[1:-1].replace(" ", "")
    if value[:1] in "\"'" and _PLAIN.fullmatch(value[1:-1]):
        return value[1:-1]
    return value
