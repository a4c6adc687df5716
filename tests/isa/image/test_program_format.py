"""docs/program.md is true: images are read here by its tables alone."""

import hashlib
import json
import re
import struct
from pathlib import Path

import numpy as np

from microtron.isa import stream
from microtron.isa.config import small
from microtron.isa.image.program_image import metadata, sections, to_bytes
from microtron.isa.instructions import Gemm, Sync
from microtron.isa.program import (
    DATA_BYTES_LIMIT,
    SEGMENT_BYTES_LIMIT,
    Access,
    Program,
    Segment,
    Tensor,
)

DOCUMENT = (Path(__file__).parents[3] / "docs" / "program.md").read_text(encoding="utf-8")
CODES = {"u16": "H", "u32": "I", "u64": "Q"}

DATA = np.arange(200, dtype=np.uint8)
PROGRAM = Program(
    small, stream.encode([Gemm(count=3), Sync()]),
    (Segment("io", 64, Access.WRITE), Segment("weights", 300, data=DATA)),
    (Tensor("x", "io", 0, (8, 8)), Tensor("b", "weights", 4, (3,), "int32")),
    {"main": 0}, {"source": 'a "test"\nof \\ everything\t→ ü'})


def tables_under(heading):
    """The tables of a chapter, each a list of rows of cells, without their headings."""
    chapter = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    tables = re.findall(r"(?:^\|.*\n)+", chapter, re.MULTILINE)
    return [[[cell.strip() for cell in row.strip("|").split("|")]
             for row in table.strip().split("\n")[2:]] for table in tables]


def read_record(data, start, rows):
    """The fields that a table of offset, bytes, type and field describes."""
    fields, end = {}, 0
    for offset, size, kind, name, _ in rows:
        assert int(offset) == end, f"{name} leaves a gap or overlaps"
        end = int(offset) + int(size)
        piece = data[start + int(offset):start + end]
        fields[name.strip("`")] = piece if kind == "bytes" else struct.unpack(
            f"<{CODES[kind]}", piece)[0]
    return fields, end


def read_image(data):
    """Header and sections, as the document says they lie."""
    (header_rows,), (entry_rows, _) = tables_under("Header"), tables_under("Section table")
    header, end = read_record(data, 0, header_rows)
    found = {}
    entries = []
    for _ in range(header["sections"]):
        entry, size = read_record(data, end, entry_rows)
        entries.append(entry)
        end += size
    for entry in entries:
        offset = entry["offset"]
        assert offset == -(-end // entry["alignment"]) * entry["alignment"]
        assert not any(data[end:offset])
        end = offset + entry["size"]
        found[entry["name"].rstrip(b"\0").decode()] = data[offset:end], entry
    assert end == header["size"] == len(data)
    return header, found


def test_the_header_is_as_documented():
    data = to_bytes(PROGRAM)
    header, _ = read_image(data)
    rows = {row[3].strip("`"): row[4] for row in tables_under("Header")[0]}
    assert header["magic"] == bytes.fromhex(rows["magic"].split("`")[1])
    assert header["format_version"] == int(rows["format_version"].split(": ")[1])
    assert header["isa_version"] == int(rows["isa_version"].split(": ")[1])
    assert header["reserved"] == int(rows["reserved"])
    low, high = map(int, re.findall(r"0 to (\d+) followed by (\d+) to the end",
                                    rows["checksum"])[0])
    assert header["checksum"] == hashlib.sha256(data[:low + 1] + data[high:]).digest()


def test_the_sections_are_as_documented():
    _, found = read_image(to_bytes(PROGRAM))
    rows = tables_under("Section table")[1]
    documented = {name: (int(alignment), required == "yes")
                  for names, alignment, required, _ in rows
                  for name in ([f"segment.{index}" for index in range(8)] if "…" in names
                               else [names.strip("`")])}
    assert list(found) == ["meta", "code", "segment.1"]
    for name, (_, entry) in found.items():
        assert (entry["alignment"], entry["flags"] == 1) == documented[name]
    assert found["code"][0] == stream.as_bytes(PROGRAM.code).tobytes()
    assert found["segment.1"][0] == DATA.tobytes()


def test_the_metadata_is_as_documented():
    _, found = read_image(to_bytes(PROGRAM))
    text = found["meta"][0].decode()
    meta = json.loads(text)
    assert list(meta) == [row[0].strip("`") for row in tables_under("Metadata")[0]]
    assert meta["config"] == {name: value for name, value in small.to_dict().items()
                              if name not in ("out_readers", "window_taps", "cycles_only",
                                              "tables")}
    assert meta["labels"] == {"main": 0}
    assert meta["provenance"] == {"source": 'a "test"\nof \\ everything\t→ ü'}
    assert meta["segments"] == [{"access": "write", "name": "io", "size": 64},
                                {"access": "read", "name": "weights", "size": 300}]
    assert meta["tensors"] == [
        {"dtype": "int8", "name": "x", "offset": 0, "segment": "io", "shape": [8, 8]},
        {"dtype": "int32", "name": "b", "offset": 4, "segment": "weights", "shape": [3]}]
    assert '"source":"a \\"test\\"\\nof \\\\ everything\\t→ ü"' in text


def test_the_limits_are_as_documented():
    limits = [int(row[1]) for row in tables_under("Metadata")[1]]
    assert limits == [sections.SECTIONS_LIMIT, metadata.TEXT_LIMIT, metadata.SEGMENT_NAME_LIMIT,
                      metadata.NAME_LIMIT, metadata.PROVENANCE_LIMIT, metadata.RANK_LIMIT,
                      SEGMENT_BYTES_LIMIT, DATA_BYTES_LIMIT]
