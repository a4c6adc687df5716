"""Dataclasses whose methods are made late are those of the standard library otherwise."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from dataclasses import FrozenInstanceError, field
from functools import partial
from pathlib import Path

import pytest

from microtron.base.classes.dataclass import dataclass, unguarded


def make(decorate):
    """The same classes by one decorator or the other."""
    @decorate(frozen=True)
    class Point:
        x: int
        seen: list[int] = field(default_factory=list, compare=False)
        twice: int = field(init=False)
        y: int = 5

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.x)

    @decorate(frozen=True, kw_only=True)
    class Named(Point):
        name: str
        hidden: int = field(default=1, repr=False)

    @decorate(frozen=True, eq=False)
    class Same(Named):
        more: int = 4

    @decorate()
    class Mutable:
        values: list[int]
        other: float = float("nan")

        def __repr__(self) -> str:
            return "mine"

    @decorate(frozen=True)
    class Own:
        value: int = 1

        def __hash__(self) -> int:
            return 7

    @decorate(frozen=True)
    class Nothing:
        pass

    return Point, Named, Same, Mutable, Own, Nothing


LATE, STANDARD = make(dataclass), make(dataclasses.dataclass)
PAIRS = list(zip(LATE, STANDARD, strict=True))
CALLS = [(0, lambda cls: cls(1)), (0, lambda cls: cls(1, [2], 3)), (0, lambda cls: cls(x=4, y=2)),
         (0, lambda cls: cls()), (0, lambda cls: cls(1, 2, 3, 4)), (0, lambda cls: cls(1, z=2)),
         (1, lambda cls: cls(1, name="a")), (1, lambda cls: cls(1, [], 2, "a")),
         (2, lambda cls: cls(1, name="b", hidden=3)), (3, lambda cls: cls([1])),
         (3, lambda cls: cls([1], 2.0)), (4, lambda cls: cls()), (5, lambda cls: cls())]


def outcome(call, cls):
    """What becomes of a call: text and attributes, or an error."""
    try:
        made = call(cls)
    except TypeError as error:
        return str(error)
    return repr(made), {key: repr(value) for key, value in vars(made).items()}


@pytest.mark.parametrize(("number", "call"), CALLS)
def test_instances_are_those_of_the_standard_library(number, call):
    late, standard = PAIRS[number]
    assert outcome(call, late) == outcome(call, standard)


@pytest.mark.parametrize(("late", "standard"), PAIRS)
def test_classes_describe_themselves_alike(late, standard):
    assert str(inspect.signature(late)) == str(inspect.signature(standard))
    assert late.__match_args__ == standard.__match_args__
    assert repr(late.__dataclass_params__) == repr(standard.__dataclass_params__)
    assert (late.__hash__ is None) == (standard.__hash__ is None)
    assert [each.name for each in dataclasses.fields(late)] == [
        each.name for each in dataclasses.fields(standard)]


@pytest.mark.parametrize("classes", [LATE, STANDARD])
def test_equal_fields_make_equal_instances(classes):
    point, named, same, mutable, own, nothing = classes
    assert point(1) == point(1, [2]) != point(2)
    assert hash(point(1)) == hash(point(1, [2]))
    assert named(1, name="a") != point(1)
    assert same(1, name="a") == same(1, name="a", more=5), "as its base says"
    assert mutable([1]).__eq__(3) is NotImplemented
    assert mutable([1]) == mutable([1]), "the same number that is none"
    assert hash(own()) == 7
    assert nothing() == nothing()
    assert len({nothing(), nothing()}) == 1


@pytest.mark.parametrize("classes", [LATE, STANDARD])
def test_frozen_instances_cannot_be_changed(classes):
    made = classes[1](1, name="a")
    for change in (partial(setattr, made, "x", 2), partial(setattr, made, "more", 2),
                   partial(delattr, made, "name")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert dataclasses.replace(made, x=3).twice == 6
    assert copy.deepcopy(made) == made


def test_both_kinds_inherit_from_each_other():
    @dataclasses.dataclass(frozen=True)
    class Standard(LATE[0]):
        z: int = 1

    @dataclass(frozen=True)
    class Late(Standard):
        w: int = 2

    assert repr(Late(1)).endswith("Late(x=1, seen=[], twice=2, y=5, z=1, w=2)")
    for decorate in (dataclass, dataclasses.dataclass):
        with pytest.raises(TypeError, match="frozen"):
            @decorate()
            class Mixed(Late):
                pass


def test_mistakes_are_found():
    @dataclass
    class Wrong:
        first: int = 1
        second: int            # without a default, after one

    with pytest.raises(TypeError, match="second"):
        Wrong(1, 2)
    with pytest.raises(ValueError, match="mutable default"):
        @dataclass
        class Shared:
            values: list[int] = []          # noqa: RUF012


def test_what_is_not_guarded_is_the_same_otherwise():
    @unguarded(frozen=True)
    class Small:
        left: int
        right: int = 2

    @dataclass(frozen=True)
    class Guarded(Small):
        more: int = 3

    made = Small(1)
    assert (made, hash(made), repr(made)[-21:]) == (
        Small(1, 2), hash(Small(1)), "Small(left=1, right=2)"[-21:])
    object.__setattr__(made, "left", 5)
    made.right = 6                          # types say that nobody does
    assert made == Small(5, 6)
    with pytest.raises(FrozenInstanceError):
        Guarded(1).left = 2


STANDARD_ONE = re.compile(r"^from dataclasses import [^\n]*\bdataclass\b", re.MULTILINE)


@pytest.mark.parametrize("part", ["base", "cli", "compiler", "isa", "runtime"])
def test_what_commands_import_makes_methods_late(part):
    """Each class of the standard library's takes a millisecond of every command's start."""
    root = Path(__file__).resolve().parents[2]
    wrong = [path.relative_to(root) for path in (root / part).rglob("*.py")
             if path.parent.name != "classes" and STANDARD_ONE.search(path.read_text())]
    assert not wrong, "import dataclass from base.classes.dataclass"


@dataclass(frozen=True)
class Kept:
    value: int


def test_instances_are_pickled():
    assert pickle.loads(pickle.dumps(Kept(3))) == Kept(3)
