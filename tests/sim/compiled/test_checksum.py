"""Compiled code is never older than its sources: every file that it may come from counts."""

import shutil
from pathlib import Path

import pytest

import microtron
from microtron.sim.compiled.checksum import CYCLE, FUNCTIONAL, checksum

ROOT = Path(microtron.__file__).parent


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The folders that compiled code comes from."""
    root = tmp_path_factory.mktemp("sources")
    for folder in {*CYCLE, *FUNCTIONAL}:
        shutil.copytree(ROOT / folder, root / folder,
                        ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.mark.parametrize("folders", [CYCLE, FUNCTIONAL], ids=["cycle", "functional"])
def test_a_change_of_any_file_is_another_checksum(folders, copy):
    before = checksum.__wrapped__(folders, copy)
    assert before == checksum(folders)
    for path in (path for folder in folders for path in (copy / folder).rglob("*.py")):
        text = path.read_bytes()
        path.write_bytes(text + b"# changed")
        assert checksum.__wrapped__(folders, copy) != before, path
        path.write_bytes(text)
    assert checksum.__wrapped__(folders, copy) == before


@pytest.mark.parametrize("folders", [CYCLE, FUNCTIONAL], ids=["cycle", "functional"])
def test_a_file_that_is_added_or_renamed_is_another_checksum(folders, copy):
    before, added = checksum.__wrapped__(folders, copy), copy / folders[-1] / "added.py"
    added.touch()
    with_it = checksum.__wrapped__(folders, copy)
    renamed = added.rename(added.with_name("renamed.py"))
    again = checksum.__wrapped__(folders, copy)
    renamed.unlink()
    assert len({before, with_it, again}) == 3
