"""The docstring of every component is its contract: it names and explains each of its members."""

import gc
import importlib
import inspect
import pkgutil
import re
import warnings
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from amaranth.hdl import UnusedElaboratable
from amaranth.lib.wiring import Component, In, Out

import microtron.hw
from microtron.hw.gemm.mac_pairs import Corrections, packing
from microtron.hw.layouts import buffers_of
from microtron.isa.config import tiny
from microtron.isa.instructions import Buffer, Load

PAIRS = packing(tiny, port_bits=25)
# Parameters of constructors by name, each with the values to try. A scratchpad that the ALU writes
# has other members than one that LOAD fills.
ARGUMENTS = {
    "config": (replace(tiny, window_taps=3, tables=8),), "buffer": (Buffer.INP, Buffer.OUT),
    "buffers": (buffers_of(Load),), "clients": (2,),
    "depth": (4,), "operands": ({"dst": 18},), "shape": (8,), "tag": (8,),
    "steps": (True,), "shared": (False, True), "packing": (PAIRS,), "sum_shape": (20,),
    "diagonal": (0,), "widest": ((1, 8),),
    "corrections": (lambda: Corrections(tiny, PAIRS),),         # made when wanted
}
ENTRY = re.compile(r"(?P<names>[\w*]+(?:, [\w*]+)*) : (?P<flow>In|Out)\(.+\)")


def modules():
    """Every module of hw, in whichever room."""
    found = pkgutil.walk_packages(microtron.hw.__path__, f"{microtron.hw.__name__}.")
    return [info for info in found if not info.ispkg]


def components():
    """Every component of hw, by name, but for those that are only a base of others."""
    found = {}
    for info in modules():
        module = importlib.import_module(info.name)
        found |= {name: kind for name, kind in inspect.getmembers(module, inspect.isclass)
                  if issubclass(kind, Component) and kind.__module__ == info.name}
    bases = {base for kind in found.values() for base in kind.__bases__}
    return {name: kind for name, kind in found.items() if kind not in bases}


COMPONENTS = components()


def members_of(kind):
    """The members of small components of a kind: name → direction."""
    sets = [{}]
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is parameter.empty or name in ARGUMENTS:
            sets = [{**others, name: value() if callable(value) else value}
                    for others in sets for value in ARGUMENTS[name]]
    return {name: member.flow for arguments in sets
            for name, member in kind(**arguments).signature.members.items()}


def entries_of(docstring):
    """The entries of the section on members: name or pattern → direction and explanation."""
    _, found, section = inspect.cleandoc(docstring).partition("Members\n-------\n")
    assert found, "there is no section on members"
    result = {}
    for paragraph in re.split(r"\n(?=\S)", section):
        head, _, explanation = paragraph.partition("\n")
        entry = ENTRY.fullmatch(head)
        assert entry, f"{head!r} is not `name : In(shape)` or `name : Out(shape)`"
        for name in entry["names"].split(", "):
            assert name not in result, f"{name} has two entries"
            result[name] = {"In": In, "Out": Out}[entry["flow"]], explanation.strip()
    return result


def check(docstring, members):
    entries = entries_of(docstring)
    for member, flow in members.items():
        matching = [name for name in entries if fnmatchcase(member, name)]
        assert matching, f"{member} has no entry"
        assert "*" in matching[0] or entries[matching[0]][0] is flow, f"{member} goes the other way"
    for name, (_, explanation) in entries.items():
        assert any(fnmatchcase(member, name) for member in members), f"there is no member {name}"
        assert explanation.endswith("."), f"{name} is not explained"


@pytest.fixture(scope="module")
def members():
    """The members of every component. The units themselves are never used, and nobody minds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        found = {name: members_of(kind) for name, kind in COMPONENTS.items()}
        gc.collect()
    return found


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_member_has_a_direction_and_an_explanation(name, members):
    check(COMPONENTS[name].__doc__, members[name])


def test_all_components_are_found():
    assert {"Accelerator", "LoadSteps", "Requantizer", "Tokens"} <= COMPONENTS.keys()
    assert not {"Component", "TileSteps"} & COMPONENTS.keys()


GOOD = """A unit.

    Members
    -------
    words : In(stream of 8 bits)
        What comes.
    left, right : Out(1)
        Where it goes.
    """
MEMBERS = {"words": In, "left": Out, "right": Out}


@pytest.mark.parametrize(("wrong", "members", "complaint"), [
    (("A unit.", "A unit."), {**MEMBERS, "halt": In}, "halt has no entry"),
    (("left, right", "left, right, up"), MEMBERS, "there is no member up"),
    (("words : In", "words : Out"), MEMBERS, "words goes the other way"),
    (("What comes.", ""), MEMBERS, "words is not explained"),
    (("Out(1)", "bits"), MEMBERS, "'left, right : bits' is not"),
    (("left, right", "left, left"), MEMBERS, "left has two entries"),
    (("Members", "Parts"), MEMBERS, "no section on members"),
])
def test_what_is_missing_or_wrong_is_noticed(wrong, members, complaint):
    check(GOOD, MEMBERS)
    with pytest.raises(AssertionError, match=complaint):
        check(GOOD.replace(*wrong), members)


def test_the_page_on_the_hardware_names_every_file():
    page = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text(encoding="utf-8")
    files = [info.name.rpartition(".")[2] for info in modules()]
    assert [name for name in files if f"{name}.py" not in page] == []
