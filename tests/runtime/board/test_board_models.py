"""Whole networks on a board, and the command line."""

import gc

import numpy as np
import pytest

import microtron
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.isa.config import small, tiny
from microtron.isa.image.program_image import save
from microtron.runtime.board import board_device as board_device

from ...command import command
from ..devices.test_device import plus_seven
from ..small_model import image, small_graph
from .fake_board import CYCLES, DirectLink, FakeBoard

PLACE = "board:pynq_z2@/dev/uio0"


@pytest.fixture
def links(monkeypatch):
    """Opens links to a board in software, and keeps them."""
    fake = FakeBoard(tiny, range(0x1000_0000, 0x1020_0000), 0x4000_0000)
    made = []

    def link_to(place):
        def opened():
            made.append(DirectLink(fake))
            return made[-1]

        return opened

    monkeypatch.setattr(board_device, "link_to", link_to)
    return made


def test_the_programs_of_a_network_share_one_link(links):
    model = microtron.compile(small_graph(), "tiny")
    right = [evaluate(small_graph(), {"image": image(seed)})["real"] for seed in range(6)]
    with model.session(PLACE) as session:
        futures = [session.submit(image(seed)) for seed in range(6)]
        for future, expected in zip(futures, right, strict=True):
            assert np.array_equal(future.result(60)["real"], expected)
        result = session.run(image(3))
        assert np.array_equal(result["real"], right[3])
        assert [report.device for report in result.reports] == [PLACE, PLACE]
        assert [report.cycles for report in result.reports] == [CYCLES, CYCLES]
    del session, futures, future
    gc.collect()
    assert [link.is_open for link in links] == [False]


def test_a_program_runs_from_the_command_line(links, tmp_path):
    save(plus_seven(), tmp_path / "p.mt")
    np.save(tmp_path / "x.npy", np.full((2, 4), 3, np.int8))
    done = command("run", "p.mt", "--device", PLACE, "-i", "x=x.npy", "-o", "y=y.npy",
                   cwd=tmp_path)
    assert (done.code, done.error) == (0, "")
    assert f"p.mt on {PLACE}" in done.out
    assert f"{CYCLES:,}" in done.out
    assert np.load(tmp_path / "y.npy").tolist() == [[10] * 4] * 2


@pytest.mark.parametrize(("arguments", "message"), [
    (("--device", PLACE), "/dev/uio0: cannot be opened: No such file or directory; is the "),
    (("--device", "board:pynq_z2"), "'board:pynq_z2' names no board and its address"),
    (("--device", PLACE, "--memory", "stalls=1"), "--memory is for the cycle or rtl device, not"),
    (("--device", PLACE, "--seed", "1"), "--seed is for the functional device, not for board:"),
])
def test_what_cannot_be_done_is_one_line_and_exit_code_2(tmp_path, arguments, message):
    save(plus_seven(), tmp_path / "p.mt")
    done = command("run", "p.mt", *arguments, cwd=tmp_path)
    assert done.code == 2
    assert done.error.count("\n") == 1
    assert message in done.error


def test_a_program_for_another_bitstream_is_one_line_and_exit_code_2(links, tmp_path):
    save(plus_seven(small), tmp_path / "p.mt")
    done = command("run", "p.mt", "--device", PLACE, cwd=tmp_path)
    assert (done.code, done.error.count("\n")) == (2, 1)
    assert "the program is for another configuration than this device has: block_in 8" in done.error
