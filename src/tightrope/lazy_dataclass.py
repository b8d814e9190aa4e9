"""`dataclass` with methods generated at first use.

The standard library compiles up to six functions per class at import, about a millisecond; a command imports
hundreds of classes. Here placeholders generate a function when it is called. Errors in a declaration appear
at first use. There are no slots and no `InitVar`.

The standard library generates the functions, on a class without bases that has all fields. The certificate
checker uses the standard library's `dataclass`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

DESCRIBED = ("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__signature__")
"""What is asked of the class itself."""


class _Factory:
    """Stands in a signature for what is made anew for every record."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Waiting:
    """Stands for what `DESCRIBED` names until it is asked for."""

    def __init__(self, name: str, describe: Callable[[], dict[str, Any]]):
        self.name, self.describe = name, describe

    def __get__(self, instance: object, kind: type | None = None) -> Any:
        if (value := self.describe().get(self.name)) is None:
            raise AttributeError(self.name)  # a signature is then read from the method
        return value


def _lazy_dataclass(
    cls: type | None = None,
    /,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    kw_only: bool = False,
) -> Any:
    options = {"init": init, "repr": repr, "eq": eq, "frozen": frozen, "kw_only": kw_only}
    if cls is None:
        return lambda owner: _postpone(owner, options)
    return _postpone(cls, options)


if not TYPE_CHECKING:
    dataclass = _lazy_dataclass


def _postpone(owner: type, options: dict[str, bool]) -> type:
    own = vars(owner)
    declared: dict[str, Any] = {name: own[name] for name in own.get("__annotations__", {}) if name in own}
    for name, value in declared.items():
        if isinstance(value, Field):  # what stands in the class is the default
            if value.default is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value.default)
    made: dict[str, Any] = {}

    def install(functions: dict[str, Any]) -> None:
        made.update(functions)
        for name, value in functions.items():
            if name in waiting and vars(owner)[name] is waiting[name]:
                setattr(owner, name, value)

    def describe() -> dict[str, Any]:
        if "__dataclass_fields__" not in made:
            model = _modelled(owner, declared, kw_only=options["kw_only"])
            for name in ("init", "repr", "eq", "frozen"):
                setattr(model.__dataclass_params__, name, options[name])
            functions = {name: vars(model).get(name) for name in DESCRIBED if name != "__signature__"}
            if "__init__" in waiting:
                functions["__init__"] = _initialiser(owner, model, options["frozen"])
            install(functions)
        return made

    def compare_and_show() -> None:
        flags = {"repr": options["repr"], "eq": options["eq"], "unsafe_hash": "__hash__" in waiting}
        model = vars(_modelled(owner, declared, kw_only=options["kw_only"], **flags))
        install({name: model[name] for name in ("__repr__", "__eq__", "__hash__") if name in waiting})

    def postponed(name: str) -> Callable[..., Any]:
        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            if name not in made:
                describe() if name == "__init__" else compare_and_show()
            return made[name](self, *arguments, **named)

        method.__name__, method.__qualname__ = name, f"{owner.__qualname__}.{name}"
        method.__module__ = owner.__module__
        return method

    hashes = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    wanted = {
        "__init__": options["init"] and "__init__" not in own,
        "__repr__": options["repr"] and "__repr__" not in own,
        "__eq__": options["eq"] and "__eq__" not in own,
        "__hash__": options["eq"] and options["frozen"] and not hashes,
    }
    waiting: dict[str, Any] = {name: postponed(name) for name, needed in wanted.items() if needed}
    waiting |= {name: _Waiting(name, describe) for name in DESCRIBED if name not in own}
    for name, value in waiting.items():
        setattr(owner, name, value)
    if options["eq"] and not options["frozen"] and not hashes:
        owner.__hash__ = None  # type: ignore[assignment]
    if options["frozen"]:
        owner.__setattr__ = _refuse_assignment  # type: ignore[assignment]
        owner.__delattr__ = _refuse_deletion  # type: ignore[assignment]
    owner._describe_ = staticmethod(describe)  # type: ignore[attr-defined]
    return owner


def _modelled(owner: type, declared: dict[str, Any], **options: bool) -> Any:
    """A class without bases that has the fields of `owner`, as a dataclass with these methods alone."""
    namespace: dict[str, Any] = {"__annotations__": {}, "__doc__": "fields", "__module__": owner.__module__}
    for base in (each for each in reversed(owner.__mro__[1:]) if dataclasses.is_dataclass(each)):
        for inherited in dataclasses.fields(base):
            namespace["__annotations__"][inherited.name] = inherited.type
            namespace[inherited.name] = copy(inherited)
    for name, kind in vars(owner).get("__annotations__", {}).items():
        namespace["__annotations__"][name] = kind
        namespace.pop(name, None)
        if name in declared or hasattr(owner, name):
            default = declared.get(name, getattr(owner, name, None))
            namespace[name] = copy(default) if isinstance(default, Field) else default
    namespace["__qualname__"] = owner.__qualname__
    chosen = {"init": False, "repr": False, "eq": False} | options
    return dataclasses.dataclass(**chosen)(type(owner.__name__, (), namespace))


def _initialiser(owner: type, model: type, is_frozen: bool) -> Callable[..., None]:
    """The function that makes one, written as the standard library does."""
    scope: dict[str, Any] = {"_set_": object.__setattr__, "_factory_": _FACTORY}
    signature: dict[bool, list[str]] = {False: ["self"], True: []}
    lines, fields = [], dataclasses.fields(model)
    for field in fields:
        name = value = field.name
        default = ""
        if field.default is not MISSING:
            scope[f"_default_{name}_"], default = field.default, f"=_default_{name}_"
        elif field.default_factory is not MISSING:
            scope[f"_make_{name}_"], default = field.default_factory, "=_factory_"
            value = (
                f"_make_{name}_() if {name} is _factory_ else {name}" if field.init else f"_make_{name}_()"
            )
        if field.init:
            signature[bool(field.kw_only)].append(f"{name}{default}")
        elif field.default_factory is MISSING:
            continue
        lines.append(f"_set_(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    places = ", ".join([*signature[False], *(["*", *signature[True]] if signature[True] else [])])
    exec(f"def __init__({places}):\n " + ("\n ".join(lines) or "pass"), scope)
    function: Callable[..., None] = scope["__init__"]
    function.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    function.__qualname__, function.__module__ = f"{owner.__qualname__}.__init__", owner.__module__
    return function


def _may_set(record: object, name: str) -> bool:
    """Whether it is no field and the class a plain one below a dataclass, which may have attributes."""
    kind: Any = type(record)
    return "_describe_" not in vars(kind) and name not in kind.__dataclass_fields__


def _refuse_assignment(self: object, name: str, value: object) -> None:
    if not _may_set(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deletion(self: object, name: str) -> None:
    if not _may_set(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)
