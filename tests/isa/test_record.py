"""Fields of records: plain values are taken as they are, others converted or refused."""

from __future__ import annotations

from enum import IntEnum
from itertools import chain

import numpy as np
import pytest

from microtron.base.errors import IsaError
from microtron.isa import record as module
from microtron.isa.instructions import ISA, MicroOp
from microtron.isa.record import fields_of

FIELDS = [(kind, field) for kind in (MicroOp, *ISA) for field in fields_of(kind)]


def values_for(field):
    """Numbers at the edges, of many types, alone or one of several; and what is no number."""
    low, high = field.scalar.low, field.scalar.high
    numbers = [low - 1, low, -1, 0, 1, 2, high, high + 1, np.int16(1), True, 1.0]
    members = [] if field.kind is None else [*field.kind, field.kind(0) if field.is_flags else None]
    for value in chain(numbers, members, ["", None]):
        yield value
        for count in {field.count, field.count + 1}:
            yield from ((*[0] * (count - 1), value), [value, *[0] * (count - 1)])


@pytest.mark.parametrize(("kind", "field"), FIELDS,
                         ids=[f"{kind.mnemonic()}.{field.name}" for kind, field in FIELDS])
def test_what_is_taken_as_it_is_is_what_the_full_check_would_make_of_it(kind, field):
    fits, values = module._test(field), list(values_for(field))
    taken = [value for value in values if fits(value)]
    for value in taken:
        record = object.__new__(kind)
        record.__dict__[field.name] = value
        checked = module._check_value(record, field)
        assert (checked, type(checked)) == (value, type(value))
    assert 0 < len(taken) < len(values)


def test_a_value_that_is_fine_is_not_checked_the_long_way(monkeypatch):
    monkeypatch.setattr(module, "_check_value", lambda *_: pytest.fail("checked"))
    for kind in ISA:
        kind()


def test_numbers_become_members_and_lists_tuples():
    for kind, field in FIELDS:
        if field.kind is not None and field.default is not None:
            made = getattr(kind(**{field.name: int(field.default)}), field.name)
            assert isinstance(made, IntEnum) or field.is_flags
            assert type(made) is field.kind
        if field.axes:
            assert type(getattr(kind(**{field.name: list(field.default)}), field.name)) is tuple


def test_a_member_that_has_no_meaning_in_a_field_is_refused():
    refused = 0
    for kind, field in FIELDS:
        for member in set(field.kind or ()) - set(field.allowed or field.kind or ()):
            with pytest.raises(IsaError, match="but must be one of"):
                kind(**{field.name: member})
            refused += 1
    assert refused
