"""The monitor's search for the delays of memory, compiled for this machine, against a fake chip."""

from __future__ import annotations

import subprocess

import pytest

from microtron.boards.firmware.riscv_gcc import SOURCE

MODULES, SLIPS, DELAYS = 2, 4, 8
# A chip whose bytes come back right only with some slips, and from one delay to another.
FAKE = """
#include <stdint.h>
#include <stdio.h>
extern uint8_t memory[256];
#define MAIN_RAM_BASE ((uintptr_t)memory)
#define DRAM_MODULES %(modules)du
#define DRAM_BITSLIPS %(slips)du
#define DRAM_DELAYS %(delays)du
enum { CSR_DRAM_PHY_DLY_SEL, CSR_DRAM_PHY_RDLY_DQ_BITSLIP_RST, CSR_DRAM_PHY_RDLY_DQ_BITSLIP,
       CSR_DRAM_PHY_RDLY_DQ_RST, CSR_DRAM_PHY_RDLY_DQ_INC_ };
#define CSR_DRAM_PHY_RDLY_DQ_INC CSR_DRAM_PHY_RDLY_DQ_INC_
void write32(uintptr_t address, uint32_t value);
void forget_data(void);
"""
CHIP = """
#include "hardware.h"
#include "leveling.h"
uint8_t memory[256];
static uint8_t right[256];
static int is_filled, slips[%(modules)d], delays[%(modules)d];
static const int window[%(modules)d][3] = { %(windows)s };      /* slips, first, last delay */
static uint32_t selected;

void write32(uintptr_t address, uint32_t value)
{
    for (int i = 0; i < %(modules)d; i++)
        if (selected >> i & 1) {
            if (address == CSR_DRAM_PHY_RDLY_DQ_BITSLIP_RST) slips[i] = 0;
            if (address == CSR_DRAM_PHY_RDLY_DQ_BITSLIP) slips[i]++;
            if (address == CSR_DRAM_PHY_RDLY_DQ_RST) delays[i] = 0;
            if (address == CSR_DRAM_PHY_RDLY_DQ_INC) delays[i]++;
        }
    if (address == CSR_DRAM_PHY_DLY_SEL) selected = value;
}

void forget_data(void)          /* the next read shows what the delays let through */
{
    if (!is_filled)
        for (int i = 0; i < 256; i++) right[i] = memory[i];
    is_filled = 1;
    for (int i = 0; i < 256; i++) {
        const int *w = window[i %% %(modules)d];
        int d = delays[i %% %(modules)d];
        memory[i] = right[i] ^ !(slips[i %% %(modules)d] == w[0] && d >= w[1] && d <= w[2]);
    }
}

int main(void)
{
    printf("%%d", level_memory());
    for (int i = 0; i < %(modules)d; i++) printf(" %%d %%d", slips[i], delays[i]);
    return 0;
}
"""


def level(folder, windows) -> list[int]:
    """Whether memory works then; slips and delay of each chip."""
    facts = {"modules": MODULES, "slips": SLIPS, "delays": DELAYS,
             "windows": ", ".join(f"{{ {slips}, {first}, {last} }}"
                                  for slips, first, last in windows)}
    (folder / "hardware.h").write_text(FAKE % facts)
    (folder / "chip.c").write_text(CHIP % facts)
    for name in ("leveling.c", "leveling.h"):
        (folder / name).write_text((SOURCE / name).read_text())
    subprocess.run(["gcc", "-Wall", "-Werror", "chip.c", "leveling.c", "-o", "chip"], cwd=folder,
                   check=True)
    done = subprocess.run([folder / "chip"], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize("windows", [((0, 0, 7), (3, 2, 4)), ((1, 5, 5), (2, 0, 1)),
                                     ((3, 6, 7), (0, 3, 7))])
def test_each_chip_is_read_in_the_middle_of_its_window(windows, tmp_path):
    works, *chosen = level(tmp_path, windows)
    assert works
    for (slips, first, last), found in zip(windows, (chosen[:2], chosen[2:]), strict=True):
        assert found[0] == slips
        assert abs(found[1] - (first + last) / 2) <= 0.5


def test_memory_that_never_answers_right_is_told(tmp_path):
    works, *_ = level(tmp_path, ((0, 0, 7), (9, 0, 0)))
    assert not works
