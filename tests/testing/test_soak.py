"""The long campaign: it resumes, shares out its work, and keeps what differs."""

import json

import pytest

from microtron.isa.config import PRESETS
from microtron.isa.image import program_image
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


def test_changed_sources_begin_anew(tmp_path, monkeypatch):
    before = soak.progress_file()
    for folder in ("hw", "isa", "sim", "runtime/harness"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(soak, "PACKAGE", tmp_path)
    empty = soak.progress_file()
    (tmp_path / "sim" / "gemm.py").write_text("STOP = 3\n")
    one = soak.progress_file()
    (tmp_path / "sim" / "gemm.py").write_text("STOP = 4\n")
    assert len({before, empty, one, soak.progress_file()}) == 4


def test_a_difference_ends_a_part_and_the_program_is_kept(tmp_path, monkeypatch):
    def wrong_from_the_second_on(program, **options):
        run = run_cycles(program, **options)
        number = int(program.provenance["generator"].split()[1].rstrip(",")) - FIRST_SEED
        if number >= 2:
            run.timeline.end[0] += 1
        return run

    monkeypatch.setattr(both, "run_cycles", wrong_from_the_second_on)
    monkeypatch.setattr(soak, "cache_folder", lambda: tmp_path / "rtl")
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
