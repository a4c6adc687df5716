"""The accelerator's own clock on an ECP5: settings of its PLL, and the step after routing."""

from __future__ import annotations

import json

import pytest

from microtron.boards.ecp5.set_clock import MARGIN, replace_settings, set_clock
from microtron.boards.facts.clocks import PHASE_HZ, VCO_HZ
from microtron.boards.facts.ecp5_pll import choose_settings
from microtron.boards.facts.errors import BoardError

MHZ = 1_000_000
NET = "accelerator_clk"


@pytest.mark.parametrize("oscillator", [10, 12, 25, 27, 48, 100, 125])
@pytest.mark.parametrize("most", [3.2, 50, 66.8, 83.3, 113, 399])
def test_a_pll_makes_the_fastest_clock_below_a_limit(oscillator, most):
    found = choose_settings(oscillator * MHZ, most * MHZ)
    phase = oscillator * MHZ / found.input_divider
    vco = phase * found.feedback_divider * found.second_divider
    assert PHASE_HZ[0] <= phase <= PHASE_HZ[1]
    assert VCO_HZ[0] <= vco <= VCO_HZ[1]
    assert found.hz == pytest.approx(vco / found.output_divider)
    assert 0.95 * most * MHZ <= found.hz <= most * MHZ
    assert all(1 <= value <= 128 for name, value in found.parameters.items()
               if name.endswith("_DIV"))


def test_what_no_pll_makes_is_refused():
    with pytest.raises(BoardError, match=r"makes no clock up to 1,000,000 Hz of 25,000,000 Hz"):
        choose_settings(25 * MHZ, MHZ)


# What nextpnr 0.11.1 writes for the same PLL at 387.5 and at 196.875 MHz, without most of what is
# the same in both.
GROUP = """\
.tile_group MIB_R4C0:PLL0_UL MIB_R5C0:PLL1_UL
word: CLKI_DIV {}
word: CLKFB_DIV {}
word: CLKOP_DIV {}
word: CLKOP_CPHASE {}
word: CLKOP_FPHASE 000
word: CLKOS_DIV 0000000
word: CLKOS_CPHASE 0000000
word: CLKOS2_DIV 0000111
enum: FEEDBK_PATH INT_OS

"""
FAST = GROUP.format("0000000", "0011110", "0000001", "0000001")
SLOW = GROUP.format("0000001", "0111110", "0000011", "0000011")
REST = ".device LFE5U-85F\n\n.tile R2C4:PLC2\narc: A1 H02W0701\nword: SLICEA.K1.INIT 1010\n\n"
OTHER = GROUP.format("0000000", "0000001", "0001011", "0001011").replace("R4", "R94")
OSCILLATOR, WANTED = 25 * MHZ, 387_500_000


def test_other_settings_are_those_that_nextpnr_writes():
    before, after = (choose_settings(OSCILLATOR, hz) for hz in (WANTED, 196_875_000))
    assert replace_settings(REST + FAST + OTHER, before, after) == REST + SLOW + OTHER


def set_it(folder, reached, config=REST + FAST + OTHER):
    (folder / "timing.json").write_text(json.dumps({
        "fmax": {f"$glbnet${NET}": {"achieved": reached, "constraint": WANTED / 1e6},
                 "$glbnet$sys_clk": {"achieved": 61.0, "constraint": 50}}, "utilization": {}}))
    (folder / "routed.config").write_text(config)
    set_clock(str(folder / "timing.json"), str(folder / "routed.config"), OSCILLATOR, WANTED,
              str(folder / "design.config"), str(folder / "clock.json"))
    return json.loads((folder / "clock.json").read_text()), (folder / "design.config").read_text()


@pytest.mark.parametrize("reached", [203.0, 387.4])
def test_the_clock_is_what_was_reached_less_the_margin(reached, tmp_path):
    chosen, config = set_it(tmp_path, reached)
    settings = choose_settings(OSCILLATOR, reached * MHZ * (1 - MARGIN))
    assert chosen == {"hz": round(settings.hz), "margin": MARGIN, "reached_mhz": reached}
    assert chosen["hz"] <= (1 - MARGIN) * reached * MHZ
    assert f"word: CLKOP_DIV {settings.output_divider - 1:07b}\n" in config
    assert config.startswith(REST)
    assert config.endswith(OTHER)


@pytest.mark.parametrize("reached", [387.5, 401.0])
def test_a_clock_that_was_reached_stays(reached, tmp_path):
    chosen, config = set_it(tmp_path, reached)
    assert chosen == {"hz": WANTED, "margin": 0, "reached_mhz": reached}
    assert config == REST + FAST + OTHER


@pytest.mark.parametrize(("config", "number"), [(REST + OTHER, 0), (FAST + FAST + REST, 2)])
def test_it_must_be_known_which_pll_is_the_accelerators(config, number, tmp_path):
    with pytest.raises(BoardError, match=f"has {number} PLLs that make 387,500,000 Hz of"):
        set_it(tmp_path, 100.0, config)
