"""Plots and reports. `plotting`, and with it matplotlib, is loaded when the first picture is drawn."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tightrope.report import plotting as plotting


def __getattr__(name: str) -> object:
    if name != "plotting":
        raise AttributeError(name)
    return import_module("tightrope.report.plotting")
