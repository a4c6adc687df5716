"""One-line faults in the hardware: each must be caught by the tests of its unit.

`make soak` runs this on a copy of the checkout; it takes some minutes.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

# file, what stands there, what it becomes, the tests that must notice
FAULTS = [
    ("tokens.py", "after(~posted, posted & ~full)", "after(1, posted & ~full)",
     "test_tokens.py"),
    ("fetch.py", "Mux(self.dispatched, room >= BURST - 1, room >= BURST)", "room != 0",
     "test_fetch.py"),
    ("control.py", "self.done.eq(~self.halt)", "self.done.eq(1)", "test_control.py"),
    ("reader.py", "is_error(bus.rresp)", "bus.rresp[0]", "test_reader.py"),
    ("writer.py", "bus.wstrb.eq(Mux(self.halt, 0, beat.strobe))", "bus.wstrb.eq(beat.strobe)",
     "test_writer.py"),
    ("burst_walker.py", "self.row_start >= self.room", "self.row_start > self.room",
     "test_burst_walker.py"),
    ("burst_walker.py", "offered.size - more_bytes", "offered.size", "test_burst_walker.py"),
    ("burst_walker.py", "[:self.beat_bits + grid] + self.more_bytes", "[:0] + self.more_bytes",
     "test_burst_walker.py"),
    ("logic.py", "(~up).replicate", "up.replicate", "test_tokens.py"),
    ("start.py", "takes.eq(able & tokens.granted)", "takes.eq(able)", "test_load.py"),
    ("transfer.py", "bursts.valid & ~empty & goes", "bursts.valid & goes",
     "test_store.py"),
    ("tile_steps.py", "self.left == 2", "self.left == 3", "test_load.py"),
    ("tile_steps.py", "next_plane.eq(plane + plane_stride)", "next_plane.eq(now + plane_stride)",
     "test_store.py"),
    ("load_steps.py", "line_ends & (section == Section.MIDDLE)", "line_ends", "test_load.py"),
    ("store_steps.py", "(self.packing.part == 0) & ~self.prepared.empty", "~self.prepared.empty",
     "test_store_rates.py"),
    ("packing.py", "self.together | self.fits | (room == 0)", "self.together | (room == 0)",
     "test_packing.py"),
    ("alu_lane.py", "AluOp.SHL: True", "AluOp.SHL: False", "test_alu_lane.py"),
    ("alu_issue.py", "described_valid & (outside | ~ports.must_wait) & may_follow",
     "described_valid & may_follow", "test_alu.py"),
    ("alu_results.py", "Cat(meets_held, *meets).any()", "Cat(*meets).any()", "test_alu_rates.py"),
    ("sequencer.py", "at_final.eq(nest.once[name])", "at_final.eq(0)", "test_sequencer.py"),
    ("sequencer.py", "inside.eq(once[:number].all())", "inside.eq(0)", "test_sequencer.py"),
    ("sequencer.py", "Mux(at_final, single, before_final)", "Mux(at_final, 0, before_final)",
     "test_sequencer.py"),
    ("sequencer.py", "Mux(at_final, double, left == 3)", "Mux(at_final, double, left == 2)",
     "test_sequencer.py"),
    ("alu_results.py", "Mux(entering[number], tile == entered, tile == target)",
     "tile == target", "test_alu.py"),
    ("alu_results.py", "Mux(ports.next_held, tile == will_enter, tile == entered)",
     "tile == will_enter", "test_alu.py"),
    ("sequencer.py", "at_last.eq(Cat(final).all())", "at_last.eq(done[\"outer\"])",
     "test_sequencer.py"),
    ("mac.py", "even + odd for even", "even | odd for even", "test_mac.py"),
    ("mac.py", "Mux(window, second, 0)", "second", "test_mac.py"),
    ("mac_pairs.py", "diagonal.eq(half)\n", "diagonal.eq(0)\n", "test_mac.py"),
    ("mac_windows.py", "total.eq(before + product)", "total.eq(product)", "test_mac.py"),
    ("gemm.py", "~(slot.first.inner | was_first)", "~slot.first.inner", "test_gemm.py"),
    ("gemm.py", "issued.offsets.dst.eq(before_last)", "issued.offsets.dst.eq(last)",
     "test_gemm.py"),
    ("gemm.py", "issued.window & at[\"wgt\"]", "at[\"wgt\"]", "test_gemm.py"),
    ("gemm.py", "adds & _is_outside(dst,", "_is_outside(dst,", "test_gemm.py"),
    ("forwarding.py", "recall_previous.eq(of_fourth & ~of_third & ~of_second)",
     "recall_previous.eq(of_fourth)", "test_forwarding.py"),
    ("requantizer.py", "shift[:5] | shift[5].replicate(5)", "shift[:5]", "test_requantizer.py"),
    ("requantizer.py", "limits.beyond.eq(lost | above.any())", "limits.beyond.eq(above.any())",
     "test_requantizer.py"),
    ("scratchpad.py", "fill.whole | (fill.part == part)", "fill.part == part",
     "test_scratchpad.py"),
    ("accumulator.py", "self.alu_b.granted.eq(~blocked_b)", "self.alu_b.granted.eq(1)",
     "test_accumulator.py"),
    ("accumulator.py", "self._together(gemm.next_index, port.index)", "0", "test_accumulator.py"),
    ("accumulator.py", "alu.stays & apart(alu.index)", "alu.stays", "test_accumulator.py"),
    ("alu_results.py", "Mux(bound & self.acc.refused, 0, posts)", "Mux(self.acc.refused, 0, posts)",
     "test_alu.py"),
    ("sequencer.py", "with m.If(self.stops):", "with m.If(0):", "test_alu_faults.py"),
    ("mac.py", "Mux(self.depthwise, lane, 0)", "lane", "test_mac.py"),
    ("tile_steps.py", "Mux(self.begins, at_start[name], value)", "value", "test_load.py"),
    ("load_writer.py", "Mux(write.ends, step.post, 0)", "step.post", "test_load.py"),
]


def find(folder, name):
    """The one file of this name, in whichever room."""
    path, = folder.rglob(name)
    return path


def mutate(folder, file, old, new):
    """A copy of the checkout with one line of the hardware changed."""
    copy = folder / "microtron"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(
        ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis"))
    path = find(copy / "hw", file)
    text = path.read_text()
    assert text.count(old) == 1, f"{file}: {old!r} stands there {text.count(old)} times"
    path.write_text(text.replace(old, new))
    return copy


def outcome(folder, copy, tests):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         str(find(copy / "tests" / "hw", tests).relative_to(copy))],
        cwd=copy, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(folder)})
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode


@pytest.mark.parametrize(("file", "old"), [each[:2] for each in FAULTS])
def test_what_a_fault_replaces_stands_in_the_hardware_once(file, old):
    assert find(ROOT / "hw", file).read_text().count(old) == 1


@pytest.mark.soak
@pytest.mark.parametrize(("file", "old", "new", "tests"), FAULTS, ids=lambda each: str(each)[:30])
def test_a_fault_in_the_hardware_is_caught(tmp_path, file, old, new, tests):
    copy = mutate(tmp_path, file, old, new)
    assert outcome(tmp_path, copy, tests) == 1, "nobody noticed"


@pytest.mark.soak
def test_the_copy_without_a_fault_passes(tmp_path):
    copy = mutate(tmp_path, "tokens.py", "count == self.config.token_limit",
                  "self.config.token_limit == count")
    assert outcome(tmp_path, copy, "test_tokens.py") == 0
