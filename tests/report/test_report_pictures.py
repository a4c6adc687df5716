"""The pictures of docs/report.md are made by the tool, and are of this size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from microtron.testing.browser import find_chromium

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ("report_digits", "report_comparison", "report_pareto", "report_mobilenet_v2")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_there_and_its_page_shows_it(name):
    with Image.open(ROOT / "docs" / f"{name}.png") as picture:
        assert picture.size == (1280, 1180)
    assert f"({name}.png)" in (ROOT / "docs" / "report.md").read_text(encoding="utf-8")


@pytest.mark.soak
@pytest.mark.skipif(find_chromium() is None,
                    reason="there is no Chromium: apt-get install chromium")
def test_the_tool_makes_all_pictures(tmp_path):
    """It fails if a page logs an error."""
    subprocess.run([sys.executable, ROOT / "tools" / "report_pictures.py", "--output", tmp_path],
                   cwd=ROOT, check=True)
    made = {path.stem for path in tmp_path.iterdir()}
    models = ROOT.parent / "shared" / "models" / "models"
    assert made == {*PICTURES} - (set() if models.exists() else {"report_mobilenet_v2"})
    for path in tmp_path.iterdir():
        with Image.open(path) as picture, Image.open(ROOT / "docs" / path.name) as shown:
            assert picture.size == shown.size
