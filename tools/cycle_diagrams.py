"""Draws the cycle diagrams in docs/hardware.md from a waveform of the real hardware."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from microtron.base.atomic_files import write_atomically
from microtron.isa.assembly.assembler import assemble
from microtron.runtime.devices.rtl import RtlDevice

PAGE = Path(__file__).parent.parent / "docs" / "hardware.md"
PROGRAM = """
.config tiny
.segment micro_ops size=8    access=read
.segment memory    size=4096 access=write
.uops micro_ops
    uop dst=0 src=0 wgt=0
.code
    load.uop segment=micro_ops post=gemm
    load.inp segment=memory shape=1,2,6 stride=0,64 pad=0,0,2,2 post=gemm
    load.wgt segment=memory offset=256 shape=1,1,2 post=gemm
    gemm wait=load loops=0,1,1
    gemm wait=load loops=0,1,1
    gemm wait=load flags=start|first_inner loops=1,4,2 dst_stride=0,1,0 src_stride=0,1,6 \
         wgt_stride=0,0,1 post=store
    store.acc wait=gemm segment=memory offset=1024 shape=1,1,4
    sync.end
"""
LOAD_AT, GEMM_AT = 1, 5         # the instructions that are drawn

# What a line of a diagram is called, the signals that must all be high, and a number to show.
LOAD = (
    ("start", ("trace_load_start",), "trace_load_start_position"),
    ("address on the bus", ("m_axi_arvalid", "m_axi_arready", "m_axi_arid"), "m_axi_arlen"),
    ("beat on the bus", ("m_axi_rvalid", "m_axi_rready", "m_axi_rid"), None),
    ("write to inp, tile", ("load.inp__enable",), "load.inp__index"),
    ("end", ("trace_load_end",), "trace_load_end_position"),
)
GEMM = (
    ("start", ("trace_gemm_start",), "trace_gemm_start_position"),
    ("read micro-op", ("gemm.uop__enable",), "gemm.uop__index"),
    ("read inp, tile", ("gemm.inp__enable",), "gemm.inp__index"),
    ("read wgt, tile", ("gemm.wgt__enable",), "gemm.wgt__index"),
    ("read acc, tile", ("gemm.acc_read__enable",), "gemm.acc_read__index"),
    ("write acc, tile", ("gemm.acc_write__enable",), "gemm.acc_write__index"),
    ("end", ("trace_gemm_end",), "trace_gemm_end_position"),
)

Wave = dict[str, list[int]]     # signal → its value in each running cycle


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.vcd"
        program = assemble(PROGRAM.replace("\\\n", " "))
        device = RtlDevice(program.config, waveform=path)
        device.load(program)
        timeline = device.run().timeline
        assert timeline is not None
        names = {name for lines in (LOAD, GEMM) for _, enables, number in lines
                 for name in (*enables, number) if name}
        wave = read_vcd(path, names)
    text = PAGE.read_text(encoding="utf-8")
    for mark, lines, position in (("load", LOAD, LOAD_AT), ("gemm", GEMM, GEMM_AT)):
        text = replace_section(text, mark, "\n".join(diagram(
            wave, lines, int(timeline.start[position]), int(timeline.end[position]))))
    write_atomically(PAGE, text.encode())


def read_vcd(path: Path, names: set[str]) -> Wave:
    """The wanted signals, sampled before each rising edge of the clock while a program runs."""
    codes: dict[str, list[str]] = {}
    wave: Wave = {name: [] for name in names}
    now = dict.fromkeys((*names, "clk", "trace_running"), 0)
    for change in _changes(path, codes, set(now)):
        for name, value in change.items():
            if name == "clk" and value and not now["clk"] and now["trace_running"]:
                for each in names:
                    wave[each].append(now[each])
        now.update(change)
    return wave


def _changes(path: Path, codes: dict[str, list[str]], wanted: set[str]) -> Iterator[dict[str, int]]:
    """What changes at each time of a VCD file. The clock's edge comes before what follows it."""
    scope: list[str] = []
    change: dict[str, int] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if not words:
                continue
            if words[0] == "$scope":
                scope.append(words[2])
            elif words[0] == "$upscope":
                scope.pop()
            elif words[0] == "$var":
                name = ".".join((*scope, words[4])).removeprefix("top.microtron.")
                if name in wanted:
                    codes.setdefault(words[3], []).append(name)
            elif words[0].startswith("#"):
                yield dict(sorted(change.items(), key=lambda each: each[0] != "clk"))
                change = {}
            elif words[0][0] in "01b":
                bits, code = (words[0][1:], words[1]) if words[0][0] == "b" else (
                    words[0][0], words[0][1:])
                for name in codes.get(code, ()):
                    change[name] = int(bits, 2)


def diagram(wave: Wave, lines: Sequence[tuple[str, tuple[str, ...], str | None]], start: int,
            end: int) -> Iterator[str]:
    """A line for each activity, a column for each cycle; a dot is a cycle without it."""
    cycles = range(start, end + 1)
    quiet = _quiet(wave, lines, cycles)
    width = max(2, len(str(end - start))) + 1
    shown = [cycle for cycle in cycles if cycle not in quiet]
    yield "cycle".ljust(20) + "".join(f"{cycle - start:>{width}}" for cycle in shown)
    for title, enables, number in lines:
        cells = []
        for cycle in shown:
            active = all(wave[each][cycle] for each in enables)
            value = "#" if number is None else str(wave[number][cycle])
            cells.append(f"{value if active else '·':>{width}}")
        yield title.ljust(20) + "".join(cells)


def _quiet(wave: Wave, lines: Sequence[tuple[str, tuple[str, ...], str | None]],
           cycles: range) -> set[int]:
    """The inside of long stretches in which nothing happens: they are left out."""
    idle = [cycle for cycle in cycles if not any(
        all(wave[each][cycle] for each in enables) for _, enables, _ in lines)]
    return {cycle for cycle in idle if cycle - 1 in idle and cycle - 2 in idle
            and cycle + 1 in idle and cycle + 2 in idle}


def replace_section(text: str, mark: str, body: str) -> str:
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    if begin not in text or end not in text:
        sys.exit(f"{PAGE}: there is no place marked {mark}")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}```\n{body}\n```\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    main()
