"""The commands of the command line, in the order of `tightrope --help`.

A command `some-name` is the function `some_name` of the module `cli/some_name.py`, or of a separately
installed package; its docstring is its help. The module is imported only when the command runs. To add one:
write that file and add a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from tightrope.errors import InputError


@dataclass(frozen=True)
class Command:
    """A name and the one line that the list of commands shows for it."""

    name: str
    summary: str
    module: str | None = None
    """Where it is not in `tightrope.cli`."""

    extra: str | None = None
    """The extra of tightrope that installs this module."""

    def load(self) -> Callable[..., None]:
        """The function behind the command; imports its module."""
        identifier = self.name.replace("-", "_")
        module = self.module or f"tightrope.cli.{identifier}"
        try:
            return cast(Callable[..., None], getattr(import_module(module), identifier))
        except ModuleNotFoundError as error:
            if self.extra is None or error.name != module.partition(".")[0]:
                raise
            raise InputError(
                f"the command {self.name} is not installed",
                hint=f"pip install 'tightrope[{self.extra}]', or pip install ./{self.extra} in a clone",
            ) from None


COMMANDS = (
    Command("info", "Build a model and say what is in it."),
    Command("check", "Certified bounds on the value of a model."),
    Command("questions", "Which commands support which properties."),
    Command("verify", "Re-check a certificate, independently."),
    Command("sample", "Simulate a model at a point and write what was seen."),
    Command("data", "How a log is read for a model, and what it holds."),
    Command("draft", "A model from a log, every assumption a comment."),
    Command("learn", "A robust policy and its certified interval from data."),
    Command("compare", "How much better a policy is than a baseline, for certain."),
    Command("improve", "The policy that surely improves most on a baseline."),
    Command("doctor", "Test a model against a log and propose fixes."),
    Command("plan", "How much more data a gap takes, and how to collect them."),
    Command("online", "Explore, certify a robust policy, repeat."),
    Command("watch", "Whether a model still fits the data, and what has changed."),
    Command("report", "A result as one page that opens offline, and as figures."),
    Command(
        "bench",
        "The paper's tables, run here, beside its figures.",
        module="tightrope_campaigns.command",
        extra="campaigns",
    ),
    Command("export", "Write a model in another format."),
    Command("warmup", "Compile all kernels ahead, so that no first run waits."),
    Command("demo", "The rover story end to end on an embedded model."),
)
