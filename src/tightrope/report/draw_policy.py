"""A policy as a heat map over two state variables, drawn with matplotlib."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from tightrope.errors import InputError
from tightrope.numerics.arrays import FloatArray
from tightrope.report.policy_map import PolicyMap, Variable
from tightrope.report.style import ACTIONS, legend_below, name_axes, plain


def draw_policy(
    policies: PolicyMap,
    axes: Axes,
    x: str | None = None,
    y: str | None = None,
    name: str = "robust",
) -> None:
    """Each cell in the colour of the action taken most often in it; paler where its states differ.

    Where the variables are not named, those of `PolicyMap.axes` are taken and the others held as
    `PolicyMap.start` says, which the title of the legend tells.
    """
    if name not in policies.policies:
        raise InputError(f"there is no policy {name!r}", hint=f"there are {', '.join(policies.policies)}")
    first, second = policies.axes
    across = _find_named(policies, x) if x is not None else policies.variables[first]
    up = _find_named(policies, y) if y is not None else policies.variables[second]
    held = policies.start() if x is None and y is None else {}
    rows = np.ones(policies.states, dtype=np.bool_)
    for i, at in held.items():
        rows &= policies.variables[i].column == at
    action = policies.policies[name][rows]
    counts = np.zeros((len(up.labels), len(across.labels), len(policies.actions)))
    np.add.at(counts, (up.column[rows], across.column[rows], action), 1.0)
    axes.imshow(_image(counts), origin="lower", aspect="auto", interpolation="nearest")
    axes.grid(False)
    _ticks(axes, across, up)
    name_axes(axes, f"{across.name} (state variable)", f"{up.name} (state variable)")
    used = np.flatnonzero(np.bincount(counts.argmax(axis=2)[counts.sum(axis=2) > 0].ravel()))
    keys = [Patch(color=_colour(int(a)), label=plain(policies.actions[int(a)])) for a in used]
    fixed = ", ".join(
        f"{policies.variables[i].name}={policies.variables[i].labels[at]}" for i, at in held.items()
    )
    legend_below(axes, keys)
    legend = axes.get_legend()
    assert legend is not None
    legend.set_title(plain(f"action where {fixed}" if fixed else "action"))


def _colour(action: int) -> str:
    return ACTIONS[action % len(ACTIONS)]


def _find_named(policies: PolicyMap, name: str) -> Variable:
    for variable in policies.variables:
        if variable.name == name:
            return variable
    known = ", ".join(variable.name for variable in policies.variables)
    raise InputError(f"there is no state variable {name!r}", hint=f"there are {known}")


def _image(counts: FloatArray) -> FloatArray:
    palette = np.array([to_rgb(_colour(i)) for i in range(counts.shape[2])])
    total = counts.sum(axis=2)
    share = counts.max(axis=2) / np.maximum(total, 1.0)
    alpha = np.where(total > 0, 0.25 + 0.75 * share, 0.0)[..., None]
    image: FloatArray = np.concatenate([palette[counts.argmax(axis=2)], alpha], axis=2)
    return image


def _ticks(axes: Axes, across: Variable, up: Variable) -> None:
    for labels, put in ((across.labels, axes.set_xticks), (up.labels, axes.set_yticks)):
        step = -(-len(labels) // 12)
        put(range(0, len(labels), step), labels[::step])
