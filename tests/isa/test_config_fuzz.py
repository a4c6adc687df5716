"""Damaged configuration files: a configuration comes out, or one line that says what is wrong."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtron.base.errors import ConfigError
from microtron.isa.config import PRESETS, Config
from microtron.isa.config_files import format_toml, load_with_notes

MUTANTS = 200
VTA = {"TARGET": "sim", "HW_VER": "0.0.2", "LOG_INP_WIDTH": 3, "LOG_WGT_WIDTH": 3,
       "LOG_ACC_WIDTH": 5, "LOG_BATCH": 0, "LOG_BLOCK": 4, "LOG_UOP_BUFF_SIZE": 15,
       "LOG_INP_BUFF_SIZE": 15, "LOG_WGT_BUFF_SIZE": 18, "LOG_ACC_BUFF_SIZE": 17}
TOML = format_toml(PRESETS["small"])
FILES = {
    "all.toml": TOML, "preset.toml": "preset = 'tiny'\nbatch = 2\n", "vta.json": json.dumps(VTA),
    "bare.toml": "".join(line for line in TOML.splitlines(True) if not line.startswith("#"))}
# Pieces that parsers trip over.
PIECES = [b"", b"0", b"-", b"9" * 5000, b"0x" + b"f" * 5000, b"1e400", b"nan", b"inf", b"true",
          b"null", b"[" * 5000, b"{" * 5000, b"{'a'={" * 2000, b"a." * 5000, b'"', b"'", b'"""',
          b"\\", b"\\ud800", b"=", b",", b"\n", b"\r", b"\0", b"\xff", b"\xed\xa0\x80", b"#",
          "٣".encode(), "\u2028".encode(), b"1979-05-27", b"[a]", b"[[a]]", b"preset=1"]


def outcome(path):
    """What reading a file gives: a configuration, or None if it is refused as it should be."""
    try:
        config, lines = load_with_notes(path)
    except ConfigError as error:
        config, lines = None, (str(error),)
    assert config is None or isinstance(config, Config)
    for line in lines:
        assert line.startswith(f"{path}: ")
        assert len(line.splitlines()) == 1
        assert len(line) < 500
    return config


def mutate(rng, data):
    """The file with a few places changed: pieces put in, parts left out or doubled."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data) + 1)
        stop = min(len(data), start + rng.choice((0, 1, 1, 4, 30)))
        piece = rng.choice((rng.choice(PIECES), rng.choice(PIECES), rng.randbytes(2),
                            data[start:stop] * 2))
        data = data[:start] + piece + data[stop:]
    return data


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_refused_in_one_line_or_taken(name, tmp_path):
    rng, path = random.Random(name), tmp_path / name
    outcomes = []
    for _ in range(MUTANTS):
        path.write_bytes(mutate(rng, FILES[name].encode()))
        outcomes.append(outcome(path))
    assert None in outcomes
    assert any(outcomes), "some changes do no harm"


@pytest.mark.parametrize("suffix", ["toml", "json"])
@settings(max_examples=150)
@given(text=st.text() | st.binary())
def test_any_text_is_refused_in_one_line_or_taken(suffix, text, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"any.{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    outcome(path)


@given(table=st.dictionaries(
    st.sampled_from(list(VTA)) | st.text(),
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                 lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))))
def test_any_object_of_json_is_refused_in_one_line_or_taken(table, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "object.json"
    path.write_text(json.dumps(VTA | table))
    outcome(path)


def test_a_path_that_cannot_be_one_is_refused():
    for name in ("a\0b.toml", "x" * 5000 + ".json", "/nowhere/at/all.toml", "/.toml"):
        with pytest.raises(ConfigError):
            load_with_notes(name)
