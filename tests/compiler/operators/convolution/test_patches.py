"""Convolutions of patches give what NumPy gives, and are chosen for operators alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron import Conv2d
from microtron.compiler.compile import bound_of, compile_op
from microtron.compiler.operators.convolution import patches
from microtron.compiler.operators.convolution.conv2d import plain_forms
from microtron.compiler.operators.convolution.conv2d_schedule import OPERATOR
from microtron.compiler.operators.convolution.patches import Patch, PatchedForm, patch_convolution
from microtron.compiler.operators.depthwise import grouped
from microtron.compiler.operators.depthwise.grouped import Grouped, PatchedGroupedForm
from microtron.compiler.operators.description import LARGEST
from microtron.isa.config import base, tiny

from ..operations import CONFIGS, check

GROUPS = Grouped(height=11, width=10, channels_in=16, channels_out=16, groups=4, pad=1,
                 zero_point_in=5)
RESNEXT = Grouped(height=56, width=56, channels_in=128, channels_out=128, groups=32, pad=1)
FEW_OUTPUTS = Conv2d(height=128, width=128, channels_in=64, channels_out=2, kernel=(1, 1))


def patched(spec, config, patch):
    """The form of a specification with a given patch, whether it pays or not."""
    after = patch_convolution(spec, patch)
    if isinstance(spec, Grouped):
        return PatchedGroupedForm(**vars(grouped.form_of(after, config, 2)), image=spec,
                                  patch=patch)
    return PatchedForm(**vars(plain_forms(after, config)[0]), image=spec, patch=patch)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("patch", [Patch((2, 2), (2, 2)), Patch((1, 2), (3, 2)),
                                   Patch((1, 1), (1, 4))])
def test_groups_of_patches_equal_numpy(config, patch):
    check(GROUPS, config, form=patched(GROUPS, config, patch))


@settings(max_examples=15)
@given(st.data())
def test_any_patch_of_any_convolution_equals_numpy(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    kernel, groups = (draw(1, 4), draw(1, 4)), draw(1, 3)
    kind, more = (Grouped, {"groups": groups}) if draw(0, 1) else (Conv2d, {})
    spec = kind(height=kernel[0] + draw(0, 6), width=kernel[1] + draw(0, 6),
                channels_in=groups * draw(1, 4), channels_out=groups * draw(1, 4), kernel=kernel,
                stride=(draw(1, 3), draw(1, 3)), pad=tuple(draw(0, 3) for _ in range(4)),
                images=draw(1, 3), zero_point_in=draw(-128, 127), zero_point_out=draw(-128, 127),
                **more)
    results = draw(1, 3), draw(1, 3)
    pixels = tuple(data.draw(st.sampled_from(patches.sizes_of(spec, axis, results[axis])))
                   for axis in range(2))
    config = CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))]
    check(spec, config, form=patched(spec, config, Patch(pixels, results)), seed=draw(0, 99))


@pytest.mark.parametrize(("spec", "patch"), [
    (GROUPS, Patch((4, 1), (2, 1))), (GROUPS, Patch((3, 3), (1, 1))),
    (Conv2d(height=11, width=10, channels_in=3, channels_out=4, stride=2, pad=1, zero_point_in=5),
     Patch((5, 5), (2, 2)))])
def test_patches_that_overlap_equal_numpy(spec, patch):
    for config in CONFIGS.values():
        check(spec, config, form=patched(spec, config, patch))


def test_few_channels_fill_tiles_with_all_rows_that_some_results_see():
    """Two results of a 3 × 3 kernel with stride 2 see five rows of 3 channels, which fill a tile;
    they take three products of it, where two by two folded taps take four."""
    spec = Conv2d(height=224, width=224, channels_in=3, channels_out=32, stride=2, pad=1)
    form = compile_op(spec, base).form
    assert isinstance(form, PatchedForm)
    assert form.patch == Patch((5, 1), (2, 1))
    assert bound_of(spec, base).macs == 112 * 112 * 3 * 2


def test_layouts_say_what_is_packed_and_unpacked():
    """Those of networks: the same bytes as `pack` and `unpack` make."""
    form = patched(GROUPS, tiny, Patch((2, 2), (2, 2)))
    data = np.random.default_rng(1).integers(-128, 128, (1, 16, 11, 10)).astype(np.int8)
    given = {"data": data, "weights": np.zeros((16, 4, 3, 3), np.int8),
             **{name: np.zeros(16, np.int32) for name in ("bias", "multiplier", "shift")}}
    packed = form.pack(given)["data"]
    assert (form.layouts["data"].pack(data).ravel() == packed.ravel()).all()
    tiles = form.layouts["output"].pack(data)
    assert (form.unpack(tiles.reshape(form.shapes["output"])) == data).all()


def test_narrow_groups_and_few_results_are_computed_in_patches():
    """2 × 2 results of a group of 4 channels see 4 × 4 pixels, which are four tiles."""
    form = next(iter(grouped.patched_forms(RESNEXT, base)))
    assert (form.patch, form.spec.kernel) == (Patch((2, 2), (2, 2)), (2, 2))
    form = next(iter(patches.forms_of(FEW_OUTPUTS, base)))
    assert form.patch.results == 8          # of 2 channels, in tiles of 16


def test_groups_that_fill_their_last_tile_in_part_are_computed_in_pairs_of_pixels():
    """Two pixels of 24 channels fill three tiles, where one takes two."""
    some, full = (Grouped(height=14, width=14, channels_in=channels, channels_out=channels,
                          groups=2, pad=1) for channels in (48, 64))
    found = compile_op(some, base).form
    assert isinstance(found, PatchedGroupedForm)
    assert found.patch.results == 2
    assert not [*grouped.patched_forms(full, base)]
    spec = Grouped(height=9, width=7, channels_in=12, channels_out=12, groups=2, pad=1,
                   zero_point_in=3)
    forms = [*grouped.patched_forms(spec, tiny)]
    assert forms
    for form in forms:
        check(spec, tiny, form=form)


def test_layers_between_others_are_never_computed_in_patches():
    assert not any(isinstance(each, PatchedForm)
                   for each in OPERATOR.forms_of(FEW_OUTPUTS, base))
    forms = OPERATOR.forms_of(FEW_OUTPUTS, base, alone=True)
    assert isinstance(forms[-1], PatchedForm)
    assert [each.number for each in forms] == list(range(len(forms)))
    assert isinstance(compile_op(FEW_OUTPUTS, base).form, PatchedForm)


def test_full_tiles_have_no_patches():
    spec = Conv2d(height=8, width=8, channels_in=16, channels_out=32)
    assert not [*patches.forms_of(spec, base)]


def test_patches_do_not_raise_the_bound():
    """It counts what any tiles take, not products with zeros between taps: 2 × 2 results of four
    channels see 16 pixels, which patches of 2 × 2 pixels have in four tiles."""
    plain, *others = (each.work.products
                      for each in grouped.OPERATOR.forms_of(RESNEXT, base, alone=True))
    assert others == [plain] * len(others)
    assert bound_of(RESNEXT, base).macs == plain == 4 / 9 * RESNEXT.macs / 64


@pytest.mark.parametrize("spec", [
    Conv2d(height=LARGEST, width=98, channels_in=2, channels_out=1, kernel=(3, 3), pad=1),
    Grouped(height=4, width=4, channels_in=LARGEST, channels_out=LARGEST, groups=LARGEST, pad=1),
])
def test_patches_beyond_the_limits_of_a_convolution_are_not_tried(spec):
    for patch in patches.patches_of(spec, base):
        patch_convolution(spec, patch)
