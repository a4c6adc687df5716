"""Configurations by name or file: presets, our TOML, and VTA's `vta_config.json`."""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
from pathlib import Path
from typing import Any

from .atomic import write_atomically
from .config import PRESETS, Config
from .errors import ConfigError

# VTA's logarithmic keys and the fields they become.
VTA_BITS = {"LOG_INP_WIDTH": "inp_bits", "LOG_WGT_WIDTH": "wgt_bits", "LOG_ACC_WIDTH": "acc_bits"}
VTA_BYTES = {"LOG_UOP_BUFF_SIZE": "uop_bytes", "LOG_INP_BUFF_SIZE": "inp_bytes",
             "LOG_WGT_BUFF_SIZE": "wgt_bytes", "LOG_ACC_BUFF_SIZE": "acc_bytes"}
VTA_REQUIRED = ("LOG_BATCH", "LOG_BLOCK", *VTA_BITS, *VTA_BYTES)
VTA_LOG_LIMIT = 30          # the largest exponent taken from a file: 1 GiB


def load_config(name: str | Path) -> Config:
    """A preset's name, a `.toml` file of ours or a `.json` file of VTA's."""
    if str(name) in PRESETS:
        return PRESETS[str(name)]
    path = Path(name)
    if path.suffix not in (".toml", ".json"):
        near = difflib.get_close_matches(str(name), PRESETS, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"configuration {str(name)!r} is neither a preset "
                          f"({', '.join(PRESETS)}) nor a .toml or .json file{hint}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {_reason(error)}") from None
    return parse_vta(text, place=str(path)) if path.suffix == ".json" else parse_toml(
        text, place=str(path))


def parse_toml(text: str, *, place: str = "configuration") -> Config:
    """A table of `Config`'s fields; those left out keep their defaults. `preset` is the base."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:       # also numbers and nesting without end
        raise ConfigError(f"{place}: not TOML: {_one_line(error)}") from None
    preset = table.pop("preset", "base")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigError(f"{place}: preset is {preset!r}, but must be one of {', '.join(PRESETS)}")
    return from_dict(table, preset=PRESETS[preset], place=place)


def from_dict(table: dict[str, Any], *, preset: Config | None = None,
              place: str = "configuration") -> Config:
    """The preset (`base` unless told) with the given fields changed."""
    known = [field.name for field in dataclasses.fields(Config)]
    for name in table:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"
            raise ConfigError(f"{place}: there is no field {name!r}{hint}")
    try:
        return dataclasses.replace(preset or PRESETS["base"], **table)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def format_toml(config: Config) -> str:
    """The configuration as TOML, every field with its line of documentation."""
    return "".join(f"# {field.metadata['doc']}\n{field.name} = {getattr(config, field.name)}\n"
                   for field in dataclasses.fields(config))


def save_config(config: Config, path: str | Path) -> None:
    write_atomically(Path(path), format_toml(config).encode())


def parse_vta(text: str, *, place: str = "vta_config.json") -> Config:
    """The accelerator that VTA's configuration describes.

    TARGET and HW_VER say where VTA ran, not what it was, and are passed over. The out buffer
    follows from the accumulator's, as it did there. Buffers keep their bytes.
    """
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: not JSON: {_one_line(error)}") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{place}: holds a {type(table).__name__}, but must be an object")
    logs = {}
    for key in VTA_REQUIRED:
        value = table.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= VTA_LOG_LIMIT:
            raise ConfigError(f"{place}: {key} is {value!r}, but must be an integer "
                              f"from 0 to {VTA_LOG_LIMIT}")
        logs[key] = value
    fields = {ours: 1 << logs[theirs] for theirs, ours in (VTA_BITS | VTA_BYTES).items()}
    fields |= {"batch": 1 << logs["LOG_BATCH"], "out_bits": fields["inp_bits"],
               "block_in": 1 << logs["LOG_BLOCK"], "block_out": 1 << logs["LOG_BLOCK"]}
    fields["out_bytes"] = fields["acc_bytes"] * fields["out_bits"] // fields["acc_bits"]
    return from_dict(fields, place=place)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "not UTF-8 text"


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
