"""Firmware: a network's image, its tables seen from the host, and the command that makes it."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.boards.facts.catalogue import find_board as board_of
from microtron.boards.firmware import riscv_gcc
from microtron.boards.firmware.image import BASE, build_image
from microtron.boards.firmware.monitor import format_rom, system_header
from microtron.runtime.monitor.network import NetworkImage

from ...command import command
from ...runtime.small_model import small_graph

BOARD = board_of("ulx3s")
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


@pytest.fixture(scope="module")
def model():
    return microtron.compile(small_graph(), "tiny")


@pytest.fixture(scope="module")
def image(model):
    return build_image(model, BOARD)


def test_the_host_finds_tensors_and_stages_in_the_image(model, image):
    found = NetworkImage(image.content, BASE)
    assert found.name == model.name
    for places, types in ((found.inputs, model.inputs), (found.outputs, model.outputs)):
        assert {name: (place.dtype, place.shape) for name, place in places.items()} == {
            name: (np.dtype(type_.dtype), type_.shape) for name, type_ in types.items()}
        for place in places.values():
            assert BASE + len(image.content) <= place.address < BASE + found.memory_bytes
    names = [found.stage(number) for number in range(found.stages)]
    assert names[0] == "pack image"
    assert names.count("program 0") == names.count("program 1") == 1


def test_the_same_network_gives_the_same_image(model, image):
    assert build_image(model, BOARD) == image


def test_the_elf_is_for_the_processor(image):
    assert image.elf[:5] == b"\x7fELF\x01"                      # 32 bits
    machine, = struct.unpack_from("<H", image.elf, 18)
    assert machine == 243                                       # RISC-V
    assert struct.unpack_from("<I", image.elf, 36)[0] & 1 == 0  # without compressed instructions


def test_a_network_larger_than_memory_is_refused(model):
    small = replace(BOARD, memory=replace(BOARD.memory, bytes=100_000))
    with pytest.raises(MicrotronError, match=r"bytes of memory, but ulx3s has 100,000"):
        build_image(model, small)


def test_a_board_with_a_hard_processor_is_refused(model):
    with pytest.raises(MicrotronError, match="firmware is for boards with a soft processor"):
        build_image(model, board_of("pynq_z2"))


def test_a_missing_compiler_is_named_with_its_package(model, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MicrotronError, match="apt-get install gcc-riscv64-unknown-elf"):
        build_image(model, BOARD)


def test_a_monitor_too_large_for_the_rom_is_refused(tmp_path):
    (tmp_path / "big.c").write_text("const char big[9000] = {1}; const char *use(void) "
                                    "{ return big; }")
    objects = riscv_gcc.compile_sources(tmp_path, [tmp_path / "big.c"], data_cache=True)
    with pytest.raises(MicrotronError, match="the monitor is too large for the ROM"):
        riscv_gcc.link(tmp_path, "monitor.elf", "monitor.ld", objects, {
            "ROM_BASE": 0, "ROM_SIZE": 8192, "SRAM_BASE": 1 << 28, "SRAM_SIZE": 4096},
            "-nostdlib", "-Wl,--undefined=use")


def test_the_rom_is_words_of_hexadecimal_digits():
    assert format_rom(b"\x01\x02\x03\x04\x05") == "04030201\n00000005\n"


def test_the_systems_header_has_what_the_facts_have():
    facts = {"board": "mine", "clock_hz": 7, "registers": {"uart_rxtx": 16}, "interrupts": {"a": 3},
             "memories": {name: {"base": 1, "size": 2}
                          for name in ("rom", "sram", "main_ram", "registers", "csr")},
             "dram": {"modules": 2, "bitslips": 4, "delays": 8, "start": [
                 {"address": 8, "bank": 1, "command": 3, "is_control": True, "wait": 4}]}}
    text = system_header(facts)
    for line in ('#define BOARD "mine"', "#define CLOCK_HZ 7u", "#define CSR_UART_RXTX 0x10u",
                 "#define INTERRUPT_A 3", "#define DRAM_START { 0x8, 1, 3, 1, 4 }"):
        assert f"{line}\n" in text


def test_the_command_writes_an_elf_and_the_image(model, image, tmp_path):
    model.save(tmp_path / "small.mt")
    ended = command("firmware", tmp_path / "small.mt", "--board", "ulx3s", "--json")
    assert ended.code == 0, ended.error
    found = json.loads(ended.out)
    assert found["memory"] == image.memory_bytes
    assert (tmp_path / "small.bin").read_bytes() == image.content
    assert (tmp_path / "small.elf").read_bytes() == image.elf


def test_the_command_compiles_for_the_boards_memory(tmp_path):
    ended = command("firmware", DIGITS, "--board", "ulx3s", "--config", "tiny", "-o",
                    tmp_path / "digits.elf")
    assert ended.code == 0, ended.error
    model = microtron.compile(DIGITS, "tiny", memory=BOARD.memory.timing)
    assert (tmp_path / "digits.bin").read_bytes() == build_image(model, BOARD).content


@pytest.mark.parametrize(("options", "complaint"), [
    (["--board", "ulx3"], "there is no board 'ulx3'"),
    (["--board", "pynq_z2"], "firmware is for boards with a soft processor"),
    (["--board", "ulx3s", "-o", "x.bin"], "x.bin: firmware is an .elf file"),
    (["--board", "ulx3s", "--config", "tiny"], "was compiled already"),
])
def test_the_command_refuses_in_one_line(model, tmp_path, options, complaint):
    model.save(tmp_path / "small.mt")
    ended = command("firmware", tmp_path / "small.mt", *options, cwd=tmp_path)
    assert ended.code == 2
    assert complaint in ended.error
    assert ended.error.count("\n") == 1
