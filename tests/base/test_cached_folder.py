"""What takes long to make is kept, whole or not at all."""

from __future__ import annotations

import pytest

from microtron.base.cached_folder import cached_folder, writable_folder
from microtron.base.errors import MicrotronError


def test_what_was_made_is_kept_and_what_was_stopped_is_not(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path))

    def make(folder):
        (folder / "made").write_text("whole")

    def stop(folder):
        make(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_folder("part", "design", ("text",), stop)
    assert capsys.readouterr().err == ""
    assert [path.suffix for path in (tmp_path / "part").iterdir()] == [".lock"]
    folder = cached_folder("part", "design", ("text",), make, work="making it")
    assert capsys.readouterr().err == "microtron: making it\n"
    assert (folder / "made").read_text() == "whole"
    assert cached_folder("part", "design", ("text",), stop, work="never done") == folder
    assert capsys.readouterr().err == ""
    others = {cached_folder(*each, make) for each in (
        ("part", "design", ("another",)), ("part", "another", ("text",)),
        ("other", "design", ("text",)), ("part", "design", ("te", "xt")))}
    assert len(others | {folder}) == 5


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "file"))
    with pytest.raises(MicrotronError, match=r"file/part: cannot be written: .*MICROTRON_CACHE$"):
        writable_folder("part")
    with pytest.raises(MicrotronError, match=r"file/part: cannot be written: .*MICROTRON_CACHE$"):
        cached_folder("part", "design", ("text",), lambda folder: None)
