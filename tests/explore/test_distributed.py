"""A real cluster of this machine: the records of one process, whatever happens to workers."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from microtron import Dense, MicrotronError, load_config
from microtron.boards.facts.catalogue import find_board
from microtron.explore.area.area_model import shipped_area_model
from microtron.explore.codesign.board_budget import Budget
from microtron.explore.codesign.codesign_search import Exploration, search
from microtron.explore.codesign.layer_streams import StreamLayer
from microtron.explore.codesign.question import Question
from microtron.explore.codesign.workload import Task
from microtron.explore.dataset import Design, collect
from microtron.explore.distributed.pool import DaskPool, SerialPool, open_pool
from microtron.explore.distributed.worker_task import run_task
from microtron.explore.measure import measure_all
from microtron.explore.records import Records
from microtron.explore.tune import TuneOptions, Tuner
from microtron.isa.memory_timing import MemoryTiming
from tests.command import bad

pytest.importorskip("distributed")
POINTS = 500


def cheap_design(**changes):
    """Points of a millisecond each."""
    layers = [Dense(rows=1, inputs=8 * number, outputs=8) for number in range(1, 6)]
    memories = [MemoryTiming(read_latency=latency) for latency in range(8, 58)]
    return Design(**{"configs": [load_config("tiny")], "layers": layers, "memories": memories,
                     "schedules": 2, **changes})


def contents(path):
    with Records(path) as records:
        return sorted(str((record.asked, record.sources, record.measured)) for record in records)


@pytest.fixture(scope="module")
def cluster():
    """Two workers, of which one may be lost; both have the simulator's own device."""
    with open_pool(2, device="cycle") as pool:
        yield pool


def end_a_worker(pool):
    """As a machine that is switched off: the process does not say goodbye."""
    os.kill(next(iter(pool.client.run(os.getpid).values())), signal.SIGKILL)


def test_a_worker_that_is_lost_costs_no_record_and_none_is_there_twice(cluster, tmp_path):
    design, lost = cheap_design(), []

    def lose_one(progress):
        if progress.done > POINTS // 5 and not lost:
            lost.append(progress.done)
            end_a_worker(cluster)
    done = collect(design, tmp_path / "cluster", points=POINTS, pool=cluster, tell=lose_one)
    assert lost
    assert lost[0] < POINTS
    assert (done.done, done.measured) == (POINTS, POINTS)
    collect(cheap_design(), tmp_path / "serial", points=POINTS)     # draws schedules itself
    found = contents(tmp_path / "cluster")
    assert len(found) == POINTS
    assert found == contents(tmp_path / "serial")
    again = collect(design, tmp_path / "cluster", points=POINTS, pool=cluster)
    assert (again.done, again.measured) == (POINTS, 0)


def test_points_have_the_same_order_whoever_draws_them_first():
    class Backwards(SerialPool):
        size = 2

        def run(self, function, tasks):
            yield from reversed(list(super().run(function, tasks)))
    configs = [load_config(name) for name in ("tiny", "small")]
    design, other = (cheap_design(configs=configs) for _ in range(2))
    groups = list(design.groups())
    assert len(groups) == 10
    assert list(other.groups(pool=Backwards())) == groups
    assert sum(map(len, other.groups(333))) == 333
    assert design.known == other.known              # and nothing is drawn again
    few = cheap_design(configs=configs)
    assert sum(map(len, few.groups(333, Backwards()))) == 333
    assert len(few.known) == 4                      # each has up to 100 points: no more is drawn


def test_a_result_that_comes_twice_is_one_record(tmp_path):
    class Twice(SerialPool):
        def run(self, function, tasks):
            for result in super().run(function, tasks):
                yield from (result, result)
    design = cheap_design()
    done = measure_all(tmp_path / "r", design.groups(20), pool=Twice())
    assert done.measured == len(contents(tmp_path / "r")) == 20


