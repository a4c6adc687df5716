"""A configuration that a part is too small for is refused with the resource."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from microtron.boards.board import RESOURCES
from microtron.boards.catalogue import board, boards
from microtron.boards.facts import BoardError, read_toml
from microtron.boards.fit import AREAS, FAMILIES, check_fits, largest_preset, needed, shortage
from microtron.hw.targets import LANE_MULTIPLIERS, TARGETS
from microtron.isa.config import PRESETS, base, tiny, wide


def test_every_measured_area_has_every_resource_and_a_shell():
    for family, presets in read_toml(AREAS).items():
        assert family in FAMILIES.values()
        assert set(presets) <= {"shell", *PRESETS}
        for name, area in presets.items():
            assert set(area) == set(RESOURCES), (family, name)
        assert "shell" in presets


def test_what_does_not_fit_is_said_with_the_resource_and_what_would():
    with pytest.raises(BoardError, match=r"^ulx3s: the configuration does not fit: it takes .* "
                                         r"multipliers, but LFE5U-85F has 156; the largest preset "
                                         r"that fits is \w+$"):
        check_fits(board("ulx3s"), base)


def test_scratchpads_alone_may_be_too_large():
    small = replace(wide, wgt_bytes=1 << 20)
    assert needed(board("zybo_z7_10"), small) is None
    assert re.search(r"its scratchpads hold 11,520 Kibit, but the blocks of RAM of xc7z010 hold "
                     r"2,160", shortage(board("zybo_z7_10"), small))


def test_addresses_reach_all_of_memory():
    narrow = replace(tiny, address_bits=24)
    assert shortage(board("tang_nano_20k"), narrow) is None
    assert shortage(board("ulx3s"), narrow) == "its addresses have 24 bits, but memory 32 MiB"


def test_the_boards_own_preset_fits_wherever_areas_are_known():
    for each in boards():
        config = PRESETS[each.preset]
        assert shortage(each, config) is None, each.name


def test_luts_that_enable_registers_count_where_open_tools_build():
    small_zynq = board("zybo_z7_10")
    assert shortage(small_zynq, tiny) == "it takes 17,998 LUTs, but xc7z010 has 17,600"
    assert largest_preset(small_zynq) == "mini"
    assert largest_preset(board("pynq_z2")) == "small"


def test_the_largest_preset_is_the_one_with_the_most_multipliers_that_fits():
    assert largest_preset(board("ulx3s")) == "small"
    nothing = replace(board("ulx3s"), part=replace(board("ulx3s").part, resources=dict.fromkeys(
        RESOURCES, 1)))
    assert largest_preset(nothing) is None
    with pytest.raises(BoardError, match=r"LFE5U-85F has 1$"):
        check_fits(nothing, tiny)


def test_multipliers_of_measured_presets_are_those_of_the_hardware():
    targets = {"ecp5": "ecp5", "gowin": "gowin", "xilinx": "xc7", "zynq": "xc7"}
    for family, presets in read_toml(AREAS).items():
        for name, config in PRESETS.items():
            if name in presets:
                products = config.macs_per_cycle // (2 if TARGETS[targets[family]].pairs(config)
                                                     else 1)
                lanes = LANE_MULTIPLIERS * config.alu_lanes
                assert presets[name]["dsp"] == products + lanes, (family, name)
