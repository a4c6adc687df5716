"""Methods of dataclasses, made at their first use (`dataclass`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from threading import RLock
from typing import Any, TypeAlias

Method: TypeAlias = Callable[..., object]
Fields: TypeAlias = "list[Field[object]]"

Params: TypeAlias = Any      # of a dataclass: a type that the standard library does not name

PARAMS = "__dataclass_params__"
POST_INIT = "__post_init__"
OURS = {"init", "repr", "eq", "frozen", "kw_only"}         # options that are known here
_lock = RLock()


def unguarded(cls: type | None = None, /, **options: bool) -> object:
    """Make a dataclass of a class. If it is frozen, that is not enforced."""
    return dataclass(cls, guarded=False, **options)


def dataclass(cls: type | None = None, /, *, guarded: bool = True, **options: bool) -> object:
    """Make a dataclass of a class."""
    if cls is None:
        return lambda decorated: dataclass(decorated, guarded=guarded, **options)
    if not options.keys() <= OURS or _is_mixed(cls, frozen=options.get("frozen", False)):
        return dataclasses.dataclass(**options)(cls)        # which knows more, or says why not
    return _Maker(cls, guarded=guarded, **options).made


def _frozen_bases(cls: type) -> list[Params]:
    params = [vars(base)[PARAMS] for base in cls.__mro__[1:] if PARAMS in vars(base)]
    return [each for each in params if each.frozen]


def _is_mixed(cls: type, *, frozen: bool) -> bool:
    """Whether only one of a class and its bases is frozen."""
    bases = [base for base in cls.__mro__[1:] if PARAMS in vars(base)]
    return bool(bases) and frozen != bool(_frozen_bases(cls))


class _Made:
    """Stands for a default that is made for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


MADE = _Made()


class _Maker:
    """Turns a class into a dataclass."""

    def __init__(self, cls: type, *, guarded: bool, init: bool = True, repr: bool = True,
                 eq: bool = True, frozen: bool = False, kw_only: bool = False):
        guarded = frozen and (guarded or any(
            vars(base)[PARAMS].frozen and "__setattr__" in vars(base)
            for base in cls.__mro__[1:] if PARAMS in vars(base)))
        own = dict(vars(cls))
        self._process(cls, frozen=frozen, kw_only=kw_only)
        params = vars(cls)[PARAMS]
        params.init, params.repr, params.eq, params.frozen = init, repr, eq, frozen
        self.made = cls
        methods: dict[str, object] = {}
        if init:
            methods["__init__"] = _Later(cls, "__init__", lambda: make_init(cls, guarded=guarded))
        if repr:
            methods["__repr__"] = _Later(cls, "__repr__", lambda: make_repr(cls))
        if eq:
            methods["__eq__"] = _Later(cls, "__eq__", lambda: make_eq(cls))
            explicit = own.get("__hash__") is not None or (
                "__hash__" in own and "__eq__" not in own)
            if not explicit:
                methods["__hash__"] = _Later(cls, "__hash__", lambda: make_hash(
                    cls)) if frozen else None
        for name, method in methods.items():
            if name not in own or name == "__hash__":
                setattr(cls, name, method)
        if guarded:
            for name, method in zip(("__setattr__", "__delattr__"), _refusals(cls), strict=True):
                if name in own:
                    raise TypeError(f"{cls.__name__} is frozen, but has {name} of its own")
                setattr(cls, name, method)

    @staticmethod
    def _process(cls: type, *, frozen: bool, kw_only: bool) -> None:
        """Find the fields, without any methods. Those of a frozen class cannot be left out, so it
        seems not to be frozen, like its bases, meanwhile."""
        if cls.__doc__ is None:         # otherwise a signature is made for it
            cls.__doc__ = cls.__name__
        with _lock:
            bases = _frozen_bases(cls)
            for each in bases:
                each.frozen = False
            try:
                dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
            finally:
                for each in bases:
                    each.frozen = frozen


class _Later:
    """A method that is made when somebody asks for it, and then stands in its own place."""

    def __init__(self, cls: type, name: str, make: Callable[[], Method]):
        self.cls, self.name, self.make = cls, name, make

    def __get__(self, instance: object, owner: type | None = None) -> object:
        method = vars(self.cls)[self.name]
        if method is self:
            method = self.make()
            method.__name__ = self.name
            method.__qualname__ = f"{self.cls.__qualname__}.{self.name}"
            method.__module__ = self.cls.__module__
            type.__setattr__(self.cls, self.name, method)
        return method.__get__(instance, owner)


def make_init(cls: type, *, guarded: bool) -> Method:
    """`__init__`: source text, compiled."""
    every: Fields = [each for each in cls.__dataclass_fields__.values()     # type: ignore[attr-defined]
                     if each in fields(cls)]
    known: dict[str, object] = {"set_": object.__setattr__, "MADE": MADE}
    lines: list[str] = []
    ordered: list[str] = []
    named: list[str] = []
    for each in every:
        name = each.name
        value = name
        if each.default_factory is not MISSING:
            known[f"make_{name}"] = each.default_factory
            value = f"make_{name}()"
            if each.init:
                value = f"{value} if {name} is MADE else {name}"
        elif not each.init and each.default is MISSING:
            continue                    # `__post_init__` sets it
        elif not each.init:
            continue                    # the class has it
        lines.append(f"set_(self, {name!r}, {value})" if guarded else f"self.{name} = {value}")
        if each.init:
            (named if each.kw_only else ordered).append(_parameter(each, known))
    _check_order(cls, [each for each in every if each.init and not each.kw_only])
    if hasattr(cls, POST_INIT):
        lines.append(f"self.{POST_INIT}()")
    parameters = ", ".join(["self", *ordered, *(["*", *named] if named else [])])
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({parameters}):\n    {body}", known)
    method = known["__init__"]
    assert callable(method)
    method.__annotations__ = {each.name: each.type for each in every if each.init} | {
        "return": None}
    return method


def _parameter(each: Field[object], known: dict[str, object]) -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=MADE"
    if each.default is MISSING:
        return each.name
    known[f"default_{each.name}"] = each.default
    return f"{each.name}=default_{each.name}"


def _check_order(cls: type, ordered: Fields) -> None:
    optional = ""
    for each in ordered:
        if each.default is not MISSING or each.default_factory is not MISSING:
            optional = each.name
        elif optional:
            raise TypeError(f"{cls.__name__}: {each.name} without a default follows {optional}")


def make_repr(cls: type) -> Method:
    names = [each.name for each in fields(cls) if each.repr]

    @recursive_repr()
    def repr_(self: object) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({shown})"
    return repr_


def _values(cls: type, chosen: list[str]) -> Callable[[object], tuple[object, ...]]:
    """The values of some fields of an instance."""
    if len(chosen) > 1:
        return attrgetter(*chosen)
    if not chosen:
        return lambda _: ()
    name, = chosen
    return lambda each: (getattr(each, name),)


def make_eq(cls: type) -> Method:
    values = _values(cls, [each.name for each in fields(cls) if each.compare])

    def eq(self: object, other: object) -> object:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented
    return eq


def make_hash(cls: type) -> Method:
    values = _values(cls, [each.name for each in fields(cls)
                           if (each.compare if each.hash is None else each.hash)])

    def hash_(self: object) -> int:
        return hash(values(self))
    return hash_


def _refusals(cls: type) -> tuple[Method, Method]:
    """What a frozen class does with attributes that are set or deleted."""
    names = {each.name for each in fields(cls)}

    def refuse_set(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)               # type: ignore[arg-type]

    def refuse_delete(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)                      # type: ignore[arg-type]
    return refuse_set, refuse_delete
