"""Whether knobs that a user gives are knobs of a template."""

from __future__ import annotations

from dataclasses import fields

from ...base.checked_values import integer, quote
from ..errors import CompileError
from .form import FormT, KnobsT, Template


def check_knobs(template: Template[FormT, KnobsT], form: FormT, given: object) -> KnobsT:
    """Knobs given by the user, as plain numbers. Refuses values that are no numbers, or out of
    range for the form."""
    if not isinstance(given, template.knobs):
        raise CompileError(f"knobs are {quote(given)}, but must be a "
                           f"{template.knobs.__module__.rpartition('.')[2]}.Knobs")
    largest = template.largest(form)
    return type(given)(**{each.name: _check_knob(
        f"{form.spec.operator}: knob {each.name}", getattr(given, each.name),
        getattr(largest, each.name), least=0 if each.default == 0 else 1)
        for each in fields(given)})


def _check_knob(place: str, value: object, largest: object, *, least: int) -> object:
    if isinstance(largest, bool):
        if not isinstance(value, bool):
            raise CompileError(f"{place} is {quote(value)}, but must be True or False")
        return value
    if isinstance(largest, tuple):
        if not isinstance(value, tuple) or len(value) != len(largest):
            raise CompileError(f"{place} is {quote(value)}, but must be {len(largest)} numbers")
        return tuple(_check_knob(f"{place}[{number}]", each, most, least=least)
                     for number, (each, most) in enumerate(zip(value, largest, strict=True)))
    number = integer(value)
    assert isinstance(largest, int), f"{place} has no largest number"
    if number is None or not least <= number <= largest:
        raise CompileError(f"{place} is {quote(value)}, but must be from {least} to {largest}")
    return number
