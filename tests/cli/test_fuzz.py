"""Damaged files and odd arguments: every command ends with a known code and one line, never worse.

An exception that is not ours would leave `command`, and fail the test by itself.
"""

import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.isa.assembly.assembler import assemble
from microtron.isa.config import tiny
from microtron.isa.config_files import format_toml
from microtron.isa.image import program_image, sections
from microtron.isa.manual_prose import EXAMPLE

from ..command import command
from ..runtime.small_model import image as image_of_numbers
from ..runtime.small_model import small_graph

SOURCE = """
.config tiny
.segment input  size=64 access=read
.segment output size=64 access=write
.tensor x segment=input  shape=2,4
.tensor y segment=output shape=2,4
.code
    load.acc8 segment=input shape=1,1,2 post=alu
    alui.add wait=load immediate=7 loops=1,1,2 dst_stride=0,0,1 target=out post=store
    store.out wait=alu segment=output shape=1,1,2
    sync.end
"""
VTA = {"LOG_BATCH": 0, "LOG_BLOCK": 4, "LOG_INP_WIDTH": 3, "LOG_WGT_WIDTH": 3, "LOG_ACC_WIDTH": 5,
       "LOG_UOP_BUFF_SIZE": 15, "LOG_INP_BUFF_SIZE": 15, "LOG_WGT_BUFF_SIZE": 18,
       "LOG_ACC_BUFF_SIZE": 17}
CODES = {0, 1, 2}
LONGEST = 2100                  # of the line that says what is wrong, whatever the input is

# Pieces that have broken parsers.
PIECES = [b"", b"0", b"-1", b"9" * 5000, b"1e999", b"0x" + b"f" * 3000, b"[" * 3000, b"{" * 3000,
          b"(" * 3000, b'"', b"'", b"\\", b"\\u{110000}", b"=", b"==", b",", b";", b"\n", b"\r",
          b"\0", b"\x1b[31m", b"\xff", "→中".encode(), b"nan", b"true", b"x" * 100_000,
          b"PK\x03\x04", b"\x93NUMPY", b"%s%n{0}"]
