"""The page on models lists exactly the ONNX operators that are read, and the types."""

from __future__ import annotations

import re
from pathlib import Path

from onnx import TensorProto

from microtron.compiler.frontends.onnx.onnx_file import DTYPES
from microtron.compiler.frontends.onnx.read_onnx import supported_operators

PAGE = Path(__file__).resolve().parents[4] / "docs" / "models.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("\n## ONNX\n")[2].partition("\n## ")[0]


def test_the_table_of_operators_is_what_is_read():
    rows = re.findall(r"^\| (`.*?`) \|", SECTION, re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`([\w.]+)`", row)) == sorted(
        supported_operators())


def test_the_types_are_those_that_are_read():
    words = re.search(r"^Types are (.*?)\.", SECTION, re.MULTILINE)[1]
    assert re.findall(r"[A-Z0-9]+", words) == [TensorProto.DataType.Name(each) for each in DTYPES]
