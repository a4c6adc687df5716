"""Paths as text for people and as objects for JSON."""

from __future__ import annotations

from functools import cache
from pathlib import Path as File

import amaranth

import microtron

from .critical_paths import Path
from .explain_path import Explainer, PathSegment

KINDS = {"TRELLIS_FF": "register", "TRELLIS_DPR16X4": "LUT RAM", "CCU2C": "carry chain",
         "DP16KD": "block RAM", "MULT18X18D": "multiplier", "port": "port"}
NAME, KIND, SOURCE, CODE = 52, 11, 27, 48        # widths of columns


def format_path(title: str, path: Path, explainer: Explainer) -> list[str]:
    """A path, one line of text for each line of source that it goes through."""
    return ["", f"{title}: {path.time:.2f} ns, {path.levels} levels",
            *(_line(place) for place in explainer.explain(path))]


def _line(place: PathSegment) -> str:
    time = "" if place.time is None else f"{place.time:.2f}"
    name = " ".join(place.names)
    if len(name) > NAME:
        name = f"…{name[1 - NAME:]}"
    kind = KINDS.get(place.cell, place.cell) if place.cell else f"{place.gates} gates"
    code = _code(place.source)
    if len(code) > CODE:
        code = f"{code[:CODE - 1]}…"
    source = place.source or ""
    return f"{time:>7}  {name:{NAME}}  {kind:{KIND}}  {source:{SOURCE}}  {code}".rstrip()


def _code(source: str | None) -> str:
    """The line itself."""
    if source is None:
        return ""
    file, _, number = source.partition(":")
    return _text(file)[int(number) - 1].strip()


@cache
def _text(file: str) -> list[str]:
    ours = File(microtron.__file__).parent
    parents = {"hw": ours, "boards": ours,
               "amaranth": File(amaranth.__file__).parents[1]}
    return (parents[file.partition("/")[0]] / file).read_text(encoding="utf-8").splitlines()


def path_json(path: Path, explainer: Explainer) -> list[dict[str, object]]:
    return [{"names": place.names, "cell": place.cell, "source": place.source, "ns": place.time}
            for place in explainer.explain(path)]
