"""Sessions of models that remember: frame after frame, read, set and forgotten."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import microtron
from microtron.base.errors import ImageError, MicrotronError
from microtron.runtime.models import model_image
from microtron.runtime.models.host import NumpyBackend
from microtron.runtime.models.inference import LoadedProgram
from microtron.runtime.models.state.resident import resident_ports

from ...stream_model import frames, right, stream_graph

PATIENCE = 60               # seconds until a test that hangs fails
OUTPUTS = ("conv", "count", "before")


@pytest.fixture(scope="module")
def model():
    return microtron.compile(stream_graph(), "tiny")


def assert_right(results, given):
    assert len(results) == len(given)
    for result, wanted in zip(results, right(given), strict=True):
        assert set(result.outputs) == set(OUTPUTS)
        for name in OUTPUTS:
            assert np.array_equal(result[name], wanted[name])


@pytest.mark.parametrize("device", ["functional", "cycle", "rtl"])
def test_frames_find_what_those_before_left(model, device):
    given = frames(9)
    assert set(model.inputs) == {"frame"}
    assert set(model.outputs) == set(OUTPUTS)
    with model.session(device) as session:
        assert_right([session.run(each) for each in given], given)
        for name in session.state:
            assert np.array_equal(session.state[name], right(given)[-1][name])
        session.reset()
        assert_right(session.run_many(given), given)


def test_a_run_without_a_session_begins_anew(model):
    given = frames(1)
    assert_right([model.run(given[0], "functional")], given)
    assert_right([model.run(given[0], "functional", backend=NumpyBackend())], given)


def test_an_image_keeps_states(model, tmp_path):
    model.save(tmp_path / "stream.mt")
    loaded, given = microtron.load(tmp_path / "stream.mt"), frames(4)
    assert loaded.run_many(given, "functional")[-1].outputs.keys() == set(OUTPUTS)
    assert_right(loaded.run_many(given, "functional"), given)
    assert model_image.to_bytes(loaded) == (tmp_path / "stream.mt").read_bytes()


def test_what_is_submitted_runs_in_its_order_with_what_is_run(model):
    given = frames(40)
    with model.session("functional") as session:
        futures = [session.submit(each) for each in given[:20]]
        between = session.run(given[20])
        futures += [session.submit(each) for each in given[21:]]
        results = [each.result(PATIENCE) for each in futures]
        results.insert(20, between)
        assert_right(results, given)
        assert np.array_equal(session.state["past"], right(given)[-1]["past"])


def test_states_are_set_and_read_by_name(model):
    given = frames(6)
    after = right(given[:3])[-1]
    with model.session("functional") as session:
        session.run(frames(1, seed=9)[0])
        for name in ("past", "sum", "last"):
            session.state[name] = after[name]
        results = [session.run(each) for each in given[3:]]
        for result, wanted in zip(results, right(given)[3:], strict=True):
            assert np.array_equal(result["conv"], wanted["conv"])
            assert np.array_equal(result["count"], wanted["count"])
        held = session.state["past"]
        held[:] = 0                     # a copy
        assert np.array_equal(session.state["past"], right(given)[-1]["past"])
        session.state["past"] = np.full((1, 3, 1, 5), 2.0, np.float32)      # real numbers
        assert (session.state["past"] == 7).all()
        assert len(session.state) == 3
        assert "past" in session.state
        assert "frame" not in session.state


@pytest.mark.parametrize(("name", "value", "words"), [
    ("pats", np.zeros(2), "there is no state pats; the model has past, sum, last"),
    ("sum", np.zeros(3, np.int32), r"state sum has shape \(3,\), but must have \(2,\)"),
    ("sum", np.zeros(2, np.float32), "state sum is float32, but must be int32"),
    ("past", np.full((1, 3, 1, 5), np.nan), "state past holds NaN"),
    ("sum", 3, "state sum is 3, but must be an array")])
def test_a_state_that_is_none_is_refused(model, name, value, words):
    with model.session("functional") as session:
        with pytest.raises(MicrotronError, match=words):
            session.state[name] = value
        assert_right([session.run(frames(1)[0])], frames(1))
        with pytest.raises(MicrotronError, match="there is no state frame"):
            session.state["frame"]
        with pytest.raises(MicrotronError, match="cannot be deleted"):
            del session.state["past"]


def test_a_frame_that_fails_on_the_way_to_the_accelerator_leaves_states(model):
    given = frames(4)
    with model.session("functional") as session:
        results = [session.run(given[0])]
        with pytest.raises(MicrotronError, match="shape"):
            session.run(np.zeros((1, 2, 1, 5), np.int8))
        results += [session.submit(each).result(PATIENCE) for each in given[1:]]
        assert_right(results, given)


def test_states_that_the_accelerator_has_are_lost_when_it_fails(model, monkeypatch):
    """`past` stays on the device: what a run that failed has made of it, nobody knows."""
    given, original = frames(4), LoadedProgram.run

    def fails(self, *arguments):
        raise MicrotronError("the device is gone")

    assert set(resident_ports(model)) == {"past"}
    for run in (lambda session, frame: session.run(frame),
                lambda session, frame: session.submit(frame).result(PATIENCE)):
        with model.session("functional") as session:
            session.run(given[0])
            monkeypatch.setattr(LoadedProgram, "run", fails)
            with pytest.raises(MicrotronError, match="is gone"):
                run(session, given[1])
            monkeypatch.setattr(LoadedProgram, "run", original)
            with pytest.raises(MicrotronError, match=r"are lost; Session.reset begins anew"):
                run(session, given[1])
            with pytest.raises(MicrotronError, match=r"are lost; Session.reset begins anew"):
                session.state["past"]
            session.reset()
            assert_right([run(session, each) for each in given], given)


def test_cancelled_frames_are_left_out(model, monkeypatch):
    given, gate, original = frames(4), threading.Event(), LoadedProgram.run

    def waits(self, *arguments):
        assert gate.wait(PATIENCE)
        return original(self, *arguments)

    monkeypatch.setattr(LoadedProgram, "run", waits)
    with model.session("functional") as session:
        futures = [session.submit(each) for each in given]
        assert futures[2].cancel()
        gate.set()
        results = [futures[number].result(PATIENCE) for number in (0, 1, 3)]
        assert_right(results, [given[0], given[1], given[3]])


def test_a_model_without_states_has_none():
    from ...small_model import image, small_graph
    with microtron.compile(small_graph(), "tiny").session("functional") as session:
        assert not session.state
        session.run(image())
        session.reset()
        with pytest.raises(MicrotronError, match="there is no state x; the model has none"):
            session.state["x"]


@pytest.mark.parametrize(("old", "new", "words"), [
    ('"result":"shifted"', '"result":"whole"', "state past|reads whole|not computed before"),
    ('"result":"shifted"', '"result":"frame"', "state past"),
    ('"name":"sum","result"', '"name":"sun","result"', "no constant of that name"),
    ('"result":"more"', '"result":"past"', "state sum")])
def test_states_of_an_image_fit_its_steps(model, old, new, words, monkeypatch):
    """The text is changed on its way to the checks of an image that is loaded."""
    data = model_image.to_bytes(model)
    read = model_image.parse

    def change(content):
        text = content.tobytes().decode()
        assert old in text
        return read(np.frombuffer(text.replace(old, new).encode(), np.uint8))

    monkeypatch.setattr(model_image, "parse", change)
    with pytest.raises(ImageError, match=words):
        model_image.from_bytes(data)
