"""Sessions: repeated and asynchronous inference, in order, with errors where they belong."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.runtime.models.host import NumpyBackend
from microtron.runtime.models.inference import LoadedProgram, Unit

from ..small_model import image, small_graph

PATIENCE = 60               # seconds until a test that hangs fails


@pytest.fixture(scope="module")
def model():
    return microtron.compile(small_graph(), "tiny")


def right(seed):
    return evaluate(small_graph(), {"image": image(seed)})["real"]


@pytest.mark.parametrize("device", ["functional", "cycle"])
def test_what_is_submitted_gives_what_it_would_give_alone(model, device):
    with model.session(device) as session:
        futures = [session.submit(image(seed)) for seed in range(20)]
        for seed, future in enumerate(futures):
            assert np.array_equal(future.result(PATIENCE)["real"], right(seed))
        assert np.array_equal(session.run(image(3))["real"], right(3))


def test_many_inputs_give_results_in_their_order(model):
    results = model.run_many((image(seed) for seed in range(12)), "functional")
    assert len(results) == 12
    for seed, result in enumerate(results):
        assert np.array_equal(result["real"], right(seed))
        assert len(result.reports) == 2
    assert model.run_many([], "functional") == []


def test_an_input_may_be_changed_once_it_is_submitted(model):
    with model.session("functional") as session:
        array, futures = image(0), []
        for seed in range(10):
            array[:] = image(seed)
            futures.append(session.submit(array))
            array[:] = 0
        for seed, future in enumerate(futures):
            assert np.array_equal(future.result(PATIENCE)["real"], right(seed))


class Gate(NumpyBackend):
    """Its first nodes wait until they are let through, and note in which order they ran."""

    def __init__(self):
        self.opened, self.arrived = threading.Event(), threading.Event()
        self.seen = []

    def nodes(self, part):
        run = super().nodes(part)

        def waiting(inputs):
            self.arrived.set()
            assert self.opened.wait(PATIENCE)
            self.seen.append(next(iter(part.nodes)))
            return run(inputs)
        return waiting


def test_the_accelerator_goes_on_while_the_cpu_works_on_another_inference(model, monkeypatch):
    """The accelerator is let into the first program of the second inference only once the CPU is
    in the nodes of the first: a session without overlap would never get there."""
    gate, runs, submitted = Gate(), [], threading.Event()
    plain = LoadedProgram.run

    def watched(self, tiles, outputs):
        runs.append(self.program)
        assert submitted.wait(PATIENCE)     # so that the CPU packs both before it gets to nodes
        if len(runs) == 2:
            assert gate.arrived.wait(PATIENCE)
            gate.opened.set()
        return plain(self, tiles, outputs)
    monkeypatch.setattr(LoadedProgram, "run", watched)
    with model.session("functional", backend=gate) as session:
        futures = [session.submit(image(seed)) for seed in range(2)]
        submitted.set()
        for seed, future in enumerate(futures):
            assert np.array_equal(future.result(PATIENCE)["real"], right(seed))
    assert runs[:2] == [model.programs[0]] * 2


class Failing(NumpyBackend):
    """Its nodes fail for the inputs of one inference."""

    def __init__(self, number):
        self.number, self.count = number, 0

    def nodes(self, part):
        run = super().nodes(part)

        def sometimes(inputs):
            if "table_of" in part.nodes:
                self.count += 1
                if self.count == self.number:
                    raise MicrotronError("out of paper")
            return run(inputs)
        return sometimes


def test_an_error_belongs_to_its_inference_alone(model):
    with model.session("functional", backend=Failing(3)) as session:
        futures = [session.submit(image(seed)) for seed in range(6)]
        for seed, future in enumerate(futures):
            if seed == 2:
                with pytest.raises(MicrotronError, match="out of paper"):
                    future.result(PATIENCE)
            else:
                assert np.array_equal(future.result(PATIENCE)["real"], right(seed))


def test_the_first_error_ends_many(model):
    given = []

    def batches():
        for seed in range(100):
            given.append(seed)
            yield image(seed)
    with (model.session("functional", backend=Failing(2)) as session,
          pytest.raises(MicrotronError, match="out of paper")):
        session.run_many(batches())
    assert len(given) < 20


def test_wrong_inputs_are_refused_when_they_are_submitted(model):
    with model.session("functional") as session:
        with pytest.raises(MicrotronError, match="input image has shape"):
            session.submit(np.zeros((1, 2), np.int8))
        assert np.array_equal(session.submit(image(1)).result(PATIENCE)["real"], right(1))


def test_a_device_that_failed_is_loaded_anew(model, monkeypatch):
    loads = []
    plain = LoadedProgram.load
    monkeypatch.setattr(LoadedProgram, "load", lambda self: (loads.append(self), plain(self))[1])
    with model.session("cycle") as session:
        first = loads[0]
        first.device.limit = 1
        with pytest.raises(MicrotronError):
            session.run(image())
        first.device.limit = 10**9
        assert np.array_equal(session.run(image(4))["real"], right(4))
    assert loads.count(first) == 2


def test_what_is_cancelled_before_its_turn_does_not_run(model):
    gate = Gate()
    with model.session("functional", backend=gate) as session:
        first = session.submit(image(0))
        assert gate.arrived.wait(PATIENCE)
        later = [session.submit(image(seed)) for seed in (1, 2)]
        assert later[0].cancel()
        gate.opened.set()
        assert np.array_equal(first.result(PATIENCE)["real"], right(0))
        assert np.array_equal(later[1].result(PATIENCE)["real"], right(2))
        with pytest.raises(CancelledError):
            later[0].result(PATIENCE)
    assert len(gate.seen) == 4


def open_late(session, gate):
    """Let nodes go on once the session is being closed."""
    while not session._is_closed:
        time.sleep(0.001)
    gate.opened.set()


def test_a_session_that_an_error_ends_does_not_finish_what_was_submitted(model):
    gate, futures = Gate(), []

    def interrupted():
        with model.session("functional", backend=gate) as session:
            futures.extend(session.submit(image(seed)) for seed in range(9))
            assert gate.arrived.wait(PATIENCE)
            threading.Thread(target=open_late, args=(session, gate)).start()
            raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all(future.done() for future in futures)
    with pytest.raises(MicrotronError, match="the session ended before this inference did"):
        futures[-1].result()
    assert len(gate.seen) < 9


def test_a_session_finishes_what_was_submitted_and_takes_no_more(model):
    session = model.session("functional")
    futures = [session.submit(image(seed)) for seed in range(5)]
    session.close()
    session.close()
    assert all(future.done() for future in futures)
    own = {f"microtron {unit.value}" for unit in Unit}
    assert not [each for each in threading.enumerate() if each.name in own]
    for use in (session.run, session.submit):
        with pytest.raises(MicrotronError, match="the session is closed"):
            use(image())