def test_points_of_a_device_go_to_workers_that_have_it(cluster, tmp_path):
    design = cheap_design(device="cycle")
    done = collect(design, tmp_path / "device", points=20, pool=cluster)
    assert done.measured == 20
    collect(cheap_design(), tmp_path / "simulated", points=20)
    with Records(tmp_path / "device") as devices, Records(tmp_path / "simulated") as simulated:
        assert {record.asked["device"] for record in devices} == {"cycle"}
        assert {record.state.value for record in devices} == {"valid"}
        assert sorted(record.measured["cycles"] for record in devices) == sorted(
            record.measured["cycles"] for record in simulated)
    assert cluster.count_workers() == 2
    assert DaskPool(cluster.client, tag="device=rtl", sources=None).count_workers() == 0


def test_layers_are_tuned_as_by_one_process(cluster, tmp_path):
    counts = {Dense(rows=1, inputs=24, outputs=width): 1 for width in (8, 40)}
    options = TuneOptions(method="anneal", trials=6)
    found = [Tuner(tmp_path, load_config("tiny"), MemoryTiming(), tmp_path / f"{pool.size}",
                   options, pool=pool)._tune_layers(counts) for pool in (SerialPool(), cluster)]
    assert found[0] == found[1]
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_configurations_are_searched_as_by_one_process(cluster, tmp_path):
    pytest.importorskip("optuna")
    pytest.importorskip("scipy")
    layers = [StreamLayer(Dense(rows=4, inputs=64, outputs=width)) for width in (16, 64)]
    question = Question(tasks=[Task(tmp_path, 1.0, "", (tuple(layers),))], memory=MemoryTiming(),
                        budget=Budget(find_board("ulx3s"), shipped_area_model()))
    found = []
    for pool in (SerialPool(), cluster):
        found.append(Exploration(question))
        search(found[-1], trials=40, pool=pool)
    assert found[0] == found[1]
    assert found[0].predicted
    assert found[0].rejected


def test_a_worker_with_other_sources_is_refused():
    with pytest.raises(MicrotronError, match=r"has another Microtron .*install the same version"):
        run_task(list, [], "0" * 64)


@pytest.mark.parametrize(("options", "message"), [
    (["--scheduler", "localhost"], "scheduler is 'localhost', but must be an address such as tcp"),
    (["--scheduler", "tcp://127.0.0.1:9", "--workers", "2"], "leave out --workers"),
    (["--device", "functional"], "device is 'functional', but must be one that measures cycles"),
    (["--device", "board:ulx3s"], "there is no board:ulx3s here: MICROTRON_DEVICE is ''"),
])
def test_clusters_and_devices_that_are_none_are_refused_in_one_line(tmp_path, options, message):
    assert message in bad("dataset", "d.csv", "--config", "tiny", "--random-layers", 1, "--budget",
                          1, *options, cwd=tmp_path)


def test_a_run_that_is_interrupted_leaves_a_store_from_which_the_next_one_goes_on(tmp_path):
    (tmp_path / "l.json").write_text(json.dumps([
        {"operator": "dense", "rows": 8, "inputs": 8 * number, "outputs": 64}
        for number in range(1, 60)]))
    command = [sys.executable, "-m", "microtron", "dataset", "d.csv", "--config", "tiny",
               "--layers", "l.json", "--budget", "3000", "--schedules", "40", "--workers", "2"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True,
                               start_new_session=True,    # a shell may ignore SIGINT
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    store = tmp_path / "d.records"
    while not (store.exists() and len_of(store) > 5) and running.poll() is None:
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGINT)           # as a terminal does: workers hear it, too
    said = running.communicate()[1]
    assert running.returncode == 130, said
    assert "interrupted" in said
    assert len_of(store) > 5
    assert not (tmp_path / "d.csv").exists()


def len_of(path):
    try:
        with Records(path) as records:
            return len(records)
    except MicrotronError:                  # it is just being created
        return 0
