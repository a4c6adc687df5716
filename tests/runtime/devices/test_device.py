"""Devices: one protocol, one way to run a program on any of them."""

import json
from dataclasses import replace

import numpy as np
import pytest

import microtron
from microtron.base.errors import ExecutionError, IsaError, MicrotronError
from microtron.isa.config import small, tiny
from microtron.isa.instructions import AluI, Buffer, Engines, Load, Store, Sync
from microtron.isa.memory_timing import MemoryTiming
from microtron.isa.program import Access, Program, Segment, Tensor
from microtron.isa.stream import encode
from microtron.runtime.devices.device import DEVICES, Address, open_device, run
from microtron.runtime.devices.functional import FunctionalDevice
from microtron.sim.functional.order import Adversarial


def plus_seven(config=tiny):
    """y = x + 7, saturated, for two tiles; `x` starts as 1, 2, 3, …"""
    lanes = 2 * config.block_out
    code = [Load(buffer=Buffer.ACC8, shape=(1, 1, 2), post=Engines.ALU),
            AluI(loops=(1, 1, 2), dst_stride=(0, 0, 1), src_stride=(0, 0, 1), immediate=7,
                 target=Buffer.OUT, wait=Engines.LOAD, post=Engines.STORE),
            Store(segment=1, shape=(1, 1, 2), wait=Engines.ALU), Sync()]
    return Program(config, encode(code), (
        Segment("input", 64, Access.READ, np.arange(1, lanes + 1, dtype=np.uint8)),
        Segment("output", 64, Access.WRITE)),
        (Tensor("x", "input", 0, (2, config.block_out)),
         Tensor("y", "output", 0, (2, config.block_out)),
         Tensor("rest", "output", 32, (4,), "int32")))


@pytest.fixture(params=DEVICES)
def device(request):
    return open_device(request.param, tiny)


def test_inputs_go_in_and_everything_in_writable_segments_comes_out(device):
    x = np.array([[1, -1, 100, 127], [-128, 0, 5, 6]], np.int8)
    outputs, report = run(plus_seven(), {"x": x}, device)
    assert list(outputs) == ["y", "rest"]
    assert outputs["y"].dtype == np.int8
    assert outputs["y"].tolist() == [[8, 6, 107, 127], [-121, 7, 12, 13]]
    assert outputs["rest"].tolist() == [0, 0, 0, 0]
    assert report.device == device.name
    assert report.counts.instructions["alui"] == 1


def test_inputs_that_are_not_given_are_what_the_program_holds(device):
    outputs, _ = run(plus_seven(), {}, device)
    assert outputs["y"].ravel().tolist() == list(range(8, 16))


def test_a_loaded_program_runs_again_on_new_input(device):
    device.load(plus_seven())
    for value in (1, 2, 3):
        device.write(Address("input"), bytes([value] * 8))
        device.run()
        assert device.read(Address("output", 4), 4).tolist() == [value + 7] * 4


def test_loading_starts_from_the_program_s_own_data(device):
    run(plus_seven(), {"x": np.zeros((2, 4), np.int8)}, device)
    device.load(plus_seven())
    assert device.read(Address("input"), 3).tolist() == [1, 2, 3]
    assert not device.read(Address("output"), 64).any()


def test_a_program_for_another_configuration_is_refused_in_words(device):
    with pytest.raises(ExecutionError, match=r"for another configuration than this device has: "
                                             r"block_in 8 \(here 4\), block_out 8 \(here 4\)"):
        device.load(plus_seven(small))


def test_nothing_runs_before_a_program_is_loaded(device):
    for use in (device.run, lambda: device.read(Address("input"), 1),
                lambda: device.write(Address("input"), b"1")):
        with pytest.raises(ExecutionError, match="no program is loaded"):
            use()


def test_unknown_inputs_and_wrong_shapes_are_refused(device):
    with pytest.raises(IsaError, match="no tensor 'z'; the program has x, y, rest"):
        run(plus_seven(), {"z": np.zeros(4, np.int8)}, device)
    with pytest.raises(ExecutionError, match=r"tensor x is int8 of shape \(2, 4\)"):
        run(plus_seven(), {"x": np.zeros(8, np.int8)}, device)


def test_a_report_is_plain_data(device):
    _, report = run(plus_seven(), {}, device)
    table = json.loads(json.dumps(report.to_dict()))
    assert table["counts"]["bytes_stored"] == {"out": 8}
    assert table["device"] == device.name


def test_an_unknown_device_is_answered_with_the_known_ones():
    with pytest.raises(MicrotronError, match="there is no device 'abacus'; there are functional"):
        open_device("abacus")


