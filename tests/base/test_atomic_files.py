"""Files appear whole or not at all, one or several."""

import os
import stat

import pytest

from microtron.base.atomic_files import write_atomically, write_together
from microtron.base.errors import MicrotronError


def test_all_files_are_written_with_the_usual_permissions(tmp_path):
    write_together({tmp_path / "one": b"1", tmp_path / "two": iter([b"2", b"2"])})
    assert (tmp_path / "one").read_bytes() == b"1"
    assert (tmp_path / "two").read_bytes() == b"22"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o666 & ~mask
    assert len(list(tmp_path.iterdir())) == 2


def test_one_that_cannot_be_written_leaves_all_as_they_were(tmp_path):
    (tmp_path / "one").write_bytes(b"before")
    with pytest.raises(MicrotronError, match="no/two: cannot be written: No such file"):
        write_together({tmp_path / "one": b"1", tmp_path / "no" / "two": b"2"})
    assert (tmp_path / "one").read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MicrotronError])
def test_content_that_is_not_finished_leaves_all_as_they_were(tmp_path, stop):
    def content():
        yield b"begun"
        raise stop

    with pytest.raises(stop):
        write_together({tmp_path / "one": b"1", tmp_path / "two": content()})
    assert not list(tmp_path.iterdir())


def test_names_may_be_as_long_as_the_system_takes(tmp_path):
    write_atomically(tmp_path / ("x" * 255), b"1")
    with pytest.raises(MicrotronError, match="cannot be written: File name too long"):
        write_atomically(tmp_path / ("x" * 256), b"1")


def test_a_full_device_and_a_folder_are_named(tmp_path):
    with pytest.raises(MicrotronError, match="/dev/full: cannot be written: No space left"):
        write_atomically(tmp_path.__class__("/dev/full"), b"1")
    with pytest.raises(MicrotronError, match="cannot be written: Is a directory"):
        write_atomically(tmp_path, b"1")
