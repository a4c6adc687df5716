"""Configurations by name or file: presets, our TOML, and VTA's `vta_config.json`."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from os import PathLike
from pathlib import Path

from ..base.argument_checks import check_path, check_type
from ..base.atomic_files import write_atomically
from ..base.checked_values import PlainData, integer, list_names, quote
from ..base.errors import ConfigError
from ..base.keywords import check_keywords
from ..base.near_misses import hint, near
from ..base.text_file import read_text
from .config import PRESETS, Config
from .instructions import WINDOW_ROWS

# VTA's logarithmic keys and the fields they become.
VTA_BITS = {"LOG_INP_WIDTH": "inp_bits", "LOG_WGT_WIDTH": "wgt_bits", "LOG_ACC_WIDTH": "acc_bits"}
VTA_BYTES = {"LOG_UOP_BUFF_SIZE": "uop_bytes", "LOG_INP_BUFF_SIZE": "inp_bytes",
             "LOG_WGT_BUFF_SIZE": "wgt_bytes", "LOG_ACC_BUFF_SIZE": "acc_bytes"}
VTA_REQUIRED = ("LOG_BATCH", "LOG_BLOCK", *VTA_BITS, *VTA_BYTES)
VTA_IGNORED = ("TARGET", "HW_VER")
VTA_FIELDS = {"batch", "block_in", "block_out", "out_bits", "out_bytes", *VTA_BITS.values(),
              *VTA_BYTES.values()}
VTA_LOG_LIMIT = 30          # the largest exponent taken from a file: 1 GiB


@check_keywords
def load_config(name: str | Path) -> Config:
    """Load a configuration: the name of a preset, a .toml file, or VTA's vta_config.json."""
    if not isinstance(name, str | PathLike):
        raise ConfigError(f"configuration is {quote(name)}, but must be the name of a preset or "
                          f"the path of a file")
    return load_with_notes(name)[0]


def load_with_notes(name: str | Path) -> tuple[Config, tuple[str, ...]]:
    """The same, and what a person should know about it: what is ignored and what is assumed."""
    if str(name) in PRESETS:
        return PRESETS[str(name)], ()
    path = Path(name)
    if path.suffix not in (".toml", ".json"):
        raise ConfigError(f"configuration {quote(str(name))} is neither a preset "
                          f"({', '.join(PRESETS)}) nor a .toml or .json file"
                          f"{near(str(name), PRESETS)}")
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:      # also a path with a zero byte
        raise ConfigError(f"{path}: cannot be read: {_reason(error)}") from None
    if path.suffix == ".json":
        return parse_vta(text, place=str(path)), vta_notes(text, place=str(path))
    return parse_toml(text, place=str(path)), ()


def parse_toml(text: str, *, place: str = "configuration") -> Config:
    """A table of `Config`'s fields; those left out keep their defaults. `preset` is the base."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:       # also numbers and nesting without end
        raise ConfigError(f"{place}: not TOML: {_one_line(error)}") from None
    preset = table.pop("preset", "base")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigError(f"{place}: preset is {quote(preset)}, but must be one of "
                          f"{', '.join(PRESETS)}")
    return from_dict(table, preset=PRESETS[preset], place=place)


def from_dict(table: PlainData, *, preset: Config | None = None,
              place: str = "configuration") -> Config:
    """The preset (`base` unless told) with the given fields changed."""
    known = [field.name for field in dataclasses.fields(Config)]
    for name in table:
        if name not in known:
            raise ConfigError(f"{place}: there is no field {quote(name)}{hint(name, known)}")
    try:
        return dataclasses.replace(preset or PRESETS["base"], **table)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None


def format_toml(config: Config) -> str:
    """The configuration as TOML, every field with its line of documentation."""
    return "".join(f"# {field.metadata['doc']}\n{field.name} = {getattr(config, field.name)}\n"
                   for field in dataclasses.fields(config))


@check_keywords
def save_config(config: Config, path: str | Path) -> None:
    """Write a configuration as TOML, for `load_config` and --config."""
    check_type("config", config, Config, "a Config")
    write_atomically(check_path("path", path), format_toml(config).encode())


def parse_vta(text: str, *, place: str = "vta_config.json") -> Config:
    """The accelerator that VTA's configuration describes.

    Keys that say where VTA ran, not what it was, are passed over, as are unknown ones; `vta_notes`
    names them. The out buffer follows from the accumulator's, as it did there. Buffers keep their
    bytes. What VTA has no key for is as in `base`, but for windows where blocks are too small.
    """
    table = _vta_table(text, place)
    logs = {}
    for key in VTA_REQUIRED:
        value = table.get(key)
        number = integer(value)
        if number is None or not 0 <= number <= VTA_LOG_LIMIT:
            raise ConfigError(f"{place}: {key} is {quote(value)}, but must be an integer "
                              f"from 0 to {VTA_LOG_LIMIT}")
        logs[key] = number
    fields = {ours: 1 << logs[theirs] for theirs, ours in (VTA_BITS | VTA_BYTES).items()}
    fields |= {"batch": 1 << logs["LOG_BATCH"], "out_bits": fields["inp_bits"],
               "block_in": 1 << logs["LOG_BLOCK"], "block_out": 1 << logs["LOG_BLOCK"]}
    fields["out_bytes"] = fields["acc_bytes"] * fields["out_bits"] // fields["acc_bits"]
    assert set(fields) == VTA_FIELDS
    small = min(fields["block_in"], fields["block_out"]) < WINDOW_ROWS
    return from_dict(fields | ({"window_taps": 1} if small else {}), place=place)


def vta_notes(text: str, *, place: str = "vta_config.json") -> tuple[str, ...]:
    """What is ignored of VTA's configuration, and what is assumed because VTA has no key for it."""
    table, config = _vta_table(text, place), parse_vta(text, place=place)
    unknown = [key for key in table if key not in (*VTA_REQUIRED, *VTA_IGNORED)]
    assumed = [f"{name} = {value}" for name, value in config.to_dict().items()
               if name not in VTA_FIELDS]
    notes = [(", ".join(key for key in VTA_IGNORED if key in table),
              "ignored: where VTA ran, not what it was"),
             (list_names([quote(key) for key in unknown]), "ignored: not known"),
             (", ".join(assumed), "assumed: VTA has no key for it")]
    return tuple(f"{place}: {items}: {reason}" for items, reason in notes if items)


def _vta_table(text: str, place: str) -> dict[str, object]:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        table: dict[str, object] = {}
        for key, value in pairs:
            if key in table:
                raise ConfigError(f"{place}: {quote(key)} is given twice")
            table[key] = value
        return table

    try:
        table = json.loads(text, object_pairs_hook=unique)
    except ConfigError:
        raise
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: not JSON: {_one_line(error)}") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{place}: holds a {type(table).__name__}, but must be an object")
    return table


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
