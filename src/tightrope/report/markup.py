"""HTML and SVG as text, written tag by tag: whatever is not markup already is escaped."""

from __future__ import annotations

from html import escape

VOID = frozenset({"meta", "br", "input", "link"})


class Markup(str):
    """Text that is markup already and must not be escaped again."""

    __slots__ = ()


Child = str | Markup | None


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """`<name attributes>children</name>`. In keywords `_` stands for `-`; at the end it is dropped.

    None and False leave an attribute out; floats are written with two decimals.
    """
    written = "".join(
        f' {_name(key)}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Children one after the other."""
    return Markup(
        "".join(c if isinstance(c, Markup) else escape(c, quote=False) for c in children if c is not None)
    )


def _name(key: str) -> str:
    return key if key == "viewBox" else key.rstrip("_").replace("_", "-")


def _value(value: str | float | bool) -> str:
    if value is True:
        return ""
    if isinstance(value, int | float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return escape(value, quote=True)
