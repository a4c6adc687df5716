"""Two products in one multiplier, for every activation and every pair of weights."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyosys
import pytest
from amaranth.back import rtlil

from microtron.base.errors import MicrotronError
from microtron.hw.gemm.mac import MacArray, mac_latency
from microtron.hw.targets import TARGETS, find_target
from microtron.isa.config import base, small, tiny, wide

RUNTIME = Path(pyosys.__file__).parent / "share/include/backends/cxxrtl/runtime"
TWO_BY_TWO = replace(tiny, block_in=2, block_out=2)
# A new activation and pair of weights every cycle, beside another channel whose products are as
# large, or as small, as they can be. Activations are bytes 0 and 1 of `inp`; weights of channel 0,
# the low one, bytes 0 and 1 of `wgt`, and those of channel 1 bytes 2 and 3.
DRIVER = """
#include "unit.cc"
#include <cstdio>
typedef int8_t I8;
int main() {
    cxxrtl_design::p_unit unit;
    const long cases = 1L << 24, latency = LATENCY;
    for (int beside = 0; beside < 3; beside++) {
        const int act = "\\x80\\x80\\x7f"[beside] & 255, wgt = "\\x80\\x7f\\x80"[beside] & 255;
        for (long cycle = 0; cycle < cases + latency; cycle++) {
            const unsigned now = cycle;
            unit.p_inp.set<uint32_t>(now & 255 | act << 8);
            unit.p_wgt.set<uint32_t>(now >> 8 & 255 | wgt << 8 | (now >> 16 & 255) << 16
                                     | uint32_t(wgt) << 24);
            unit.p_clk.set<bool>(false); unit.step();
            if (cycle >= latency) {
                const long of = cycle - latency;
                const int a = I8(of), extra = I8(act) * I8(wgt);
                const int low = I8(of >> 8) * a + extra, high = I8(of >> 16) * a + extra;
                const long got = unit.p_sums.get<uint64_t>(), field = (1L << WIDTH) - 1;
                if (got != ((high & field) << WIDTH | (low & field)))
                    return std::printf("act %d, weights %d and %d, beside %d: %lx\\n",
                                       a, I8(of >> 8), I8(of >> 16), beside, got);
            }
            unit.p_clk.set<bool>(true); unit.step();
        }
    }
}
"""


@pytest.mark.parametrize("port_bits", [
    pytest.param(25, id="side by side", marks=pytest.mark.soak),
    pytest.param(18, id="overlapping")])
def test_products_are_exact_for_every_activation_and_pair_of_weights(port_bits, tmp_path):
    unit = MacArray(TWO_BY_TWO)
    platform = replace(TARGETS["xc7"], port_bits=port_bits)
    (tmp_path / "unit.il").write_text(rtlil.convert(unit, name="unit", platform=platform, ports=(
        unit.inp, unit.wgt, unit.sums.as_value())))
    width = len(unit.sums.as_value()) // 2
    (tmp_path / "driver.cc").write_text(DRIVER.replace("LATENCY", str(mac_latency(TWO_BY_TWO)))
                                        .replace("WIDTH", str(width)))
    for command in (
            [sys.executable, "-c", "from pyosys import libyosys as ys; ys.run_pass("
             "'read_rtlil unit.il; flatten; proc; opt; write_cxxrtl -O6 unit.cc')"],
            ["g++", "-std=c++17", "-O2", f"-I{RUNTIME}", "driver.cc", "-o", "driver"],
            ["./driver"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-300:] + done.stderr[-3000:]


@pytest.mark.parametrize(("name", "config", "pairs"), [
    ("xc7", tiny, True), ("xc7", base, True), ("xc7", replace(tiny, block_out=1), False),
    ("xc7", replace(tiny, block_in=1, inp_bytes=64), False), ("ecp5", small, False),
    ("ecp5", base, True), ("ecp5", replace(base, wgt_bits=4), True), ("gowin", wide, False),
    ("gowin", replace(wide, wgt_bits=4), False)])
def test_multipliers_are_shared_where_the_part_has_too_few_or_adds_behind_them(name, config, pairs):
    assert find_target(name).packs_pairs(config) == pairs


def test_parts_of_a_family_differ_in_how_many_multipliers_they_have():
    found = [find_target("ecp5", count).packs_pairs(small) for count in (28, 79, 80)]
    assert found == [True, True, False]
    assert find_target("xc7", 10_000).packs_pairs(small)


def test_an_unknown_target_is_refused():
    with pytest.raises(MicrotronError, match=r"^target 'xc9' is not one of xc7, ecp5, gowin$"):
        find_target("xc9")
