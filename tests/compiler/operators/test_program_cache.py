"""Kernels that were compiled before are the same again, and are never taken for others."""

import io
from dataclasses import replace

import pytest

from microtron.base.cache import ANEW
from microtron.compiler.accelerator import lower_schedule
from microtron.compiler.accelerator.lower_schedule import lower_to_intrinsics
from microtron.compiler.compile import compile_op
from microtron.compiler.expression.expression import Function
from microtron.compiler.nest.listing import listing
from microtron.compiler.operators import kernel
from microtron.compiler.operators.catalogue import OPERATORS, operator_of
from microtron.compiler.operators.choice import candidates
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.program_cache import _key
from microtron.isa.config import small, tiny
from microtron.isa.image.program_image import to_bytes
from microtron.isa.instructions import Rounding

from .shapes import CORNERS

LAYER = Conv2d(height=6, width=5, channels_in=9, channels_out=7, pad=1)
SPECS = [spec for corners in CORNERS.values() for spec in corners.values()]
EACH = {operator.name: next(spec for spec in SPECS if type(spec) is description)
        for description, operator in OPERATORS.items()}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(ANEW)
    kernel._forms.cache_clear()
    return tmp_path / "cache" / "results"


@pytest.mark.parametrize(("name", "hide_latency"), [
    *((name, True) for name in EACH), ("conv2d", False), ("transposed", False)])
def test_it_is_the_same_again_without_being_compiled(name, hide_latency, folder, monkeypatch):
    made = []
    monkeypatch.setattr(lower_schedule, "lower_to_intrinsics",
                        lambda *given: made.append(given) or lower_to_intrinsics(*given))
    first = compile_op(EACH[name], tiny, hide_latency=hide_latency)
    kernel._forms.cache_clear()                 # as in another process
    count = len(made)
    again = compile_op(EACH[name], tiny, hide_latency=hide_latency)
    assert count
    assert len(made) == count
    assert to_bytes(again.program) == to_bytes(first.program)
    assert again.knobs == first.knobs
    assert listing(again.nest) == listing(first.nest)


def test_other_knobs_forms_and_configurations_have_other_names():
    operator = operator_of(LAYER)
    specs = [LAYER, replace(LAYER, zero_point_in=1), replace(LAYER, rounding=Rounding.EVEN),
             replace(LAYER, low=-3), replace(LAYER, stride=(1, 2))]
    made = [(form.config, operator.template.schedule, form, knobs, hide)
            for spec in specs for config in (tiny, small) for form in operator.forms(spec, config)
            for knobs in candidates(operator.template, form)[:5] for hide in (True, False)]
    names = [_key((), each) for each in made]
    assert len(made) >= 100
    assert None not in names
    assert len(set(names)) == len(names)


def test_a_name_does_not_depend_on_what_was_computed_since():
    operator = operator_of(LAYER)
    form = next(iter(operator.forms(LAYER, tiny)))
    knobs = candidates(operator.template, form)[0]
    before = _key((), (form, knobs))
    lower_to_intrinsics(operator.template.schedule(form, knobs), tiny, form.intrinsics)
    assert _key((), (form, knobs)) == before
    assert _key((), (next(iter(operator.forms(LAYER, tiny))), knobs)) == before


def test_what_others_wrote_has_no_name():
    """Nobody would notice if it changed."""
    def theirs():
        """Stands for a schedule of a user."""

    form = next(iter(operator_of(LAYER).forms(LAYER, tiny)))
    strange = replace(form, function=Function("strange", "int8", theirs))
    assert _key((), (form,)) is not None
    for foreign in (theirs, strange, io.StringIO, io.StringIO()):
        assert _key((), (form, foreign)) is None


def test_a_program_that_was_damaged_is_compiled_again(folder):
    first = compile_op(LAYER, tiny)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert to_bytes(compile_op(LAYER, tiny).program) == to_bytes(first.program)
