"""What takes long to make is kept, whole or not at all."""

from __future__ import annotations

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.build.step_cache import cache_root, get_or_make


def test_what_was_made_is_kept_and_what_was_stopped_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path))

    def make(folder):
        (folder / "made").write_text("whole")

    def stop(folder):
        make(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get_or_make("design", ("text",), stop, "stopping")
    assert [path.suffix for path in (tmp_path / "fpga").iterdir()] == [".lock"]
    folder = get_or_make("design", ("text",), make, "making")
    assert (folder / "made").read_text() == "whole"
    assert get_or_make("design", ("text",), stop, "never called") == folder
    assert get_or_make("design", ("another",), make, "making") != folder


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "file"))
    with pytest.raises(MicrotronError, match=r"file/fpga: cannot be written: .*MICROTRON_CACHE$"):
        cache_root()
