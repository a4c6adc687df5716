"""Runs cocotb tests on a Verilog top under Verilator, compiled once per configuration and kept.

cocotb's own runner makes every signal of the design public, which keeps Verilator from optimizing
anything; here only the ports are.
"""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from microtron.isa.config import Config
from microtron.isa.errors import MicrotronError
from microtron.runtime.rtl_build import TOP, Design, cached, call

HERE = Path(__file__).resolve().parent
PORTS = ("clk", "rst", "interrupt", "m_axi_*", "s_axi_*", "trace_*")
OPTIONS = ("--cc", "--exe", "--build", "--vpi", "-O3", "--x-assign", "fast", "--x-initial", "fast",
           "--noassert", "-Wno-fatal", "-Wno-lint", "--timescale", "1ns/1ps", "--prefix", "Vtop",
           "-MAKEFLAGS", "OPT_FAST=-O2 OPT_GLOBAL=-O1 OPT_SLOW=-O0")


class CocotbError(AssertionError):
    """A test that failed in the simulator. The message ends with the simulator's last lines."""


def run(config: Config, module: str, design: Design, folder: Path, *, seed: int = 1,
        limit: int = 600, **settings: str) -> int:
    """Run all tests of a module of this folder.

    `settings` reach the tests as environment variables in capitals. `limit` is in seconds, against
    a simulator that hangs. Returns the number of tests that passed; none is an error.
    """
    program = simulator(config, design)
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    done = subprocess.run(
        [program], cwd=folder, env=_environment(module, results, seed, settings), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit, check=False)
    if not results.exists():
        raise CocotbError(f"{module}: the simulator left no results\n{_tail(done.stdout)}")
    cases = ElementTree.parse(results).findall(".//testcase")
    failed = [case.get("name") for case in cases
              if case.find("failure") is not None or case.find("error") is not None]
    if failed or not cases:
        raise CocotbError(f"{module}: failed: {', '.join(failed) or 'there are no tests'}\n"
                          f"{_tail(done.stdout)}")
    return len(cases)


def simulator(config: Config, design: Design) -> Path:
    """The program that simulates a design and runs cocotb inside."""
    import cocotb
    import cocotb.config

    verilog = design(config)
    libraries = cocotb.config.libs_dir
    main = Path(cocotb.config.share_dir) / "lib" / "verilator" / "verilator.cpp"

    def make(folder: Path, log: Path) -> None:
        (folder / "build").mkdir()
        (folder / f"{TOP}.v").write_text(verilog)
        (folder / "ports.vlt").write_text("\n".join((
            "`verilator_config",
            *(f'public_flat_rw -module "{TOP}" -var "{port}"' for port in PORTS), "")))
        call(folder, log, "verilator", *OPTIONS, "-j", str(os.cpu_count() or 1),
             "--top-module", TOP, "--Mdir", "build", "-o", f"../{TOP}",
             "-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator",
             str(main), "ports.vlt", f"{TOP}.v")
        shutil.rmtree(folder / "build")

    made_from = (*OPTIONS, *PORTS, cocotb.__version__, libraries, verilog)
    return cached(f"cocotb-{config.digest}", made_from, make) / TOP


def _environment(module: str, results: Path, seed: int, settings: dict[str, str]) -> dict[str, str]:
    import find_libpython

    library = find_libpython.find_libpython()
    if not library:
        raise MicrotronError(f"cocotb needs the shared library of Python, but {sys.executable} has "
                             f"none")
    return {**os.environ,
            "LIBPYTHON_LOC": library, "VIRTUAL_ENV": sys.prefix,
            "PYTHONPATH": str(HERE),
            "MODULE": module, "TOPLEVEL": TOP, "TOPLEVEL_LANG": "verilog",
            "RANDOM_SEED": str(seed), "COCOTB_RESULTS_FILE": str(results),
            "COCOTB_LOG_LEVEL": "WARNING", "COCOTB_ANSI_OUTPUT": "0",
            **{name.upper(): value for name, value in settings.items()}}


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-40:])
