"""Checks of the arguments of simulator functions."""

from __future__ import annotations

from ..base.argument_checks import check_type as check_type
from ..base.checked_values import integer, quote
from ..base.errors import MicrotronError
from ..isa.config import Config
from ..isa.config_files import load_config
from ..isa.memory_timing import MemoryTiming
from ..isa.program import check_program as check_program


def check_memory(memory: object) -> None:
    if memory is not None:
        check_type("memory", memory, MemoryTiming, "a MemoryTiming")


def resolve_config(config: Config | str | None, default: Config) -> Config:
    """A configuration, given as a Config, a name or a file; the default if it is None."""
    if config is None:
        return default
    if isinstance(config, str):
        return load_config(config)
    check_type("config", config, Config, "a Config, or a preset's or file's name")
    return config


def check_positive(name: str, value: object) -> int:
    """An integer that must be at least 1."""
    number = integer(value)
    if number is None or number < 1:
        raise MicrotronError(f"{name} is {quote(value)}, but must be an integer of 1 or more")
    return number
