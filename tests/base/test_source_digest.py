"""The key of a cache changes with every source that decides the result, and with no other."""

from __future__ import annotations

import os

import pytest

from microtron.base import imports
from microtron.base import source_digest as module
from microtron.base.source_digest import ROOT, external_packages, source_digest, source_files

TREE = {
    "__init__.py": "def lazy():\n    from .unrelated import x\n",
    "unrelated.py": "x = 1\n",
    "a/__init__.py": "from .. import early\n",
    "a/first.py": "import json\nfrom ..b.second import two\nfrom .only import (\n    one,\n)\n",
    "a/only.py": ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..typed import T\n"
                  "else:\n    from ..untyped import T\nNAME = 'table.toml'\n"),
    "a/table.toml": "number = 1\n",
    "a/other.toml": "number = 1\n",
    "b/__init__.py": "",
    "b/second.py": "def two():\n    import numpy.typing\n    from . import third\n",
    "b/third.py": "from pathlib import Path\nFILES = Path(__file__).parent / 'source'\n",
    "b/source/deep/part.c": "int a;\n",
    "early.py": "import microtron.cycle\n",
    "cycle.py": "from .early import nothing\n",
    "typed.py": "T = int\n", "untyped.py": "T = int\n",
}
NEEDED = {"__init__.py", "a/__init__.py", "a/first.py", "a/only.py", "a/table.toml",
          "b/__init__.py", "b/second.py", "b/third.py", "b/source/deep/part.c", "early.py",
          "cycle.py", "untyped.py"}
FIRST = "microtron.a.first"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STARTED", 1 << 62)         # the tree is written now
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


@pytest.fixture
def parsed(monkeypatch):
    """How many modules were parsed so far."""
    texts, parse = [], imports.imports_of
    monkeypatch.setattr(imports, "imports_of", lambda text, package: (
        texts.append(text) or parse(text, package)))
    return texts


def test_sources_follow_from_imports_at_any_depth(root):
    found = {path.relative_to(root).as_posix() for path in source_files(FIRST, root=root)}
    assert found == NEEDED


@pytest.mark.parametrize("name", TREE)
def test_the_digest_changes_with_these_files_alone(root, name):
    before = source_digest(FIRST, root=root)
    assert source_digest(FIRST, root=root) == before
    path = root / name
    path.write_text(path.read_text() + ("\n" if name.endswith((".py", ".c")) else "# more\n"))
    assert (source_digest(FIRST, root=root) != before) == (name in NEEDED)


def test_a_file_that_is_imported_from_now_on_counts(root):
    before = source_digest(FIRST, root=root)
    (root / "b/third.py").write_text("from ..unrelated import x\n")
    changed = source_digest(FIRST, root=root)
    (root / "unrelated.py").write_text("x = 2\n")
    assert len({before, changed, source_digest(FIRST, root=root)}) == 3


def test_nothing_is_parsed_again_until_something_changes(root, parsed):
    before = source_digest(FIRST, root=root)
    modules = sum(name.endswith(".py") for name in NEEDED)
    assert len(parsed) == modules
    (root / "unrelated.py").write_text("changed = True\n")
    assert source_digest(FIRST, root=root) == before
    assert len(parsed) == modules
    (root / "a" / "table.toml").write_text("number = 2\n")
    assert source_digest(FIRST, root=root) != before
    assert len(parsed) == 2 * modules


@pytest.mark.parametrize(("name", "text"), [
    ("a/only/__init__.py", "x = 1\n"),         # a package instead of the module
    ("b/second/two.py", "x = 1\n"),            # without an __init__.py: not ours
    ("untyped/__init__.py", "T = int\n"),
    ("b/source/more/part.c", "int b;\n")])
def test_a_new_file_that_is_found_first_counts(root, name, text, parsed):
    before = source_files(FIRST, root=root), source_digest(FIRST, root=root)
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    known = source_digest(FIRST, root=root)
    after = source_files(FIRST, root=root)
    assert (after != before[0]) == (known != before[1]) == (name != "b/second/two.py")
    assert (path in after) == (after != before[0])


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"",
                                    lambda content: content[:-9] + b"X" + content[-8:]])
def test_a_damaged_list_of_files_is_made_again(root, tmp_path, damage, parsed):
    before = source_digest(FIRST, root=root)
    count = len(parsed)
    path, = (tmp_path / "cache" / "sources").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert source_digest(FIRST, root=root) == before
    assert len(parsed) == 2 * count
    assert source_digest(FIRST, root=root) == before
    assert len(parsed) == 2 * count


def test_without_a_cache_the_digest_is_the_same(root, tmp_path, monkeypatch):
    before = source_digest(FIRST, root=root)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "file"))
    assert source_digest(FIRST, root=root) == before


def test_a_source_that_is_gone_is_no_source(root):
    before = source_digest(FIRST, root=root)
    (root / "b/third.py").unlink()
    assert source_digest(FIRST, root=root) != before


def test_sources_that_changed_under_a_process_share_no_digest(root, monkeypatch):
    """What it runs is not what it would take the digest of."""
    started = os.stat(root / "early.py").st_mtime_ns

    def digest(written):
        monkeypatch.setattr(module, "STARTED", started)
        for name in TREE:
            os.utime(root / name, ns=(started, started))
        os.utime(root / "early.py", ns=(written, written))
        return source_digest(FIRST, root=root)

    before = digest(started - 1)
    assert digest(started) == before
    later = digest(started + 1)
    assert len({before, later, digest(started + 1)}) == 3
    assert digest(started + (1 << 62)) == before        # a wrong clock, not a new text


def test_a_moved_file_is_another_source(root):
    before = source_digest("microtron.typed", root=root)
    (root / "typed.py").rename(root / "kinds.py")
    assert source_digest("microtron.kinds", root=root) != before


def test_packages_of_others_follow_from_imports_too(root):
    assert external_packages(FIRST, root=root) == ["numpy"]
    assert external_packages("microtron.a.only", root=root) == []


def test_functions_of_a_package_count_if_it_is_asked_for(root):
    assert root / "unrelated.py" in source_files("microtron", root=root)


@pytest.mark.parametrize("name", ["microtron.nothing", "microtron.a.first.two", "numpy", ""])
def test_a_module_that_is_not_there_is_refused(root, name):
    with pytest.raises(ValueError, match="there is no module"):
        source_digest(name, root=root)


def test_our_own_hardware_needs_its_layouts_and_the_isa_and_nothing_above():
    found = {path.relative_to(ROOT).as_posix() for path in source_files("microtron.hw.top")}
    assert any(name.endswith("layouts.py") for name in found)
    assert any(name.startswith("isa/") for name in found)
    assert not any(name.startswith(("sim/", "compiler/", "runtime/", "boards/")) for name in found)
    assert "amaranth" in external_packages("microtron.hw.top")
