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
    Command("info", "Describe a model: size, parameters, labels, rewards."),
    Command("check", "Compute certified bounds on the value of a model."),
    Command("questions", "Show which commands support which properties.", "tightrope.cli.info"),
    Command("verify", "Re-check a certificate independently."),
    Command("sample", "Simulate a model and write the data."),
    Command("data", "Describe a log and how it is imported."),
    Command("draft", "Draft a model from a log."),
    Command("learn", "Learn a robust policy and its certified interval."),
    Command("compare", "Bound the differences between policies and a baseline."),
    Command("improve", "Find the largest certified improvement over a baseline.", "tightrope.cli.compare"),
    Command("shield", "Let any agent act within a guaranteed bound."),
    Command("doctor", "Test a model against a log and propose fixes."),
    Command("plan", "Forecast how much more data is needed, and design it."),
    Command("online", "Learn a robust policy while collecting data."),
    Command("watch", "Test whether a model still fits, and report changes."),
    Command("report", "Write a result as one HTML page, and as figures."),
    Command(
        "bench",
        "The paper's tables, run here, beside its figures.",
        module="tightrope_campaigns.command",
        extra="campaigns",
    ),
    Command("export", "Write a model in another format."),
    Command("warmup", "Compile all kernels in advance."),
    Command("demo", "Run the rover example from model to report."),
)
