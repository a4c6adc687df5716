"""What the symbols of a network are called."""

from __future__ import annotations

import re

from ..models.compiled_model import CompiledModel


def symbol_of(name: str) -> str:
    """A word of C for a name."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII).lower() or "network"
    return f"network_{word}" if not word[0].isalpha() else word


def compute_symbol(model: CompiledModel, number: int) -> str:
    """The function of a stage."""
    return f"{symbol_of(model.name)}_stage_{number}"


def program_symbol(model: CompiledModel, number: int) -> str:
    return f"{symbol_of(model.name)}_program_{number}"


def constant_symbol(model: CompiledModel, number: int, place: int | str) -> str:
    """A constant of a stage."""
    return f"{compute_symbol(model, number)}_constant_{place}"


def state_symbol(model: CompiledModel, number: int) -> str:
    """What a state holds first."""
    return f"{symbol_of(model.name)}_state_{number}"
