"""Runs cocotb tests on a Verilog top under Verilator, compiled once per configuration and kept.

The design is wrapped in a bench without ports, whose signals are all that cocotb sees. Driving the
ports of a top module itself does not work here: Verilator 5.006 keeps two copies of a public port,
and an iteration over the top finds the one that is overwritten. It is faster, too: cocotb's own
runner makes every signal public, which keeps Verilator from optimizing any.
"""

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path

from microtron.base.errors import MicrotronError
from microtron.isa.config import Config
from microtron.runtime.devices.rtl_build import TOP, cached_build, call

from ..emitted import emitted

HERE = Path(__file__).resolve().parent
BENCH = "bench"
OPTIONS = ("--cc", "--exe", "--build", "--vpi", "-O3", "--x-assign", "fast", "--x-initial", "fast",
           "--noassert", "-Wno-fatal", "-Wno-lint", "--timescale", "1ns/1ps", "--prefix", "Vtop",
           # Python takes the time of a run. In one file, headers are read once instead of 13 times.
           "-MAKEFLAGS", "VM_PARALLEL_BUILDS=0 OPT_FAST=-O0 OPT_GLOBAL=-O0 OPT_SLOW=-O0")


class CocotbError(AssertionError):
    """A test that failed in the simulator. The message ends with the simulator's last lines."""


def run(config: Config, module: str, folder: Path, *, seed: int = 1, limit: int = 600,
        **settings: str) -> int:
    """Run all tests of a module of this folder on the accelerator of a configuration.

    `settings` reach the tests as environment variables in capitals. `limit` is in seconds, against
    a simulator that hangs. Returns the number of tests that passed; none is an error.
    """
    program = simulator(config)
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


@cache
def simulator(config: Config) -> Path:
    """The program that simulates the accelerator and runs cocotb inside."""
    import cocotb
    import cocotb.config

    verilog = emitted(config)
    bench = _bench(verilog)
    libraries = cocotb.config.libs_dir
    main = Path(cocotb.config.share_dir) / "lib" / "verilator" / "verilator.cpp"

    def make(folder: Path, log: Path) -> None:
        (folder / "build").mkdir()
        (folder / f"{TOP}.v").write_text(f"{verilog}\n{bench}")
        (folder / "public.vlt").write_text(
            f'`verilator_config\npublic_flat_rw -module "{BENCH}" -var "*"\n')
        call(folder, log, "verilator", *OPTIONS, "-j", str(os.cpu_count() or 1),
             "--top-module", BENCH, "--Mdir", "build", "-o", f"../{BENCH}",
             "-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator",
             str(main), "public.vlt", f"{TOP}.v")
        shutil.rmtree(folder / "build")

    made_from = (*OPTIONS, cocotb.__version__, libraries, verilog, bench)
    return cached_build(f"cocotb-{config.digest}", made_from, make) / BENCH


def _bench(verilog: str) -> str:
    """A module that has a signal for each port of the top, with the same name."""
    body, = re.findall(rf"^module {TOP}\b.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    ports = re.findall(r"\b(input|output)\s+(?:reg\s+|wire\s+)?(\[[^]]*\])?\s*(\w+)", body)
    signals = [f"    {'reg' if direction == 'input' else 'wire'} {width} {name};"
               for direction, width, name in ports]
    connections = ", ".join(f".{name}({name})" for _, _, name in ports)
    return "\n".join((f"module {BENCH};", *signals, f"    {TOP} dut ({connections});",
                      "endmodule", ""))


def _environment(module: str, results: Path, seed: int, settings: dict[str, str]) -> dict[str, str]:
    import find_libpython

    library = find_libpython.find_libpython()
    if not library:
        raise MicrotronError(f"cocotb needs the shared library of Python, but {sys.executable} has "
                             f"none")
    return {**os.environ,
            "LIBPYTHON_LOC": library, "VIRTUAL_ENV": sys.prefix,
            "PYTHONPATH": os.pathsep.join((str(HERE), *sys.path)),  # the sources that are tested
            "MODULE": module, "TOPLEVEL": BENCH, "TOPLEVEL_LANG": "verilog",
            "RANDOM_SEED": str(seed), "COCOTB_RESULTS_FILE": str(results),
            "COCOTB_ANSI_OUTPUT": "0",
            "PYGPI_ENTRY_POINT": "cocotb_entry:start", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **{name.upper(): value for name, value in settings.items()}}


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-40:])
