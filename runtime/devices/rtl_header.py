"""What the harness in C++ takes from the rest of the project, as a header: one source for both."""

from __future__ import annotations

import ctypes
import dataclasses

from ...isa.instructions import Engine
from ...isa.memory_timing import HASH_MIX, HASH_STEP, Channel, MemoryTiming

_SETTINGS = tuple(field.name for field in dataclasses.fields(MemoryTiming))


class TimingStruct(ctypes.Structure):
    """`MemoryTiming` as the harness takes it: every setting in 64 bits."""

    _fields_ = [(name, ctypes.c_int64) for name in _SETTINGS]


def timing_struct(timing: MemoryTiming) -> TimingStruct:
    return TimingStruct(*(int(getattr(timing, name)) for name in _SETTINGS))


def declarations() -> str:
    """`declarations.h`: the settings of memory, the stall hash and the engines."""
    engines = " ".join(f"each({engine.value}, {engine.name.lower()})" for engine in Engine)
    channels = ", ".join(f"{channel.name} = {channel.value}" for channel in Channel)
    mix = ", ".join(f"{value:#x}u" for value in HASH_MIX)
    return "\n".join([
        "// Generated from isa/memory_timing.py and isa/instructions.py.",
        "#pragma once",
        "#include <cstdint>",
        "namespace microtron {",
        "struct Timing {",
        *(f"    std::int64_t {name};" for name in _SETTINGS),
        "};",
        f"enum Channel : unsigned {{ {channels} }};",
        f"constexpr std::uint64_t CHANNELS = {len(Channel)}, HASH_STEP = {HASH_STEP:#x}u;",
        f"constexpr std::uint64_t HASH_MIX[] = {{{mix}}};",
        f"constexpr unsigned ENGINES = {len(Engine)};",
        "}",
        f"#define FOR_EACH_ENGINE(each) {engines}",
        ""])
