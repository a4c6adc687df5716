"""Firmware on the command line: what makes it, and a board on a serial line that runs it."""

import json
import re

import numpy as np
import pytest

from microtron.runtime.board.places import FILES
from microtron.runtime.monitor import line
from microtron.runtime.monitor.protocol import Kind, Status

from ..command import bad, good
from ..runtime.monitor.fake_monitor import (
    ACCELERATOR_CYCLES,
    CYCLES,
    Fake,
    X,
    image_bytes,
    on_a_terminal,
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With an image and its input; lines fall silent sooner than real ones."""
    monkeypatch.setattr(line.BoardLine.__init__, "__kwdefaults__",
                        {**line.BoardLine.__init__.__kwdefaults__, "quiet": 0.02})
    (tmp_path / "plus.bin").write_bytes(image_bytes())
    np.save(tmp_path / "x.npy", X)
    return tmp_path


def run(folder, address, *options, inputs=("-i", "x=x.npy")):
    return ("run", "plus.bin", "--device", f"board:ulx3s@{address}", *inputs, *options)


def test_firmware_is_loaded_and_run_and_its_outputs_come_back(folder):
    fake = Fake()
    with on_a_terminal(fake) as address:
        out = good(*run(folder, address, "-o", "y=y.npy"), cwd=folder)
        assert f"plus.bin on board:ulx3s@{address}" in out
        assert f"{CYCLES:,}: 3.000 ms at 50 MHz" in out
        assert f"{ACCELERATOR_CYCLES:,}" in out
        assert np.array_equal(np.load(folder / "y.npy"), X + 7)
    assert fake.memory[:len(image_bytes())] == image_bytes()
    assert fake.timeout == 500_000_000


def test_options_are_those_of_a_network(folder):
    """One input alone, real numbers, a limit, a speed, and one JSON object."""
    np.save(folder / "real.npy", (X.astype(np.float32) - 3) / 2)
    fake = Fake()
    with on_a_terminal(fake) as address:
        out = good(*run(folder, f"{address}:1000000", "-o", "y.npy", "--limit", "777", "--json",
                        inputs=("-i", "real.npy")), cwd=folder)
    assert json.loads(out) == {"device": f"board:ulx3s@{address}:1000000", "cycles": CYCLES,
                               "accelerator_cycles": ACCELERATOR_CYCLES, "clock_hz": 50_000_000,
                               "frames": 1}
    assert np.array_equal(np.load(folder / "y.npy"), X + 7)
    assert fake.timeout == 777


def test_frames_that_are_damaged_on_the_way_are_sent_again(folder):
    def flip(frame):
        return frame[:-1] + bytes([frame[-1] ^ 1])

    def nothing(frame):
        return b""

    fake = Fake([flip, None, flip])
    with on_a_terminal(fake, [None, None, flip, None, None, nothing]) as address:
        good(*run(folder, address, "-o", "y=y.npy"), cwd=folder)
    assert np.array_equal(np.load(folder / "y.npy"), X + 7)
    assert fake.frames.count(Kind.RUN) == 1


@pytest.mark.parametrize(("fake", "message"), [
    (Fake([lambda answer: b""] * 9), r"does not answer hello; is the bitstream with the monitor"),
    (Fake([lambda answer: b"Linux login: "] * 9), "does not answer hello; it said '.*Linux login:"),
    (Fake([lambda answer: answer[:-1]] * 9), "the board does not answer hello"),
    (Fake([None] * 5 + [lambda answer: answer[:-1] + b"?"] * 9), "the board does not answer run"),
    (Fake(version=3), "the monitor has version 3, but this kit has 2; build the bitstream anew"),
    (Fake(says=(Status.HUNG,)), r"plus: stage 0 \(program 0\): the accelerator did not end"),
    (Fake(says=(Status.FAULT, 99, 5)), "the accelerator stopped at instruction 5: fault 99"),
    (Fake(says=(Status.WRONG_CONFIGURATION, 0x100, 2, 4)), "is 0x2, but the network needs 0x4"),
])
def test_a_board_that_does_not_do_it_is_one_line(folder, fake, message):
    (folder / "y.npy").write_bytes(b"what was there")
    with on_a_terminal(fake) as address:
        error = bad(*run(folder, address, "-o", "y=y.npy"), cwd=folder)
    assert re.search(message, error), error
    assert (folder / "y.npy").read_bytes() == b"what was there"


def test_an_image_that_changed_on_the_board_does_not_run(folder):
    class Forgetful(Fake):
        def run(self):
            self.memory[len(image_bytes()) - 1] ^= 1
            return super().run()

    with on_a_terminal(Forgetful()) as address:
        error = bad(*run(folder, address), cwd=folder)
    assert "plus: the image in memory is damaged; load it again" in error


@pytest.mark.parametrize(("device", "message"), [
    ("", "plus.bin is firmware, which runs on a board's own processor: give --device as in board:"),
    ("cycle", "which runs on a board's own processor, not on cycle: give --device as in"),
    ("board:ulx3s", "'board:ulx3s' names no board and its address"),
    ("board:ulx3s@/dev/ttyUSB987", "/dev/ttyUSB987: cannot be opened: No such file or directory;"),
    ("board:ulx3s@/dev/null", "/dev/null: not a serial line"),
    ("board:ulx3s@/dev/ttyUSB987:7", "/dev/ttyUSB987: speed is 7, but must be one of"),
    ("board:ulx3s@192.168.1.50", "firmware goes over the monitor's serial line, so the address"),
    ("board:tang_nano_20k@/dev/ttyUSB0", "tang_nano_20k: its system has no processor that"),
    ("board:pynq_z2@/dev/uio0", "pynq_z2: its processor is hard, and firmware is for soft ones"),
    ("board:kv260@/dev/uio0", "kv260: there is no driver for boards of vivado"),
])
def test_a_device_that_runs_no_firmware_is_refused_in_one_line(folder, device, message):
    given = ("--device", device) if device else ()
    assert message in bad("run", "plus.bin", *given, "-i", "x=x.npy", cwd=folder)


@pytest.mark.parametrize(("options", "message"), [
    ((), "the input x (int8[2, 4]) is not given"),
    (("-i", "z=x"), "--input: there is no input z; the model has x"),
    (("-i", "x=none.npy"), "none.npy: cannot be read: No such file or directory"),
    (("-i", "x=wrong.npy"), "wrong.npy: holds int8 of shape (3,), but input x is int8 or float32"),
    (("-i", "x.npy", "-o", "q=y"), "--output: there is no output q; the model has y"),
    (("-i", "x.npy", "--limit", "0"), "limit is 0, but must be an integer of 1 or more"),
    (("-i", "x.npy", "--seed", "1"), "--seed is for the functional device, not for board:"),
    (("-i", "x.npy", "--trace", "t.json"), "--trace is for the cycle or rtl device, not for board"),
    (("-i", "x.npy", "--config", "tiny"), "--config is for .tflite and .onnx files; plus.bin was"),
])
def test_options_that_are_wrong_are_refused_before_the_board_is_asked(folder, options, message):
    np.save(folder / "wrong.npy", np.zeros(3, np.int8))
    assert message in bad(*run(folder, "/dev/ttyUSB987", *options, inputs=()), cwd=folder)


def test_a_limit_that_the_monitor_cannot_count_to_is_refused(folder):
    with on_a_terminal(Fake()) as address:
        error = bad(*run(folder, address, "--limit", str(1 << 32)), cwd=folder)
    assert "timeout is 4294967296 cycles, but the monitor counts from 1 to 4,294,967,295" in error


@pytest.mark.parametrize(("content", "message"), [
    (None, "no.bin: cannot be read: No such file or directory"),
    (b"", "no.bin: not an image of a network for a board; `microtron firmware` makes them"),
    (b"\x7fELF" + bytes(400), "no.bin: not an image of a network for a board"),
    (image_bytes()[:-4], "no.bin: an image of version 2"),
    (image_bytes(needed=1 << 26), "no.bin: needs 67,108,864 bytes of memory, but ulx3s has 33,554"),
])
def test_a_file_that_is_no_image_is_refused_in_one_line(folder, content, message):
    if content is not None:
        (folder / "no.bin").write_bytes(content)
    assert message in bad("run", "no.bin", "--device", "board:ulx3s@/dev/ttyUSB987", cwd=folder)


def test_a_folder_is_no_image(folder):
    (folder / "folder.bin").mkdir()
    assert "folder.bin: cannot be read: Is a directory" in bad(
        "run", "folder.bin", "--device", "board:ulx3s@/dev/ttyUSB987", cwd=folder)


# The command that makes it.

@pytest.mark.parametrize("name", ["nope.mt", "nope.tflite", "nope.onnx"])
def test_a_model_that_is_not_there_is_said_not_to_be(tmp_path, name):
    assert f"{name}: cannot be read: No such file or directory" in bad(
        "firmware", name, "--board", "ulx3s", cwd=tmp_path)


@pytest.mark.parametrize("command", ["inspect", "compile"])
def test_an_image_that_is_not_there_is_said_not_to_be(tmp_path, command):
    assert "nope.mt: cannot be read: No such file or directory" in bad(command, "nope.mt",
                                                                       cwd=tmp_path)


def test_a_folder_is_no_model(tmp_path):
    assert ".: cannot be read: Is a directory" in bad("firmware", ".", "--board", "ulx3s",
                                                      cwd=tmp_path)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.toml")), ids=lambda path: path.stem)
def test_what_is_said_of_a_board_without_firmware_is_what_run_says(folder, path):
    """Either there is a driver, and both name it, or there is none, and both say so."""
    text = path.read_text(encoding="utf-8")
    if 'kind = "processor"' not in text:
        pytest.skip("a soft processor, or none")
    made = bad("firmware", "nope.mt", "--board", path.stem, cwd=folder)
    ran = bad("run", "plus.bin", "--device", f"board:{path.stem}@/dev/uio987", cwd=folder)
    assert "firmware is for boards with a soft processor" in made
    without = "there is no driver for boards of"
    assert (without in made) == (without in ran) == ('flow = "zynq"' not in text)
    assert (f"--device board:{path.stem}@/dev/uio0" in made) == ("on its own Linux" in ran)
