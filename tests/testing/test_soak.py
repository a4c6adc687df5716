"""The long campaign: it resumes, shares out its work, and keeps what differs."""

import json

import pytest

from microtron.base.source_digest import ROOT, source_files
from microtron.isa.config import PRESETS
from microtron.isa.image import program_image
from microtron.runtime.devices.rtl_build import GENERATORS
from microtron.sim.cycle.run import run_cycles
from microtron.testing import compare as both
from microtron.testing import soak
from microtron.testing.soak import FIRST_SEED, PART, Part, Progress, remaining, work


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "progress_file", lambda: tmp_path / "progress.json")
    monkeypatch.setattr(soak, "SHARES", {"tiny": 1})
    return tmp_path / "progress.json"


def test_goes_on_where_it_stopped(path):
    told = []
    progress, difference = soak.soak(25, 1, told.append)
    assert (progress.equal, difference) == ({"tiny": 25}, "")
    assert told[0] == "compiling tiny"
    assert told[-1] == "25 programs equal"
    assert json.loads(path.read_text()) == {"tiny": 25}
    told.clear()
    assert soak.soak(25, 1, told.append)[0].total == 25
    assert told == []
    assert [(part.first, part.count) for part in remaining(Progress(path), 30)] == [(25, 5)]
    assert soak.soak(30, 1, told.append)[0].total == 30


@pytest.mark.parametrize("text", [
    "", "{", "[]", "7", '{"tiny": "3"}', '{"tiny": -1}', '{"tiny": null}', '{"tiny": true}',
    '{"another": 3}', "[" * 100_000])
def test_a_file_that_is_damaged_begins_anew(path, text):
    path.write_text(text)
    assert Progress(path).total == 0


def test_shares_are_kept_at_any_time_and_in_the_end():
    progress = Progress(soak.progress_file().with_name("none.json"))
    for part in remaining(progress, 10_000):
        assert 0 < part.count <= PART
        first = progress.equal.get(part.name, 0)
        assert first == part.first
        progress.equal[part.name] = first + part.count
        shares = [number / soak.SHARES[name] for name, number in progress.equal.items()]
        assert max(shares) - min(shares) <= PART
    assert 10_000 <= progress.total < 10_000 + len(soak.SHARES)
    assert set(progress.equal) == set(soak.SHARES)


def test_all_presets_take_part():
    assert set(PRESETS) <= set(soak.SHARES)
    digests = {soak.config_of(name).digest for name in soak.SHARES}
    assert len(digests) == len(soak.SHARES)


def test_changed_sources_begin_anew(monkeypatch):
    before = soak.progress_file()
    assert soak.progress_file() == before
    monkeypatch.setattr(soak, "generator", lambda: "other hardware")
    hardware = soak.progress_file()
    monkeypatch.setattr(soak, "source_digest", lambda *modules: "other sources")
    assert len({before, hardware, soak.progress_file()}) == 3


def test_both_sides_and_what_compares_them_are_among_the_sources():
    found = {path.relative_to(ROOT).as_posix()
             for path in source_files(soak.__name__, *GENERATORS)}
    assert found >= {"hw/top.py", "sim/cycle/loop.py", "isa/config.py", "testing/compare.py",
                     "testing/random_programs.py", "runtime/devices/rtl_build.py"}
    assert any(name.startswith("runtime/devices/harness/") for name in found)


def test_a_difference_ends_a_part_and_the_program_is_kept(tmp_path, monkeypatch):
    def wrong_from_the_second_on(program, **options):
        run = run_cycles(program, **options)
        number = int(program.provenance["generator"].split()[1].rstrip(",")) - FIRST_SEED
        if number >= 2:
            run.timeline.end[0] += 1
        return run

    monkeypatch.setattr(both, "run_cycles", wrong_from_the_second_on)
    monkeypatch.setattr(soak, "cache_folder", lambda part: tmp_path / part)
    result = work(Part("tiny", 1, 4))
    assert result.equal == 1
    kept, = (tmp_path / "soak").glob("*-2.mt")
    assert str(kept) in result.difference
    assert "differs first in cycle" in result.difference
    assert len(program_image.load(kept).code) > 0
    progress = Progress(tmp_path / "progress.json")
    progress.equal["tiny"] = 1
    progress.add(result)
    assert progress.equal == {"tiny": 2}
