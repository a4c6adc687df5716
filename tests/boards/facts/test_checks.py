"""Facts of a board's file that do not go together are refused, with the file and the field."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.facts.catalogue import FILES, find_board, load_boards
from microtron.boards.facts.checks import INSIDE_BYTES, check_board
from microtron.boards.facts.clocks import pll_can_generate
from microtron.boards.facts.errors import BoardError
from microtron.boards.facts.in_package_sdram import INSIDE
from microtron.boards.facts.pins import GROUPS
from microtron.boards.soc.system_steps import gateware_steps
from microtron.isa.config import tiny

COLUMN_BITS = 8                 # of the memory in a GW2AR-18


def change(tmp_path, name, old, new):
    """The board of a file in which one thing is different."""
    text = (FILES / f"{name}.toml").read_text()
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1))
    return find_board(str(path))


@pytest.mark.parametrize(("name", "old", "new", "complaint"), [
    ("ulx3s", "bytes = 33_554_432", "bytes = 0",
     "memory: bytes is 0, but must be a power of two up to 1,073,741,824"),
    ("ulx3s", "bytes = 33_554_432", "bytes = 33_554_431", "memory: bytes is 33,554,431, but must"),
    ("ulx3s", "bytes = 33_554_432", "bytes = 2_147_483_648", "memory: bytes is 2,147,483,648, but"),
    ("tang_nano_20k", "bytes = 8_388_608", "bytes = 16_777_216",
     "memory: bytes is 16,777,216, but must be the 8,388,608 in the package of the FPGA"),
    ("pynq_z2", "bytes = 536_870_912", "bytes = 0", "memory: bytes is 0, but must be those that"),
    ("ulx3s", 'kind = "sdr"', 'kind = "none"', "memory: bytes is 33,554,432, but must be 0, since"),
    ("ulx3s", 'kind = "sdr"', 'kind = "processor"',
     "memory: kind is 'processor', but with flow 'ecp5' it must be one of sdr, ddr3, none"),
    ("pynq_z2", 'kind = "processor"', 'kind = "ddr3"', "memory: kind is 'ddr3', but with flow"),
    ("ulx3s", 'kind = "sdr"', 'kind = "ddr3"',
     "memory: rate is '1:1', but for ddr3 on ecp5 it must be 1:2"),
    ("ulx3s", 'chip = "MT48LC16M16"', "", "memory: chip is missing"),
    ("ecpix5", 'cpu = "VexRiscv"', 'cpu = "none"', "cpu is 'none', but ddr3 wants a processor"),
    ("ulx3s", 'cpu = "VexRiscv"', 'cpu = "8051"', "cpu is '8051', but a soft one is VexRiscv"),
    ("ulx3s", "system_hz = 50_000_000", "system_hz = 999_000_000",
     "clock: system_hz is 999,000,000, but the PLL of an ECP5 makes 3,125,000 to 400,000,000"),
    ("ecpix5", "system_hz = 60_000_000", "system_hz = 250_000_000",
     "clock: system_hz is 250,000,000, but the PLL of an ECP5 makes 3,125,000 to 200,000,000, and "
     "twice that for memory"),
    ("ulx3s", "hz = 25_000_000", "hz = 8_000_000", "clock: hz is 8,000,000, but the PLL of an"),
    ("ulx3s", 'pin = "G2"', "", "clock: pin is missing"),
    ("de10_nano", "system_hz = 50_000_000", "system_hz = 60_000_000",
     "clock: system_hz is 60,000,000, but must be the 50,000,000 of the oscillator"),
    ("ulx3s", 'tx = "L4"', 'txd = "L4"', "pins: serial: there is no 'txd'; did you mean tx?"),
    ("ulx3s", 'tx = "L4"', "", "pins: serial: tx is missing"),
    ("ulx3s", "system_hz =", "accelerator_hz = 500_000_000\nsystem_hz =",
     "clock: accelerator_hz is 500,000,000, but the PLL of an ECP5 makes 3,125,000 to 400,000,000"),
    ("pynq_z2", "system_hz =", "accelerator_hz = 60_000_000\nsystem_hz =",
     "clock: accelerator_hz is 60,000,000, but only a system on an ECP5 has a second clock"),
    ("ulx3s", "[pins.serial]", "[pins.seriel]", "pins: there is no 'seriel'; did you mean serial"),
    ("ulx3s", "[pins.led]", "[pins.lde]", "pins: there is no 'lde'; did you mean led?"),
    ("ulx3s", '[pins.sdram_clock]\nclk = "F19"', "", "pins: sdram_clock is missing; it has clk"),
    ("ulx3s", "[pins.sdram]", "[pins.ddram]",
     "pins: there is no 'ddram' for memory of kind 'sdr' on ecp5; did you mean sdram?"),
    ("ulx3s", 'tx = "L4"', 'tx = "L4 L5"', "pins: serial: tx has 2 places, but must have 1"),
    ("ulx3s", 'dm = "U19 E20"', 'dm = "U19"', "pins: sdram: dm has 1 places, but must have 2"),
    ("ulx3s", " J18 J17", " J18", "pins: sdram: dq has 15 places, but must have 8 for each"),
    ("ulx3s", 'ba = "P19 N20"', 'ba = " "', "pins: sdram: ba has 0 places, but must have some"),
    ("ulx3s", 'user = "B2"', 'user = "B2"\nuser_n = "C1"', "pins: led: there are 2 signals"),
    ("ulx3s", 'rx = "M1"', 'rx = "G2"', "pins: serial: rx has 'G2', which is the place of"),
])
def test_a_fact_that_cannot_be_is_refused_before_anything_is_done(tmp_path, name, old, new,
                                                                  complaint):
    with pytest.raises(BoardError, match=re.escape(f"mine.toml: {complaint}")) as caught:
        change(tmp_path, name, old, new)
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("old", "new", "complaint"), [
    ("bytes = 33_554_432", "bytes = 67_108_864",
     "memory: bytes is 67,108,864, but MT48LC16M16 with 16 wires of data has 33,554,432"),
    ("bytes = 33_554_432", "bytes = 16_777_216",
     "memory: bytes is 16,777,216, but MT48LC16M16 with 16 wires of data has 33,554,432"),
    ("MT48LC16M16", "MT41K256M16",
     "memory: kind is 'sdr', but chip is 'MT41K256M16', which is ddr3"),
    (" G20 G19", " G20", "pins: a of the memory has 12 places, but MT48LC16M16 has 13 such wires"),
])
def test_what_only_litedram_knows_of_a_chip_is_checked_where_the_system_is_written(
        tmp_path, monkeypatch, old, new, complaint):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    mine = change(tmp_path, "ulx3s", old, new)
    system = next(step for step in gateware_steps(mine, tiny) if step.name == "system")
    with pytest.raises(MicrotronError, match=re.escape(f"error: mine.toml: {complaint}")):
        system.run(tmp_path, 1, 1)


def test_a_gowin_part_without_memory_in_its_package_is_refused():
    tang = find_board("tang_nano_20k")
    other = replace(tang, part=replace(tang.part, name="GW2A-LV18PG256C8/I7"))
    with pytest.raises(BoardError, match=r"mine: part is 'GW2A-LV18PG256C8/I7', but must be as "
                                         r"GW2AR-LV18, with memory in its package$"):
        check_board(other, "mine")


def test_the_memory_in_a_gowin_package_is_as_large_as_its_wires_reach():
    address_bits, bank_bits, bits = (INSIDE[name][1] for name in ("a", "ba", "dq"))
    assert bits // 8 << address_bits + bank_bits + COLUMN_BITS == INSIDE_BYTES


@pytest.mark.parametrize(("hz", "outputs", "possible"), [
    (25_000_000, (50e6,), True), (100_000_000, (120e6, 25e6), True), (12_000_000, (48e6,), True),
    (9_000_000, (50e6,), False), (25_000_000, (3e6,), False), (25_000_000, (900e6,), False),
    (25_000_000, (390e6, 370e6), False),
])
def test_a_clock_is_possible_if_litex_finds_dividers_for_it(hz, outputs, possible):
    from litex.soc.cores.clock import ECP5PLL

    pll = ECP5PLL()
    pll.clkin_freq = hz
    pll.clkouts = {number: (None, each, 0, 1e-2, True) for number, each in enumerate(outputs)}
    pll.nclkouts = len(outputs)
    try:
        found = bool(pll.compute_config())
    except ValueError:
        found = False
    assert pll_can_generate(hz, outputs) == found == possible


def test_groups_of_pins_are_those_that_boards_have():
    used = {group for each in load_boards() for group in each.pins}
    assert used <= set(GROUPS)
    assert {"serial", "sdram", "ddram", "sdram_clock", "reset", "led"} <= used
