"""The page on models lists exactly the TFLite operators that are read, with the types of numbers
that are tested."""

from __future__ import annotations

import re
from pathlib import Path

from . import tflite_moves, tflite_sequential  # noqa: F401  (declare cases)
from .tflite_cases import CASES

PAGE = Path(__file__).resolve().parents[4] / "docs" / "models.md"


def documented():
    """Pairs of an operator and a type, from the table."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## TFLite\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ((?:`[A-Z0-9_]+` ?)+) \| ([a-z0-9 ]+) \|", section, re.MULTILINE)
    return [(name, dtype) for names, dtypes in rows
            for name in re.findall(r"`(\w+)`", names) for dtype in dtypes.split()]


def test_the_table_of_operators_is_what_is_read_and_tested():
    assert sorted(documented()) == sorted(CASES)
