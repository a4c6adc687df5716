"""Tables: which accelerators have them, what they are filled from, and what may meet."""

from dataclasses import replace

import numpy as np
import pytest

from microtron.base.errors import ConfigError, ExecutionError, MicrotronError
from microtron.isa.config import Config, base, micro, tiny
from microtron.isa.instructions import (
    Buffer,
    Engines,
    Load,
    Requantize,
    Sync,
    Table,
    lookup_flags,
)
from microtron.isa.program import Access, Program, Segment
from microtron.isa.stream import encode
from microtron.isa.verification.bounds import check
from microtron.isa.verification.derive_tokens import with_tokens
from microtron.isa.verification.verifier import inspect, verify

TABLES = replace(tiny, tables=8)
DATA = Segment("data", 4096, Access.READ, np.zeros(4096, np.uint8))


def program(*instructions, config=TABLES):
    return Program(config, encode([*instructions, Sync()]), (DATA,))


def test_configurations_say_whether_they_have_tables():
    assert Table in base.instructions
    assert Table not in tiny.instructions
    assert "tables" not in tiny.explicit_fields()
    with pytest.raises(ConfigError, match=r"^tables is 4, but must be 0 or 8$"):
        Config(tables=4)
    with pytest.raises(ConfigError, match="from 64 tiles of the accumulator, which has 16"):
        Config(block_out=1, acc_bytes=64, tables=8)


@pytest.mark.parametrize(("config", "tiles"), [
    (base, 4), (TABLES, 16), (micro, 32), (Config(batch=16, block_out=64), 1)])
def test_a_table_is_filled_from_as_many_tiles_as_hold_it(config, tiles):
    assert config.table_tiles == tiles
    assert tiles == 1 or tiles * config.tile_bytes(Buffer.ACC) == 256


@pytest.mark.parametrize("instruction", [Table(), Requantize(flags=lookup_flags(0))])
def test_without_tables_they_are_refused(instruction):
    with pytest.raises(ExecutionError, match=r"tables is 0, .* need 8"):
        check(instruction, tiny, (), None)
    finding, = inspect(program(instruction, config=tiny)).findings
    assert "tables is 0" in finding
    verify(program(instruction))


def test_a_table_reaches_no_further_than_the_accumulator():
    last = TABLES.tiles(Buffer.ACC) - TABLES.table_tiles
    check(Table(src=last), TABLES, (), None)
    with pytest.raises(ExecutionError, match="src reaches tile 512, but acc has 512"):
        check(Table(src=last + 1), TABLES, (), None)
    with pytest.raises(MicrotronError, match="src reaches tile 512"):
        verify(program(Table(src=last + 1)))


@pytest.mark.parametrize(("tile", "meets"), [(6, False), (7, True), (22, True), (23, False)])
def test_a_table_waits_for_the_tiles_that_it_reads(tile, meets):
    load, table = Load(buffer=Buffer.ACC, sram=tile), Table(src=7)
    found = inspect(program(load, table))
    assert bool(found.findings) == meets
    derived = with_tokens(program(load, table))
    assert derived.code["wait"][1] == (Engines.LOAD if meets else 0)
    verify(derived)


def test_lookups_need_no_token_for_tables_since_one_engine_has_them():
    verify(program(Table(src=7), Requantize(flags=lookup_flags(0))))
