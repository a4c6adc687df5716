"""Configurations: presets, refusals with their reasons, files of ours and of VTA's."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import ConfigError
from microtron.isa.config import PRESETS, Config, base, lean, small, tiny, wide
from microtron.isa.config_files import (
    VTA_REQUIRED,
    format_toml,
    from_dict,
    load_config,
    parse_toml,
    parse_vta,
    save_config,
)
from microtron.isa.instructions import Buffer

from .strategies import configs

VTA_DEFAULT = {"TARGET": "sim", "HW_VER": "0.0.2", "LOG_INP_WIDTH": 3, "LOG_WGT_WIDTH": 3,
               "LOG_ACC_WIDTH": 5, "LOG_BATCH": 0, "LOG_BLOCK": 4, "LOG_UOP_BUFF_SIZE": 15,
               "LOG_INP_BUFF_SIZE": 15, "LOG_WGT_BUFF_SIZE": 18, "LOG_ACC_BUFF_SIZE": 17}


def refuses(message):
    return pytest.raises(ConfigError, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize(("config", "shape", "macs"), [
    (tiny, (1, 4, 4), 16), (small, (1, 8, 8), 64),
    (lean, (1, 16, 16), 256), (base, (1, 16, 16), 256),
    (wide, (1, 32, 32), 1024)])
def test_presets_have_the_shapes_they_promise(config, shape, macs):
    assert (config.batch, config.block_in, config.block_out) == shape
    assert config.macs_per_cycle == macs


def test_the_numbers_of_a_configuration_are_its_fields_and_what_follows_from_them():
    numbers = lean.numbers()
    assert numbers.items() >= lean.to_dict().items()
    assert [numbers[name] for name in ("acc_tiles", "bus_bytes", "alu_lanes", "token_limit")] == [
        lean.tiles(Buffer.ACC), 8, 8, 255]
    assert not {"digest", "has_windows"} & set(numbers)


def test_base_is_the_reference_and_the_default():
    assert base == Config(window_taps=3, tables=8)
    sizes = [getattr(base, f"{name}_bytes") >> 10 for name in ("uop", "inp", "wgt", "acc", "out")]
    assert sizes == [32, 32, 256, 128, 32]
    assert (base.bus_bytes, base.token_limit) == (8, 255)


@given(configs())
def test_tiles_fill_every_scratchpad(config):
    for buffer in Buffer:
        stored = Buffer.ACC if buffer == Buffer.ACC8 else buffer
        size = getattr(config, f"{stored.name.lower()}_bytes")
        assert config.tiles(buffer) * config.tile_bytes(stored) == size
        assert 2 <= config.tiles(buffer) <= 1 << 16
    assert config.tile_bytes(Buffer.ACC8) * 4 == config.tile_bytes(Buffer.ACC)
    assert config.acc_bank_tiles * config.acc_banks == config.tiles(Buffer.ACC)
    assert config.depthwise_lanes == min(config.block_in, config.block_out)


POWER = "but must be a power of two from 1 to"


@pytest.mark.parametrize(("fields", "message"), [
    ({"batch": 0}, f"batch is 0, {POWER} 16"),
    ({"batch": 32}, f"batch is 32, {POWER} 16"),
    ({"batch": -1}, f"batch is -1, {POWER} 16"),
    ({"block_in": 3}, f"block_in is 3, {POWER} 64"),
    ({"block_in": 128}, f"block_in is 128, {POWER} 64"),
    ({"block_out": 12}, f"block_out is 12, {POWER} 64"),
    ({"block_out": 1.0}, "block_out is 1.0, but must be an integer"),
    ({"batch": True}, "batch is True, but must be an integer"),
    ({"batch": "1"}, "batch is '1', but must be an integer"),
    ({"inp_bits": 4}, "inp_bits is 4, but must be 8"),
    ({"wgt_bits": 2}, "wgt_bits is 2, but must be 4 or 8"),
    ({"acc_bits": 24}, "acc_bits is 24, but must be 32"),
    ({"out_bits": 16}, "out_bits is 16, but must be 8"),
    ({"bus_bits": 32}, "bus_bits is 32, but must be 64 or 128 or 256"),
    ({"block_in": 1, "block_out": 1, "wgt_bits": 4},
     "a weight tile of 1 × 1 × 4 bits is less than a byte; take larger blocks"),
    ({"uop_bytes": 8}, "uop_bytes is 8, but must be a power of two and hold two tiles of 8 bytes "
                       "or more"),
    ({"inp_bytes": 0}, "inp_bytes is 0, but must be a power of two and hold two tiles of 16 bytes "
                       "or more"),
    ({"wgt_bytes": 3 << 10}, "wgt_bytes is 3072, but must be a power of two and hold two tiles of "
                             "256 bytes or more"),
    ({"out_bytes": -32}, "out_bytes is -32, but must be a power of two and hold two tiles of 16 "
                         "bytes or more"),
    ({"inp_bytes": 1 << 21}, "inp_bytes is 2097152: 131072 tiles of 16 bytes, but indices have 16 "
                             "bits, so at most 1048576 bytes can be addressed"),
    ({"acc_banks": 3}, "acc_banks is 3, but must be 1, 2, 4 or 8 and leave each bank two of the "
                       "2048 accumulator tiles or more"),
    ({"acc_banks": 8, "acc_bytes": 512}, "acc_banks is 8, but must be 1, 2, 4 or 8 and leave each "
                                         "bank two of the 8 accumulator tiles or more"),
    ({"address_bits": 23}, "address_bits is 23, but must be from 24 to 64"),
    ({"address_bits": 65}, "address_bits is 65, but must be from 24 to 64"),
    ({"queue_depth": 1}, "queue_depth is 1, but must be from 2 to 1024"),
    ({"token_bits": 17}, "token_bits is 17, but must be from 2 to 16"),
    ({"batch": 2, "block_out": 4, "vector_cycles": 16},
     "vector_cycles is 16, but must be a power of two from 1 to 8: a vector has 8 lanes"),
    ({"batch": 2, "vector_cycles": 32},
     "vector_cycles is 32, but must be a power of two from 1 to 16: a vector has 32 lanes"),
])
def test_what_cannot_be_is_refused_with_the_reason(fields, message):
    with refuses(message):
        Config(**fields)


def test_the_largest_tiles_take_a_page():
    config = Config(batch=16, block_in=64, block_out=64)
    assert config.tile_bytes(Buffer.ACC) == config.tile_bytes(Buffer.WGT) == 4096


@given(configs())
def test_a_configuration_comes_back_from_toml(config):
    assert parse_toml(format_toml(config)) == config


def test_toml_explains_every_field():
    lines = format_toml(base).splitlines()
    fields = dataclasses.fields(Config)
    assert lines[0::2] == [f"# {field.metadata['doc']}" for field in fields]
    assert lines[1::2] == [f"{field.name} = {getattr(base, field.name)}" for field in fields]


@given(configs())
def test_a_configuration_comes_back_from_its_dictionary(config):
    assert from_dict(config.to_dict(), preset=tiny) == config


@given(configs(), configs())
def test_digests_tell_configurations_apart(one, other):
    assert (one.digest == other.digest) == (one == other)
    assert re.fullmatch("[0-9a-f]{16}", one.digest)


def test_digests_are_those_from_before_fields_came_later():
    before = dataclasses.replace(small, vector_cycles=1)
    assert [each.digest for each in (tiny, before, Config(), wide)] == [
        "6971e1cfc757460a", "7deed1603cc02181", "c3d840f40d11ac34", "e9cc3300c7e9faaa"]


def test_the_lanes_of_the_alu_follow_from_the_cycles_of_a_vector():
    assert [dataclasses.replace(base, batch=2, vector_cycles=cycles).alu_lanes
            for cycles in (1, 2, 4, 8, 16)] == [32, 16, 8, 4, 2]


def test_a_file_comes_back(tmp_path):
    path = tmp_path / "mine.toml"
    config = dataclasses.replace(small, batch=2, block_in=16, wgt_bits=4)
    save_config(config, path)
    assert load_config(path) == load_config(str(path)) == config
    assert [each.name for each in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_goes_by_its_name(name):
    assert load_config(name) is PRESETS[name]


def test_toml_may_start_from_a_preset_and_leave_the_rest_out():
    assert parse_toml("") == base
    assert parse_toml('preset = "tiny"\nbatch = 2') == dataclasses.replace(tiny, batch=2)


@pytest.mark.parametrize(("text", "message"), [
    ("batch = 3", "f.toml: batch is 3, but must be a power of two from 1 to 16"),
    ("batsch = 2", "f.toml: there is no field 'batsch'; did you mean batch?"),
    ('preset = "huge"', "f.toml: preset is 'huge', but must be one of micro, mini, compact, tiny, "
                        "trim, small, slim, lean, base, wide"),
    ("preset = 3", "f.toml: preset is 3, but must be one of micro, mini, compact, tiny, trim, "
                   "small, slim, lean, base, wide"),
    ("batch = [1]", "f.toml: batch is [1], but must be an integer"),
])
def test_toml_that_says_something_wrong_is_refused_with_its_place(text, message):
    with refuses(message):
        parse_toml(text, place="f.toml")


def understood_or_explained(parse, text):
    try:
        return isinstance(parse(text, place="f"), Config)
    except ConfigError as error:
        return re.fullmatch("f: .+", str(error)) is not None


@given(st.text())
def test_any_text_as_toml_gives_a_configuration_or_one_line(text):
    assert understood_or_explained(parse_toml, text)


def test_a_name_that_is_nothing_is_refused_with_what_there_is(tmp_path):
    with refuses("configuration 'bass' is neither a preset (micro, mini, compact, tiny, trim, "
                 "small, slim, lean, base, wide) nor a .toml or .json file; did you mean base?"):
        load_config("bass")
    missing = tmp_path / "none.toml"
    with refuses(f"{missing}: cannot be read: No such file or directory"):
        load_config(missing)
    missing.write_bytes(b"\xff\xfe")
    with refuses(f"{missing}: cannot be read: not UTF-8 text"):
        load_config(missing)


def test_the_default_of_vta_is_base(tmp_path):
    path = tmp_path / "vta_config.json"
    path.write_text(json.dumps(VTA_DEFAULT))
    assert load_config(path) == parse_vta(json.dumps(VTA_DEFAULT)) == base


def test_a_vta_of_small_blocks_has_no_windows():
    config = parse_vta(json.dumps(VTA_DEFAULT | {"LOG_BLOCK": 1}))
    assert (config.block_in, config.window_taps) == (2, 1)


def test_a_wider_vta_keeps_its_shape_and_its_bytes():
    config = parse_vta(json.dumps(VTA_DEFAULT | {
        "LOG_BATCH": 1, "LOG_BLOCK": 5, "LOG_WGT_WIDTH": 2, "LOG_ACC_BUFF_SIZE": 18}))
    assert (config.batch, config.block_in, config.block_out, config.wgt_bits) == (2, 32, 32, 4)
    assert (config.wgt_bytes, config.acc_bytes, config.out_bytes) == (256 << 10, 256 << 10,
                                                                      64 << 10)


@pytest.mark.parametrize("key", VTA_REQUIRED)
@pytest.mark.parametrize("value", [None, -1, 31, 1.5, "3", True])
def test_a_key_of_vta_must_be_a_small_number(key, value):
    with refuses(f"vta_config.json: {key} is {value!r}, but must be an integer from 0 to 30"):
        parse_vta(json.dumps(VTA_DEFAULT | {key: value}))


@pytest.mark.parametrize(("text", "message"), [
    ("[1]", "v.json: holds a list, but must be an object"),
    ("{}", "v.json: LOG_BATCH is None, but must be an integer from 0 to 30"),
    ("", "v.json: not JSON: Expecting value: line 1 column 1 (char 0)"),
    (json.dumps(VTA_DEFAULT | {"LOG_INP_WIDTH": 4}), "v.json: inp_bits is 16, but must be 8"),
])
def test_json_that_is_no_configuration_is_refused_with_its_place(text, message):
    with refuses(message):
        parse_vta(text, place="v.json")


@given(st.text() | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(VTA_REQUIRED), inner),
    max_leaves=12).map(json.dumps))
def test_any_text_as_json_gives_a_configuration_or_one_line(text):
    assert understood_or_explained(parse_vta, text)


def test_json_nested_without_end_is_one_line_too():
    with pytest.raises(ConfigError, match=r"^f: not JSON: .+$"):
        parse_vta("[" * 200_000, place="f")
