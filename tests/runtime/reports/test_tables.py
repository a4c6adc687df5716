"""Every table of the command line fits into 80 columns, whatever the numbers and names are."""

import re
from dataclasses import replace

import pytest

from microtron.cli import kernel
from microtron.isa.assembly.assembler import assemble
from microtron.isa.config import PRESETS
from microtron.isa.instructions import ISA
from microtron.isa.manual import explain, summary
from microtron.isa.manual_prose import EXAMPLE
from microtron.runtime.reports import tables
from microtron.runtime.reports.profile import profile

HUGE = 10 ** 18 - 1                 # more than anybody waits for
PROFILE = profile(assemble(EXAMPLE))
MOST_CYCLES = 10 ** 10              # of a kernel that is simulated
LONG = "a/very/long/folder/" * 8 + "[and a name with spaces and brackets].mt"


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def lines(capsys):
    """What was printed, if it fits."""
    found = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert found
    assert max(map(len, found)) <= 80
    return found


def larger(numbers, factor):
    return {name: number * factor for name, number in numbers.items()}


def report(factor):
    """A report on a program that is so many times as long."""
    found = PROFILE.report
    counts = replace(found.counts, **{
        each: larger(getattr(found.counts, each), factor)
        for each in ("instructions", "bytes_loaded", "bytes_stored", "most_tokens")},
        tile_products=HUGE, alu_vectors=HUGE)
    return replace(found, counts=counts, cycles=min(found.cycles * factor, HUGE))


@pytest.mark.parametrize("factor", [1, 10 ** 4, 10 ** 15])
def test_a_report_keeps_each_number_with_its_name(capsys, factor):
    tables.show(LONG, tables.report_rows(report(factor)))
    text = "\n".join(lines(capsys))
    assert re.sub(r"[\n ]", "", LONG) in re.sub(r"[\n ]", "", text)
    for numbers in (report(factor).counts.bytes_loaded, report(factor).counts.most_tokens):
        assert len(numbers) > 2
        for name, number in numbers.items():
            assert f"{number:,} {name}" in text


@pytest.mark.parametrize(("factor", "title"), [
    (1, "Cycles"), (10 ** 5, "Thousands of cycles"), (10 ** 8, "Millions of cycles"),
    (10 ** 11, "Billions of cycles"), (10 ** 14, "Trillions of cycles")])
def test_a_profile_scales_numbers_that_are_too_long(capsys, factor, title):
    engines = tuple(replace(each, tokens=larger(each.tokens, factor),
                            **{name: getattr(each, name) * factor for name in
                               ("working", "memory", "queue", "idle")})
                    for each in PROFILE.engines)
    waits = tuple(replace(each, cycles=each.cycles * factor) for each in PROFILE.waits)
    tables.show_profile(LONG, replace(PROFILE, report=report(factor), engines=engines,
                                      waits=waits))
    found = lines(capsys)
    assert f"{title} of each engine" in found
    for engine in engines:
        assert any(line.startswith("│ working") and f" {_scale(engine.working, title)} " in line
                   for line in found)
    assert any(f"{waits[0].cycles:,} │ {waits[0].position} " in line for line in found)


def _scale(number, title):
    units = {"Thousands": 10 ** 3, "Millions": 10 ** 6, "Billions": 10 ** 9, "Trillions": 10 ** 12}
    return f"{number / units.get(title.split()[0], 1):,.0f}"


def test_configurations_and_the_list_of_instructions_fit(capsys):
    tables.show_configs(PRESETS)
    tables.show("Instructions", summary())
    text = "\n".join(lines(capsys))
    assert all(name in text for name in (*PRESETS, *(kind.mnemonic() for kind in ISA)))


@pytest.mark.parametrize("name", [*(kind.mnemonic() for kind in ISA), "uop"])
def test_the_explanation_of_an_instruction_fits(capsys, name):
    tables.show_section(explain(name))
    text = "\n".join(lines(capsys))
    assert text.startswith(name)
    assert "byte  type" in text
    assert "](#" not in text


def test_the_cycles_of_a_kernel_fit():
    """Numbers are as large as the limit on cycles lets them be."""
    costs = dict.fromkeys(("cycles", "macs", "products", "bytes", "passes", "bound"), MOST_CYCLES)
    costs |= {"efficiency": 0.5, "utilization": 0.5, "limit": "memory",
              "bounds": {"memory": MOST_CYCLES, "alu": MOST_CYCLES}}
    found = list(kernel._cycles(costs))
    assert max(map(len, found)) <= 80
    assert sum(f"{MOST_CYCLES:,}" in line for line in found) == 4
