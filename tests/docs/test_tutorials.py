"""The tutorials run exactly as they are written, block after block, as pages and as notebooks."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import microtron

from ..command import command

ROOT = Path(__file__).resolve().parents[2]
PAGES = {path.stem: path.read_text(encoding="utf-8")
         for path in sorted((ROOT / "docs" / "tutorials").glob("*.md"))}
SLOW = {"3_network", "5_explore"}       # quantize, measure and fit
CHANGES_SOURCES = "4_alu_operation"


@pytest.fixture(scope="module")
def tools():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import tutorial_blocks
        import write_notebooks
        return tutorial_blocks, write_notebooks
    finally:
        sys.path.remove(str(ROOT / "tools"))


def run_page(blocks, capsys):
    names: dict[str, object] = {}
    for block in blocks:
        if block.kind == "prose":
            continue
        if block.kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block.text, "tutorial", "exec"), names)
            printed = out.getvalue()
        else:
            first, *words = shlex.split(block.text)
            assert first == "microtron"
            ended = command(*words)
            assert ended.code == 0 or words == ["doctor"], (block.text, ended.error)
            printed = ended.out
        assert block.printed is None or printed == block.printed, block.text


@pytest.fixture
def clone(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MICROTRON_ANEW", raising=False)


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.soak] if name in SLOW else [])
    for name in PAGES if name != CHANGES_SOURCES])
@pytest.mark.usefixtures("clone")
def test_every_block_of_a_tutorial_runs_and_prints_what_is_shown(tools, name, capsys):
    run_page(tools[0].blocks_of(PAGES[name]), capsys)


def test_blocks_are_what_a_page_shows(tools):
    page = ("# T\n\nText.\n\n```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n\nMore:\n\n"
            "    $ microtron a\n    one\n    two\n    $ microtron b\n\n    not run\n\n"
            "```diff\n-a\n+b\n```\n")
    found = [(each.kind, each.printed) for each in tools[0].blocks_of(page)]
    assert found == [("prose", None), ("python", "1\n"), ("prose", None), ("command", "one\ntwo\n"),
                     ("command", None), ("prose", None), ("diff", None)]


@pytest.mark.parametrize("name", PAGES)
def test_a_notebook_has_every_block(tools, name):
    cells = json.loads(tools[1].notebook(PAGES[name]))["cells"]
    blocks = tools[0].blocks_of(PAGES[name])
    assert [each["cell_type"] == "code" for each in cells] == [
        each.kind != "prose" for each in blocks]
    assert all(block.text.strip() in cell["source"] for block, cell in zip(
        blocks, cells, strict=True))
    assert len({each["id"] for each in cells}) == len(cells)
    assert any(each["cell_type"] == "code" for each in cells)


def copy_sources(folder):
    """A copy of the repository in which a tutorial may change files."""
    target = folder / "microtron"
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(
        ".git", ".venv", "__pycache__", "build", ".*_cache", ".hypothesis"))
    return target


def environment_of(folder):
    path = os.pathsep.join([str(folder.parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "MICROTRON_ANEW": "",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.soak
def test_the_tutorial_that_changes_the_hardware_runs_in_a_copy(tools, tmp_path):
    folder = copy_sources(tmp_path)
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    python = ""
    for block in tools[0].blocks_of(PAGES[CHANGES_SOURCES]):
        if block.kind == "diff":
            subprocess.run(["git", "apply", "-p0", "-"], input=block.text, text=True, cwd=folder,
                           check=True)
        elif block.kind == "python":
            python += block.text
            done = subprocess.run([sys.executable, "-c", python], cwd=folder, check=True, text=True,
                                  capture_output=True, env=environment_of(folder))
            assert block.printed is None or done.stdout.endswith(block.printed)
        elif block.kind == "command":
            subprocess.run(block.text, shell=True, cwd=folder, check=True,
                           env=environment_of(folder))


@pytest.mark.soak
@pytest.mark.parametrize("name", [each for each in PAGES if each != CHANGES_SOURCES])
def test_a_notebook_runs_in_jupyter(tools, name, tmp_path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for key, value in environment_of(Path(microtron.__file__).parent).items():
        monkeypatch.setenv(key, value)
    book = nbformat.reads(tools[1].notebook(PAGES[name]), as_version=4)
    nbformat.validate(book)
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell, block in zip(book.cells, tools[0].blocks_of(PAGES[name]), strict=True):
        if block.printed is not None and block.kind == "python":
            assert "".join(each.get("text", "") for each in cell.outputs) == block.printed
