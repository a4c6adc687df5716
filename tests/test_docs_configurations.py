"""docs/configurations.md and docs/from_vta.md are true: fields, defaults, limits and keys."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from microtron.base.errors import ConfigError
from microtron.isa.config import INDEX_BITS, MICROARCHITECTURE, Config, base
from microtron.isa.config_files import VTA_BITS, VTA_BYTES, VTA_REQUIRED, load_config, parse_toml
from microtron.isa.instructions import Buffer

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "configurations.md").read_text(encoding="utf-8")
VTA_PAGE = (ROOT / "docs" / "from_vta.md").read_text(encoding="utf-8")
EXAMPLE = re.search(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
ROWS = {name: (default, values, doc) for name, default, values, doc in re.findall(
    r"^\| `(\w+)` \| (\d+) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", PAGE, re.MULTILINE)}


def test_the_table_has_every_field_with_its_default_and_its_line_of_documentation():
    assert [(name, int(default), doc) for name, (default, _, doc) in ROWS.items()] == [
        (field.name, getattr(base, field.name), field.metadata["doc"])
        for field in dataclasses.fields(Config)]


def allowed(name: str, values: str) -> tuple[set[int], set[int]]:
    """Values that a cell of the table accepts, and values that it does not."""
    text = values.replace(",", "") if "tiles" in values else values
    powers, ends = "power of two" in text, re.match(r"(\w+)(?: tiles)? to (\d+)", text)
    if ends is None:
        right = {int(each) for each in values.split(",")}
        return right, {value for each in right for value in (each - 1, each + 1, 2 * each)} - right
    low, high = 2 if ends[1] == "two" else int(ends[1]), int(ends[2])
    if "tiles" in text:
        tile = base.tile_bytes(Buffer[name.removesuffix("_bytes").upper()])
        low, high = low * tile, high * tile
    right = {low, high}
    return right, {2 * high, low // 2, 3 * low} if powers else {low - 1, high + 1}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Config)])
def test_the_values_of_a_field_are_those_that_the_table_says(name):
    right, wrong = allowed(name, ROWS[name][1])
    # Two tiles are not for four banks nor for tables, and small blocks not for windows.
    room = {"acc_bytes": {"acc_banks": 1, "tables": 0}, "block_in": {"window_taps": 1},
            "block_out": {"window_taps": 1}}.get(name, {})
    for value in right:
        assert getattr(dataclasses.replace(base, **room, **{name: value}), name) == value
    for value in wrong:
        with pytest.raises(ConfigError, match=name):
            dataclasses.replace(base, **{name: value})


def test_indices_reach_as_many_tiles_as_the_page_says():
    assert f"{1 << INDEX_BITS:,} tiles" in PAGE


def test_the_example_is_a_configuration():
    config = parse_toml(EXAMPLE)
    assert (config.block_in, config.bus_bits, config.acc_bytes) == (8, 128, 131072)


def test_the_error_that_is_shown_is_the_one_that_is_given(tmp_path):
    shown = re.search(r"`(mine\.toml: .*?)`", PAGE, re.DOTALL)[1].replace("\n", " ")
    path = tmp_path / "mine.toml"
    path.write_text(f"{EXAMPLE}acc_banks = 3\n")
    with pytest.raises(ConfigError) as error:
        load_config(path)
    assert str(error.value) == shown.replace("mine.toml", str(path))


def test_the_fields_that_a_sweep_may_change_are_named():
    last = PAGE.rpartition("change a program's meaning: ")[2]
    assert re.findall(r"`(\w+)`", last) == list(MICROARCHITECTURE)


def test_every_key_of_vta_becomes_the_field_that_the_table_says():
    rows = dict(re.findall(r"^\| `(LOG_\w+)` \| ([^|]+) \|", VTA_PAGE, re.MULTILINE))
    assert set(rows) == set(VTA_REQUIRED)
    for key, field in (VTA_BITS | VTA_BYTES).items():
        assert re.findall(r"`(\w+)`", rows[key])[0] == field


def test_the_example_of_a_vta_configuration_is_base():
    assert load_config(ROOT / "examples" / "vta_config.json") == base