ODD = ["", "-", "--", "=", "x=", "=y", "x==y", ",", "-1", "0", "1" * 5000, "٣", "∞", "1e9", "0x10",
       "\udcff", "\x1b[31m", "x" * 100_000, "/", "/dev/null", "/dev/full", "../nowhere/x.npy",
       "a\nb", "--limit", "--device", "none", "nan", "%s"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each kind, by name."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "p.asm").write_text(SOURCE)
    program_image.save(assemble(SOURCE), folder / "p.mt")
    (folder / "c.toml").write_text(format_toml(tiny))
    (folder / "vta.json").write_text(json.dumps(VTA))
    microtron.compile(small_graph(), "tiny").save(folder / "m.mt")
    np.save(folder / "image.npy", image_of_numbers())
    np.save(folder / "x.npy", np.arange(8, dtype=np.int8).reshape(2, 4))
    return folder


def check(*arguments, **options):
    ended = command(*arguments, **options)
    assert ended.code in CODES, ended
    if ended.code == 2:
        assert ended.error.startswith("microtron: ") or "verify" in arguments
        assert ended.error.count("\n") == 1 or "verify" in arguments
        assert all(len(line) < LONGEST for line in ended.error.splitlines())
        assert "\x1b" not in ended.error
    return ended


def damage(content, rng):
    """The content with a byte or a word changed, a piece put in, a part doubled or cut out."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 3))):
        first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        words = [word.span() for word in re.finditer(rb"[\w.]+", content)]
        match rng.choice((0, 1, 2, 3, 4, 5, 5, 5) if words else (1,)):
            case 0:
                content[first:first + 1] = bytes([rng.randrange(256)])
            case 1:
                content[first:first] = rng.choice(PIECES)
            case 2:
                content[first:last] = rng.choice(PIECES)
            case 3:
                content[first:first] = content[first:last]
            case 4:
                del content[last:]
            case 5:
                content[slice(*rng.choice(words))] = rng.choice(PIECES)
    return bytes(content)


@pytest.mark.parametrize(("name", "arguments"), [
    ("p.asm", ("verify", "p.asm")),
    ("p.asm", ("asm", "p.asm", "--tokens", "-o", "/dev/null")),
    ("p.mt", ("verify", "p.mt")),
    ("p.mt", ("disasm", "p.mt")),
    ("c.toml", ("config", "c.toml")),
    ("vta.json", ("config", "vta.json", "--json")),
    ("x.npy", ("run", "p.mt", "-i", "x=x.npy")),
], ids=lambda each: each if isinstance(each, str) else each[0])
def test_damaged_files(files, tmp_path, name, arguments):
    for each in files.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    content, codes = (files / name).read_bytes(), []
    assert check(*arguments, cwd=tmp_path).code == 0
    for seed in range(100):
        (tmp_path / name).write_bytes(damage(content, random.Random(f"{name} {seed}")))
        codes.append(check(*arguments, cwd=tmp_path).code)
    assert codes.count(2) > 20


def alter(program, rng):
    """The image of a program that is another one, or none, although its checksum is right."""
    found = sections.unpack(np.frombuffer(program_image.to_bytes(program), np.uint8))
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.choice((0, 1, 1, 1, 2))             # meta, code, what segments hold
        content = bytearray(found[place].content)
        match place:
            case 0:
                content = bytearray(damage(content, rng))
            case 1:
                first = rng.randrange(0, len(content))
                changed = rng.choice((b"\0", b"\1", b"\x7f", b"\xff", b"\xff\xff", b"\0\0\0\x80",
                                      bytes([rng.randrange(256)])))
                content[first:first + len(changed)] = changed[:len(content) - first]
            case 2:
                content = content[:rng.randrange(len(content))]
        found[place] = replace(found[place], content=np.frombuffer(bytes(content), np.uint8))
    return sections.pack(found)


@pytest.mark.parametrize("arguments", [
    ("verify",), ("verify", "--json"), ("disasm",), ("profile", "--limit", "20000"),
    ("run", "--limit", "20000"), ("run", "--no-check", "--limit", "20000"),
    ("run", "--no-check", "--seed", "7", "--limit", "20000"),
    ("run", "--no-check", "--device", "cycle", "--limit", "20000", "--json"),
], ids=" ".join)
def test_images_that_hold_another_program_or_none(tmp_path, arguments):
    codes = []
    for seed in range(60):
        rng = random.Random(f"altered {seed}")
        (tmp_path / "p.mt").write_bytes(alter(assemble(EXAMPLE), rng))
        codes.append(check(*arguments, "p.mt", cwd=tmp_path).code)
    assert codes.count(2) > 10
    assert codes.count(0) > 10


@pytest.mark.parametrize("arguments", [
    ("asm", "p.asm", "-o", "out.mt"),
    ("disasm", "p.mt", "-o", "out.asm"),
    ("verify", "p.mt", "--json"),
    ("run", "p.mt", "-i", "x=x.npy", "-o", "y=y.npy", "--seed", "1"),
    ("run", "p.mt", "--device", "functional", "--json"),
    ("compile", "m.mt", "-o", "out.mt", "--config", "tiny", "--shape", "x=1,2", "--show", "plan"),
    ("inspect", "m.mt", "--memory", "stalls=3", "--limit", "20000", "--json"),
    ("run", "m.mt", "-i", "image=image.npy", "-o", "conv=y.npy", "--device", "functional"),
    ("config", "tiny", "-o", "out.toml"),
    ("isa", "gemm"),
    ("kernel", "conv2d", "--height", "5", "--width", "5", "--channels-in", "4", "--channels-out",
     "4", "--config", "tiny", "--knobs", "rows=1", "--kernel", "3,3", "--stride", "1", "--pad", "1",
     "--show", "schedule"),
], ids=lambda each: " ".join(each[:2]))
def test_odd_arguments(files, tmp_path, arguments):
    """In the place of any argument, beside it, or as a part of it."""
    for each in files.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    for seed in range(100):
        rng = random.Random(f"{arguments} {seed}")
        odd, place = rng.choice(ODD), rng.randrange(1, len(arguments))
        before, word, after = arguments[:place], arguments[place], arguments[place + 1:]
        name, equals, _ = word.partition("=")
        changed = rng.choice(((odd,), (odd, word), (name + equals + odd,), ()))
        check(*before, *changed, *after, cwd=tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
