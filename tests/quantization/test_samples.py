"""Samples: where they come from, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.compiler.graph.types import TensorType
from microtron.quantization.calibration.images import Preprocess, image_folder
from microtron.quantization.calibration.samples import Samples, open_samples, random_samples

ONE = {"x": TensorType((1, 2, 3), "float32")}
TWO = {"x": TensorType((1, 2), "float32"), "i": TensorType((1,), "int64")}


def read(inputs, data):
    with open_samples(inputs, data) as found:
        return [list(found), list(found)]


def test_a_file_an_array_a_folder_and_iterables_give_the_same(tmp_path):
    stack = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    np.savez(tmp_path / "s.npz", x=stack)
    np.savez_compressed(tmp_path / "c.npz", anything=stack.astype(np.float64))
    np.save(tmp_path / "s.npy", stack)
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, each in enumerate(stack):
        np.save(folder / f"{number}.npy", each[None])
    rows = [each[None] for each in stack]
    for data in (tmp_path / "s.npz", str(tmp_path / "c.npz"), tmp_path / "s.npy", folder, stack,
                 {"x": stack}, rows, iter(rows), [{"x": each} for each in rows]):
        for found in read(ONE, data):               # also the second time
            assert [each["x"].tolist() for each in found] == [each.tolist() for each in rows]
            assert all(each["x"].dtype == np.float32 for each in found)


def test_several_inputs_have_their_names(tmp_path):
    np.savez(tmp_path / "s.npz", x=np.ones((3, 2), np.float32), i=np.arange(3))
    assert [each["i"].tolist() for each in read(TWO, tmp_path / "s.npz")[0]] == [[0], [1], [2]]
    for name in TWO:
        (tmp_path / "f" / name).mkdir(parents=True)
        np.save(tmp_path / "f" / name / "0.npy", np.ones(TWO[name].shape, TWO[name].dtype))
    assert len(read(TWO, tmp_path / "f")[0]) == 1


@pytest.mark.parametrize(("inputs", "data", "message"), [
    (ONE, [np.zeros((1, 3, 2))], r"sample 0: x has shape \(1, 3, 2\), but must have \(1, 2, 3\)"),
    (ONE, {"x": np.zeros((4, 3, 2))}, r"x has shape \(4, 3, 2\), but must have \(1, 2, 3\)"),
    (ONE, [np.full((1, 2, 3), np.nan)], r"x is nan at \(0, 0, 0\); samples must be finite"),
    (ONE, [np.full((1, 2, 3), np.inf)], r"x is inf at \(0, 0, 0\); samples must be finite"),
    (ONE, [np.zeros((1, 2, 3), complex)], "x is complex128, but must be float32"),
    (ONE, [], "the samples: there is no sample"),
    (ONE, np.zeros((0, 2, 3)), "the samples: there is no sample"),
    (ONE, [[[1, 2, 3], [4, 5]]], "sample 0: x is no array: its rows have different lengths"),
    (ONE, [np.zeros((1, 2, 3)), None], r"sample 1: x has shape \(\), but must have \(1, 2, 3\)"),
    (ONE, 7, "samples are 7, but must be a file, a folder"),
    (ONE, "nowhere.npz", "nowhere.npz: there is no such file or folder"),
    (TWO, [{"x": np.zeros((1, 2))}], "it lacks i, but the inputs are x, i"),
    (TWO, {"x": np.zeros((1, 2)), "i": np.zeros(1, int), "z": np.zeros(1)}, "it has z, but"),
    (TWO, {"x": np.zeros((2, 2)), "i": np.zeros(3, int)}, "different numbers of samples: x 2, i 3"),
    (TWO, [{"x": np.zeros((1, 2)), "i": np.zeros(1)}], "i is float64, but must be int64"),
])
def test_samples_that_do_not_fit_are_refused_in_a_line(inputs, data, message):
    with pytest.raises(MicrotronError, match=message):
        read(inputs, data)


def test_files_that_hold_no_arrays_are_refused(tmp_path):
    (tmp_path / "s.npz").write_bytes(b"no archive")
    with pytest.raises(MicrotronError, match=r"s\.npz: is no \.npz file"):
        read(ONE, tmp_path / "s.npz")
    np.savez(tmp_path / "o.npz", x=np.array([{}], object))
    with pytest.raises(MicrotronError, match="it holds Python objects"):
        read(ONE, tmp_path / "o.npz")
    np.savez(tmp_path / "n.npz")
    with pytest.raises(MicrotronError, match=r"n\.npz: it lacks x, but the inputs are x$"):
        read(ONE, tmp_path / "n.npz")
    np.savez(tmp_path / "z.npz", x=np.zeros((0, 2, 3)))
    with pytest.raises(MicrotronError, match=r"z\.npz: there is no sample$"):
        read(ONE, tmp_path / "z.npz")
    np.savez_compressed(tmp_path / "c.npz", x=np.random.default_rng(0).normal(0, 1, (50, 2, 3)))
    data = bytearray((tmp_path / "c.npz").read_bytes())
    data[900:1200] = bytes(300)
    (tmp_path / "c.npz").write_bytes(data)
    with pytest.raises(MicrotronError, match=r"^[^:]*c\.npz: is no \.npz file of arrays: "):
        read(ONE, tmp_path / "c.npz")
    (tmp_path / "s.txt").write_text("1 2 3")
    with pytest.raises(MicrotronError, match=r"samples are an \.npz or \.npy file"):
        read(ONE, tmp_path / "s.txt")


def test_random_samples_are_the_same_each_time():
    first, second = (list(random_samples(TWO)) for _ in range(2))
    assert [each["x"].tolist() for each in first] == [each["x"].tolist() for each in second]
    assert all(set(np.unique(each["i"])) <= {0, 1} for each in first)


def test_images_become_samples(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (6, 4), (255, 0, 51)).save(tmp_path / "a.png")
    found = list(image_folder(tmp_path, "size=4x6,crop=2x3,scale=1/255,mean=0.5,std=0.5/1/1"))
    assert found[0].shape == (1, 3, 2, 3)
    assert found[0][0, :, 0, 0].tolist() == pytest.approx([1, -0.5, -0.3])
    last = next(iter(image_folder(tmp_path, "layout=nhwc,channels=bgr")))
    assert last.shape == (1, 4, 6, 3)
    assert last[0, 0, 0].tolist() == [51, 0, 255]
    image.fromarray(np.full((4, 6), 999, np.uint16)).save(tmp_path / "b.png")
    with pytest.raises(MicrotronError, match=r"^\S*b\.png has pixels of more than 8 bits"):
        list(image_folder(tmp_path, "size=4"))
    image.new("1", (16000, 16000)).save(tmp_path / "b.png")     # more than Pillow reads
    with pytest.raises(MicrotronError, match=r"b\.png: cannot be read as an image"):
        list(image_folder(tmp_path, "size=4"))
    (tmp_path / "b.png").write_bytes(b"no picture")
    with pytest.raises(MicrotronError, match=r"b\.png: cannot be read as an image"):
        list(image_folder(tmp_path, "size=4"))


@pytest.mark.parametrize(("text", "message"), [
    ("sise=4", "--preprocess has 'sise=4', but must be name=value"),
    ("size=0", "size is '0', but must be as in"), ("scale=1/0", "scale is '1/0'"),
    ("layout=hwc", "layout is 'hwc', but must be one of nchw, nhwc"),
    ("mean=1/2", "mean is '1/2'"), ("scale=0", "scale is '0'"), ("scale=nan", "scale is 'nan'"),
    ("mean=inf", "mean is 'inf'"), ("channels=grey,std=1/2/3", "grey pictures have one mean"),
    ("size=4,size=5", "at most once")])
def test_a_preprocessing_that_means_nothing_is_refused(text, message):
    with pytest.raises(MicrotronError, match=message):
        Preprocess.parse(text)


def test_small_samples_are_read_once_and_large_ones_each_time(monkeypatch):
    inputs, reads = {"x": TensorType((4,), "float32")}, []

    def source():
        for number in range(3):
            reads.append(number)
            yield {"x": np.full(4, number, np.float32)}

    def passes():
        samples = Samples(inputs, source, "here")
        return [[float(each["x"][0]) for each in samples] for _ in range(3)]
    assert passes() == [[0, 1, 2]] * 3
    assert reads == [0, 1, 2]
    monkeypatch.setattr("microtron.quantization.calibration.samples.REMEMBERED", 2 * 16)     # two
    assert passes() == [[0, 1, 2]] * 3
    assert reads == [0, 1, 2] * 4
    samples = Samples(inputs, source, "here")
    assert next(iter(samples)) is next(iter(samples))
    assert len(list(samples)) == 3                          # after passes that stopped early
