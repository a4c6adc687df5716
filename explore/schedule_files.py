"""Schedules in a file, for `microtron compile --schedules`: JSON with a version, for one
configuration.

    {"format": "microtron schedules", "version": 1, "config": {…}, "layers": [
        {"layer": {"operator": "conv2d", …}, "form": 0, "knobs": {"blocks": 4, …}}, …]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..base.atomic_files import write_atomically
from ..base.checked_values import quote
from ..base.errors import MicrotronError
from ..base.text_file import read_text
from ..compiler.operators.description import Description
from ..isa.config import Config
from .points import PointError, Schedule, describe, parse_config, parse_layer, parse_schedule

FORMAT = "microtron schedules"
VERSION = 1
MOST_CHARACTERS = 16 << 20
PARTS = ("layer", "form", "knobs")
SHIPPED = Path(__file__).parent / "schedules"           # of networks that benchmarks know


def write_schedules(path: Path, config: Config, schedules: Mapping[Description, Schedule],
                    facts: Mapping[str, object]) -> None:
    """Write schedules, and facts for people, which nobody reads back."""
    content = {"format": FORMAT, "version": VERSION, "config": config.explicit_fields(), **facts,
               "layers": [{"layer": describe(layer), **each.to_json()}
                          for layer, each in schedules.items()]}
    write_atomically(path, f"{json.dumps(content, indent=1)}\n".encode())


def shipped_schedules() -> dict[str, Path]:
    """Files of schedules that come with Microtron, by their names."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.json"))}


def find_schedules(given: Path) -> Path:
    """A file, or one that comes with Microtron, by its name."""
    return given if given.exists() else shipped_schedules().get(str(given), given)


def read_schedules(path: Path, config: Config) -> dict[Description, tuple[int, object]]:
    """Form and knobs of each layer, as `microtron.compile` takes them. They must be for this
    configuration."""
    try:
        given = json.loads(read_text(path, MOST_CHARACTERS))
    except OSError as error:
        raise MicrotronError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise MicrotronError(f"{path}: not a file of schedules: it is not JSON") from None
    if not isinstance(given, dict) or given.get("format") != FORMAT or not isinstance(
            given.get("layers"), list):
        raise MicrotronError(f"{path}: not a file of schedules: it must be an object with "
                             f"{FORMAT!r} as its format, and layers")
    if given.get("version") != VERSION:
        raise MicrotronError(f"{path}: version is {quote(given.get('version'))}, but this "
                             f"Microtron reads version {VERSION}")
    try:
        if parse_config(given.get("config")) != config:
            raise MicrotronError(f"{path}: its schedules are for another configuration; tune the "
                                 f"network for this one")
        return dict(_parse_layer(f"layer {number}", each, config)
                    for number, each in enumerate(given["layers"]))
    except PointError as error:
        raise MicrotronError(f"{path}: {error}") from None


def _parse_layer(place: str, given: object,
                 config: Config) -> tuple[Description, tuple[int, object]]:
    if not isinstance(given, dict) or given.keys() != set(PARTS):
        raise PointError(f"{place} is {quote(given)}, but must have {', '.join(PARTS)}")
    layer = parse_layer(given["layer"], place)
    found = parse_schedule(given, layer, config, place)
    return layer, (found.form, found.knobs)
