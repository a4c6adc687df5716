"""The diagrams in docs/ are what tools/diagrams.py draws."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["accelerator", "compiler"])
def test_a_diagram_is_up_to_date(name):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import diagrams
    finally:
        sys.path.remove(str(ROOT / "tools"))
    text = getattr(diagrams, name)()
    ElementTree.fromstring(text)
    assert (ROOT / "docs" / f"{name}.svg").read_text(encoding="utf-8") == text, (
        "write it again with `make docs`")
