"""`microtron run` on networks that remember: frames one after the other, states in files."""

from __future__ import annotations

import json

import numpy as np
import pytest

import microtron

from ..command import bad, good
from ..runtime.stream_model import frames, right, stream_graph


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("frames")
    microtron.compile(stream_graph(), "tiny").save(path / "stream.mt")
    np.save(path / "six.npy", np.stack(frames(6)))
    np.save(path / "one.npy", frames(6)[0])
    np.save(path / "none.npy", np.stack(frames(6))[:0])
    np.savez(path / "all.npz", past=right(frames(3))[-1]["past"], sum=np.array([4, 1], np.int32),
             last=right(frames(3))[-1]["last"])
    return path


def run(folder, *arguments):
    return good("run", "stream.mt", "--device", "functional", *arguments, cwd=folder)


def test_frames_in_a_file_give_outputs_in_a_file(folder):
    text = run(folder, "--frames", "-i", "six.npy", "-o", "conv=conv.npy", "-o", "count=count.npy",
               "--state-out", "past=past.npy")
    assert "the last of 6 frames" in text
    wanted = right(frames(6))
    assert np.array_equal(np.load(folder / "conv.npy"), [each["conv"] for each in wanted])
    assert np.array_equal(np.load(folder / "count.npy"), [each["count"] for each in wanted])
    assert np.array_equal(np.load(folder / "past.npy"), wanted[-1]["past"])


def test_states_are_read_from_files(folder):
    np.save(folder / "rest.npy", np.stack(frames(6)[3:]))
    run(folder, "--frames", "-i", "rest.npy", "--state-in", "all.npz", "-o", "conv=rest_out.npy",
        "--state-out", "sum=sum.npy")
    assert np.array_equal(np.load(folder / "rest_out.npy"),
                          [each["conv"] for each in right(frames(6))[3:]])
    assert np.load(folder / "sum.npy").tolist() == [7, -8]


def test_one_frame_needs_no_axis(folder):
    told = json.loads(run(folder, "-i", "one.npy", "-o", "conv=first.npy", "--json"))
    assert told["frames"] == 1
    assert np.array_equal(np.load(folder / "first.npy"), right(frames(1))[0]["conv"])


@pytest.mark.parametrize(("arguments", "words"), [
    (["-i", "six.npy"], "of shape (6, 1, 1, 1, 5), but input frame is int8 or float32 or float64 "
                        "or float16 of shape (1, 1, 1, 5); --frames runs one after the other"),
    (["--frames", "-i", "one.npy"], "of shape (frames, 1, 1, 1, 5)"),
    (["--frames", "-i", "none.npy"], "frame has 0, but all inputs must have as many frames"),
    (["--frames"], "--frames: no input is given"),
    (["-i", "one.npy", "--state-in", "pats=one.npy"], "--state-in: there is no state pats"),
    (["-i", "one.npy", "--state-in", "sum=one.npy"], "but state sum is int32"),
    (["-i", "one.npy", "--state-out", "sum"], "--state-out sum must be a tensor and a file"),
    (["-i", "one.npy", "--state-out", "sum=a.npy", "-o", "conv=a.npy"], "a.npy"),
    (["--frames", "-i", "six.npy", "--trace", "t.json", "--device", "cycle"],
     "--trace and --waveform show one frame"),
    (["--frames", "-i", "six.npy", "-i", "frame=six.npy"], "--input names the tensor frame twice")])
def test_what_does_not_fit_is_one_line(folder, arguments, words):
    assert words in bad("run", "stream.mt", "--device", "functional", *arguments, cwd=folder)
