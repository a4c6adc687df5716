"""Tensors in `.npy` files: what is read, and that everything else is refused in one line."""

import io
import os
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

from microtron.base.errors import MicrotronError
from microtron.isa.program import Tensor
from microtron.runtime.models.tensor_files import array_content, read_tensor

VALUES = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)
TENSOR = Tensor("x", "input", 0, VALUES.shape)


def save(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def zipped(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def claiming(header):
    """A file with this header and no data."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def refusal(path, content):
    path.write_bytes(content)
    with pytest.raises(MicrotronError) as caught:
        read_tensor(path, TENSOR)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("content", [
    save(VALUES), save(np.asfortranarray(VALUES)), array_content(VALUES),
    save(VALUES).replace(b"\x93NUMPY\x01\x00v\x00", b"\x93NUMPY\x02\x00v\x00\x00\x00"),
    save(VALUES) + b"something behind it",
], ids=["rows first", "columns first", "ours", "version 2", "longer"])
def test_values_come_back(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    assert np.array_equal(read_tensor(tmp_path / "x.npy", TENSOR), VALUES)


def test_a_pipe_is_read_as_a_file_is(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, save(VALUES))
    os.close(writing)
    assert np.array_equal(read_tensor(Path(f"/dev/fd/{reading}"), TENSOR), VALUES)
    os.close(reading)


@pytest.mark.parametrize(("content", "message"), [
    (b"", "not a .npy file"),
    (b"\x93NUMPY\x01\x00", "the header of this .npy file is damaged"),
    (save(VALUES)[:60], "the header of this .npy file is damaged"),
    (save(VALUES)[:-5], "has 19 bytes of data, but int8 of shape (2, 3, 4) takes 24"),
    (pickle.dumps(VALUES), "not a .npy file"),
    (save(np.array([print], object)), "holds object of shape (1,), but tensor x is int8"),
    (zipped(x=VALUES), "holds several arrays (.npz), but one .npy array is wanted"),
    (zipped(x=VALUES)[:40], "holds several arrays (.npz), but one .npy array is wanted"),
    (save(VALUES.reshape(6, 4)), "holds int8 of shape (6, 4), but tensor x is int8 of shape "
                                  "(2, 3, 4)"),
    (save(VALUES.astype(np.int64)), "holds int64 of shape (2, 3, 4), but tensor x is int8"),
    (save(VALUES.view("uint8")), "holds uint8 of shape"),
    (save(np.zeros((2, 3, 4), [("a", "i1"), ("b", "i1")])), "holds [('a', 'i1'), ('b', 'i1')]"),
    (claiming("{'descr': '|i1', 'fortran_order': False, 'shape': (1000000000000000,)}"),
     "holds int8 of shape (1000000000000000,)"),
    (claiming("{'descr': '|i1', 'fortran_order': False, 'shape': (-2, -3, 4)}"),
     "holds int8 of shape (-2, -3, 4)"),
    (claiming("{'descr': '|i1', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",)}"),
     "the header of this .npy file is damaged"),
    (claiming("(" * 5000), "the header of this .npy file is damaged"),
    (claiming("{'descr': '|i1L', 'fortran_order': 1L, 'shape': (2L, 3"), "damaged"),
    (claiming(r"{'descr': '\q', 'fortran_order': False, 'shape': (2, 3, 4)}"), "damaged"),
])
def test_what_is_no_such_tensor_is_refused(tmp_path, content, message):
    assert message in refusal(tmp_path / "x.npy", content)


def test_what_cannot_be_read_is_named(tmp_path):
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "none.npy", "No such file")):
        with pytest.raises(MicrotronError, match=f"{path}: cannot be read: {reason}"):
            read_tensor(path, TENSOR)


def test_damaged_files_are_refused_or_hold_values(tmp_path):
    """Any byte of the header and of its length, and any length."""
    rng, whole = random.Random(1), save(VALUES)
    path, refused = tmp_path / "x.npy", 0
    for _ in range(400):
        content = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8))):
            content[rng.randrange(128)] = rng.choice(b"0123456789,()'{}: \n\\x\xff\x00")
        path.write_bytes(content[:rng.choice((len(content), rng.randrange(len(content))))])
        try:
            assert read_tensor(path, TENSOR).shape == VALUES.shape
        except MicrotronError as error:
            assert "\n" not in str(error)       # noqa: PT017 (it need not be raised)
            refused += 1
    assert 200 < refused < 400