@pytest.mark.parametrize(("misuse", "message"), [
    (lambda: open_device("cylce"), "there is no device 'cylce'; .*; did you mean cycle?"),
    (lambda: open_device(3), "there is no device 3; there are functional, cycle, rtl"),
    (lambda: open_device("cycle", "bse"), "'bse' is neither a preset"),
    (lambda: open_device("cycle", 7), "config is 7, but must be a Config"),
    (lambda: open_device("functional", seed=3), r"open_device\(\) has no keyword 'seed'; known"),
    (lambda: open_device("functional", memory=MemoryTiming()),
     "the functional device has no option 'memory'; it has limit, order"),
    (lambda: open_device("functional", order="random"),
     "order is 'random', but must be an Order, such as Adversarial"),
    (lambda: open_device("cycle", waveform="x.vcd"), "the cycle device has no option 'waveform'"),
    (lambda: open_device("cycle", memory="fast"), "memory is 'fast', but must be a MemoryTiming"),
    (lambda: open_device("rtl", memory=3), "memory is 3, but must be a MemoryTiming"),
    (lambda: open_device("rtl", waveform="x.txt"), "must end in .vcd or .fst"),
    (lambda: open_device("cycle", limit=0), "limit is 0, but must be an integer of 1 or more"),
    (lambda: open_device("cycle", limit="x"), "limit is 'x', but must be an integer"),
    (lambda: open_device("cycle").load("k.mt"), "program is 'k.mt', but must be a Program"),
    (lambda: run("k.mt", {}), "program is 'k.mt', but must be a Program"),
    (lambda: run(plus_seven(), [1]), r"inputs is \[1\], but must be a mapping"),
    (lambda: run(plus_seven(), {}, 5), "device is 5, but must be a device or the name of one"),
    (lambda: run(plus_seven(), {"x": [[1], [1, 2]]}), "tensor x: the values are no array"),
    (lambda: run(plus_seven(), {"x": np.zeros((2, 4))}), "tensor x is int8 .* values are float64"),
    (lambda: run(plus_seven(), {"x": "abc"}), "tensor x is int8 of shape"),
])
def test_misuse_is_answered_with_what_is_right(misuse, message):
    with pytest.raises(MicrotronError, match=message) as caught:
        misuse()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", DEVICES)
def test_a_program_beyond_the_limit_is_refused_when_it_is_loaded_or_run(name):
    """In the case of the hardware, before anything is compiled for it."""
    program = replace(plus_seven(), code=encode([AluI(loops=(65535,) * 3), Sync()]))
    for limit, stated in ((None, "10,000,000,000"), (50, "50")):
        with pytest.raises(ExecutionError, match=f"the limit is {stated}; .* --limit on the"):
            run(program, {}, open_device(name, limit=limit))


def test_a_configuration_can_be_named():
    assert open_device("functional", "tiny").config == tiny
    assert open_device("cycle", "small").config == small


def test_the_functional_device_takes_any_configuration_and_any_order():
    device = FunctionalDevice(order=Adversarial(8))
    for config in (tiny, small, replace(tiny, batch=2)):
        device.load(plus_seven(config))
        device.run()
        assert device.read(Address("output"), 4).tolist() == [8, 9, 10, 11]


def test_without_a_device_the_functional_simulator_runs():
    outputs, report = run(plus_seven(), {})
    assert report.device == "functional"
    assert report.cycles is None
    assert outputs["y"].ravel().tolist() == list(range(8, 16))


class Exchanged:
    """An array of another library, which exchanges it by DLPack and in no other way."""

    def __init__(self, array, error=None):
        self.array, self.error = array, error

    def __dlpack__(self, **options):
        if self.error:
            raise self.error
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_come_and_go_by_dlpack():
    layer = microtron.Conv2d(height=4, width=4, channels_in=4, channels_out=4, pad=1)
    kernel = microtron.compile_op(layer, "tiny")
    rng = np.random.default_rng(0)
    inputs = {"data": rng.integers(-9, 9, (1, 4, 4, 4)).astype(np.int8),
              "weights": rng.integers(-9, 9, (4, 4, 3, 3)).astype(np.int8),
              "scale": np.full(4, 0.01)}
    lent = {name: Exchanged(array) for name, array in inputs.items()}
    result, _ = kernel.run(lent)
    assert np.array_equal(np.from_dlpack(result), kernel.run(inputs)[0])
    packed = {name: Exchanged(np.ascontiguousarray(array))
              for name, array in kernel.pack(inputs).items()}
    outputs, _ = microtron.run(kernel.program, packed)
    assert np.array_equal(kernel.unpack(outputs), result)
    with pytest.raises(microtron.MicrotronError, match="data: Exchanged gives no array: far away"):
        kernel.run({**inputs, "data": Exchanged(inputs["data"], BufferError("far\naway"))})
    with pytest.raises(microtron.MicrotronError, match="the values are no array"):
        microtron.run(kernel.program, {"data": Exchanged(inputs["data"], BufferError("far"))})
