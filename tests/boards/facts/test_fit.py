"""A configuration that a part is too small for is refused with the resource."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from microtron.base.errors import ConfigError
from microtron.boards.facts.board import RESOURCES
from microtron.boards.facts.catalogue import find_board, load_boards
from microtron.boards.facts.errors import BoardError
from microtron.boards.facts.fit import (
    AREAS,
    FAMILIES,
    check_fits,
    count_multipliers,
    find_shortage,
    largest_preset,
    measured_resources,
)
from microtron.boards.facts.toml_table import read_toml
from microtron.hw.targets import LANE_MULTIPLIERS, TARGETS
from microtron.isa.config import PRESETS, base, tiny, wide


def test_every_measured_area_has_every_resource_and_a_shell():
    for family, presets in read_toml(AREAS).items():
        assert family in FAMILIES.values()
        assert set(presets) <= {"shell", "ethernet", *PRESETS}
        for name, area in presets.items():
            assert set(area) == set(RESOURCES), (family, name)
        assert "shell" in presets


def test_what_does_not_fit_is_said_with_the_resource_and_what_would():
    with pytest.raises(BoardError, match=r"^ulx3s: the configuration does not fit: it takes .* "
                                         r"multipliers, but LFE5U-85F has 156; the largest preset "
                                         r"that fits is \w+$"):
        check_fits(find_board("ulx3s"), base)


def test_scratchpads_alone_may_be_too_large():
    small = replace(wide, wgt_bytes=1 << 20)
    assert measured_resources(find_board("zybo_z7_10"), small) is None
    assert re.search(r"its scratchpads hold 11,520 Kibit, but the blocks of RAM of xc7z010 hold "
                     r"2,160", find_shortage(find_board("zybo_z7_10"), small))


def test_addresses_reach_all_of_memory():
    narrow = replace(tiny, address_bits=24)
    assert find_shortage(find_board("tang_nano_20k"), narrow) is None
    assert find_shortage(find_board("ulx3s"), narrow) == (
        "its addresses have 24 bits, but memory 32 MiB")


def test_the_boards_own_preset_fits_wherever_areas_are_known():
    for each in load_boards():
        config = PRESETS[each.preset]
        assert find_shortage(each, config) is None, each.name


def test_luts_that_enable_registers_count_where_open_tools_build():
    small_zynq = find_board("zybo_z7_10")
    assert find_shortage(small_zynq, tiny) == "it takes 17,998 LUTs, but xc7z010 has 17,600"
    assert largest_preset(small_zynq) == "mini"


@pytest.mark.parametrize(("name", "largest"), [
    ("ulx3s", "slim"), ("pynq_z2", "slim"), ("tang_nano_20k", "compact"), ("zcu104", "wide"),
    ("kv260", "base"), ("ultra96", "base")])
def test_the_largest_preset_of_a_board(name, largest):
    assert largest_preset(find_board(name)) == largest


def test_no_board_has_a_preset_of_its_own_that_is_larger_than_the_largest():
    for each in load_boards():
        largest = largest_preset(each)
        assert largest is not None, each.name
        assert (PRESETS[each.preset].macs_per_cycle
                <= PRESETS[largest].macs_per_cycle), each.name


def test_products_that_no_multiplier_is_left_for_are_refused_though_nobody_measured_the_area():
    many = replace(wide, wgt_bytes=64 << 10, acc_bytes=64 << 10, uop_bytes=16 << 10)
    assert measured_resources(find_board("ultra96"), many) is None
    with pytest.raises(BoardError, match=r"^ultra96: the configuration does not fit: its products "
                                         r"and lanes take 640 multipliers, but xczu3eg has 360; "):
        check_fits(find_board("ultra96"), many)
    assert find_shortage(find_board("zcu104"), many) is None
    assert find_shortage(find_board("de10_nano"), many) is None, (
        "Quartus makes multipliers of logic, too")


def test_a_lane_takes_twice_as_many_multipliers_where_they_are_half_as_wide():
    assert count_multipliers(find_board("tang_nano_20k"), PRESETS["micro"]) == 12, "as routed"
    assert count_multipliers(find_board("tang_nano_20k"), PRESETS["compact"]) == 24, "as routed"
    assert count_multipliers(find_board("ulx3s"), PRESETS["micro"]) == 8


def test_pairs_of_products_are_for_parts_that_are_short_of_multipliers():
    eight = replace(PRESETS["small"], vector_cycles=8)
    assert count_multipliers(find_board("ulx3s"), eight) == 64 + 4
    assert count_multipliers(find_board("colorlight_i9"), PRESETS["small"]) == 32 + 16


def test_windows_have_multipliers_of_their_own_beside_pairs():
    config = replace(tiny, block_in=32, vector_cycles=2, window_taps=3)
    assert count_multipliers(find_board("pynq_z2"), config) == 64 + 3 * 4 + 8, "as synthesized"
    assert count_multipliers(find_board("ulx3s"), config) == 128 + 8, "those of the array"


def test_a_bus_that_the_memory_port_of_a_zynq_does_not_have_is_refused_by_whoever_asks():
    with pytest.raises(ConfigError, match="bus_bits is 128, but the memory port"):
        check_fits(find_board("pynq_z2"), replace(tiny, bus_bits=128))


def test_a_bridge_over_ethernet_takes_its_part():
    there = find_board("ecpix5")
    without = measured_resources(replace(there, ethernet=None), tiny)
    found = measured_resources(there, tiny)
    assert without == measured_resources(find_board("ulx3s"), tiny)
    assert found["lut"] - without["lut"] > 6_000


def test_a_bare_accelerator_has_no_shell_around_it():
    ulx3s = find_board("ulx3s")
    bare = replace(ulx3s, memory=replace(ulx3s.memory, kind="none", bytes=0))
    assert measured_resources(bare, tiny)["lut"] == measured_resources(ulx3s, tiny)["lut"] - 6109


def test_the_largest_preset_is_the_one_with_the_most_multipliers_that_fits():
    assert largest_preset(find_board("ulx3s")) == "slim"
    board = find_board("ulx3s")
    nothing = replace(board, part=replace(board.part, resources=dict.fromkeys(RESOURCES, 1)))
    assert largest_preset(nothing) is None
    with pytest.raises(BoardError, match=r"LFE5U-85F has 1$"):
        check_fits(nothing, tiny)


def test_multipliers_of_measured_presets_are_those_of_the_hardware():
    targets = {"ecp5": "ecp5", "gowin": "gowin", "xilinx": "xc7", "zynq": "xc7"}
    for family, presets in read_toml(AREAS).items():
        for name, config in PRESETS.items():
            if name in presets:
                in_pairs = TARGETS[targets[family]].packs_pairs(config)
                products = config.macs_per_cycle // (2 if in_pairs else 1)
                lanes = LANE_MULTIPLIERS * config.alu_lanes * (2 if family == "gowin" else 1)
                windows = 3 * config.batch * config.depthwise_lanes * (
                    in_pairs and config.has_windows)
                assert presets[name]["dsp"] == products + windows + lanes, (family, name)
