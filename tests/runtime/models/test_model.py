"""Models: compiled, run on every device, and every way to use them wrongly."""

from __future__ import annotations

import numpy as np
import pytest

import microtron
from microtron.base.errors import MicrotronError
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.graph.operations.data_movement.shape import Reshape
from microtron.compiler.graph.operations.layers.matmul import MatMul
from microtron.compiler.graph.operations.pointwise.quantize import Dequantize, Lookup
from microtron.compiler.graph.operations.pointwise.unary import Unary, UnaryKind
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.compiler.network.network import Where
from microtron.isa.memory_timing import MemoryTiming
from microtron.runtime.devices.device import DEVICES
from microtron.runtime.models.compiled_model import HostStep, ProgramStep
from microtron.runtime.models.host import NumpyBackend
from microtron.sim.simulate import simulate

from ...models import golden_path, model_path, needs_models
from ..small_model import image, small_graph


@pytest.fixture(scope="module")
def model():
    return microtron.compile(small_graph(), "tiny")


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_gives_what_the_graph_means(model, device):
    for seed in range(3):
        result = model.run({"image": image(seed)}, device)
        right = evaluate(small_graph(), {"image": image(seed)})
        assert list(result.outputs) == ["real", "conv"]
        for name, array in right.items():
            assert result[name].dtype == array.dtype
            assert np.array_equal(result[name], array), name
        assert [report.device for report in result.reports] == [device] * len(model.programs)


def test_cycles_are_those_of_all_programs(model):
    result = model.run(image())
    assert result.cycles == sum(simulate(program).cycles for program in model.programs)
    assert 0 < result.utilization < 1
    assert model.run(image(), "functional").cycles is None
    slow = model.run(image(), memory=MemoryTiming(read_latency=500))
    assert slow.cycles > result.cycles + 400


def test_a_model_runs_with_the_memory_that_it_was_compiled_for(model):
    memory = MemoryTiming(read_latency=500)
    other = microtron.compile(small_graph(), "tiny", memory=memory)
    assert [report.memory for report in other.run(image()).reports] == [memory] * 2


def test_a_model_says_what_runs_where_and_why(model):
    assert [type(step) for step in model.steps] == [ProgramStep, HostStep, ProgramStep, HostStep]
    found = {each.name: each for each in model.run(image()).nodes}
    assert {name: each.where for name, each in found.items()} == {
        "conv": Where.ACCELERATOR, "sum": Where.ACCELERATOR, "table_of": Where.CPU,
        "flat": Where.VIEW, "dense": Where.ACCELERATOR, "real": Where.CPU}
    assert [each.title for each in model.host_nodes] == ["TABLE 2", "REAL 4"]
    assert all(each.reason for each in model.host_nodes)
    assert found["conv"].macs == 2 * 2 * 4 * (2 * 2 * 2)
    assert found["dense"].macs == 16 * 5


def test_real_numbers_for_integers_are_quantized_by_their_scale(model):
    stored = image()
    real = (stored.astype(np.float64) - 3) * 0.5
    for kind in (np.float16, np.float32, np.float64):
        result = model.run(real.astype(kind), "functional")
        assert np.array_equal(result["conv"], model.run(stored, "functional")["conv"])
    near = model.run(real + 0.24, "functional")
    assert np.array_equal(near["conv"], model.run(stored, "functional")["conv"])
    large = model.run(np.full((1, 3, 3, 2), 1e30, np.float32), "functional")
    most = model.run(np.full((1, 3, 3, 2), 127, np.int8), "functional")
    assert np.array_equal(large["conv"], most["conv"])
    endless = model.run(np.full((1, 3, 3, 2), -np.inf, np.float32), "functional")
    least = model.run(np.full((1, 3, 3, 2), -128, np.int8), "functional")
    assert np.array_equal(endless["conv"], least["conv"])


def test_results_are_given_as_real_numbers(model):
    result = model.run(image())
    assert np.array_equal(result.real("conv"),
                          (result["conv"].astype(np.float32) + 5) * np.float32(0.25))
    assert result.real("real") is result["real"]
    with pytest.raises(MicrotronError, match="there are 2 outputs, so one must be named: real, co"):
        result.real()
    with pytest.raises(MicrotronError, match="there is no output x; there are real, conv"):
        result["x"]


class Lent:
    """An array of some other library."""

    def __init__(self, array, name):
        self.array, self.name = array, name

    def __getattr__(self, name):
        if name != self.name:
            raise AttributeError(name)
        return getattr(self.array, name)

    def __array__(self, dtype=None, copy=None):
        assert self.name == "__array__"
        return self.array


class Exchanged:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Broken:
    def __dlpack__(self, **options):
        raise RuntimeError("it is on\nanother planet")

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("kind", [Exchanged, lambda array: Lent(array, "__array__")])
def test_arrays_of_other_libraries_are_taken(model, kind):
    right = model.run(image(), "functional")
    assert np.array_equal(model.run(kind(image()), "functional")["conv"], right["conv"])


@pytest.mark.parametrize("array", [image().astype(">i1"), np.asfortranarray(image()),
                                   np.broadcast_to(np.int8(3), (1, 3, 3, 2))])
def test_however_an_array_lies_in_memory(model, array):
    plain = np.array(array, np.int8, order="C")
    assert np.array_equal(model.run(array, "functional")["conv"],
                          model.run(plain, "functional")["conv"])


@pytest.mark.parametrize(("inputs", "message"), [
    ({}, r"the input image \(int8\[1, 3, 3, 2\]\) is not given"),
    ({"image": image(), "other": image()}, r"there is no input other; the model has image \(int8"),
    ({7: image()}, "there is no input 7; the model has image"),
    (image()[0], r"input image has shape \(3, 3, 2\), but must have \(1, 3, 3, 2\)"),
    (image().astype(np.int16), "input image is int16, but must be int8 or real numbers"),
    (image().astype(np.uint8), "input image is uint8, but must be int8 or real numbers"),
    (image().astype(bool), "input image is bool, but must be int8 or real numbers"),
    (image().astype(object), "input image is object, but must be int8"),
    (image().astype(complex), "input image is complex128, but must be int8"),
    (np.full((1, 3, 3, 2), np.nan),
     r"input image holds NaN at \[0, 0, 0, 0\], which no integer stands for"),
    (image().tolist(), r"input image is \[\[\[.*, but must be an array"),
    (None, "input image is None, but must be an array"),
    ("image.npy", "input image is 'image.npy', but must be an array"),
    (Broken(), "input image: Broken gives no array: it is on another planet"),
])
def test_wrong_inputs_are_refused_in_one_line(model, inputs, message):
    with pytest.raises(MicrotronError, match=f"^{message}") as refusal:
        model.run(inputs)
    assert "\n" not in str(refusal.value)


def test_nan_is_refused_unless_allowed_and_so_is_what_a_type_has_no_room_for():
    builder = Builder("negated")
    builder.input("x", TensorType((2, 3), "float32"))
    builder.add("y", Unary(kind=UnaryKind.NEG, x="x"))
    model = microtron.compile(builder.graph(("y",)), "tiny")
    x = np.array([[1, np.inf, 3], [-np.inf, np.nan, np.nan]], np.float32)
    refused = (r"^input x holds NaN at \[1, 1\], 2 of 6 numbers; allow_nan=True, or --allow-nan, "
               r"computes with it$")
    with pytest.raises(MicrotronError, match=refused):
        model.run(x, "functional")
    with model.session("functional") as session, pytest.raises(MicrotronError, match=refused):
        session.submit(x.astype(np.float64))
    with pytest.raises(MicrotronError, match=refused):
        model.run_many([np.ones_like(x), x], "functional")
    np.testing.assert_array_equal(model.run(x, "functional", allow_nan=True)["y"], -x)
    np.testing.assert_array_equal(model.run_many([x], "functional", allow_nan=True)[0]["y"], -x)
    endless = np.where(np.isnan(x), 0, x)               # is a number
    np.testing.assert_array_equal(model.run(endless, "functional")["y"], -endless)
    with pytest.raises(MicrotronError, match=r"^input x holds -1e\+39 at \[0, 0\], which is too "
                                             r"large for float32$"):
        model.run(np.full((2, 3), -1e39), "functional")
    with pytest.raises(MicrotronError, match=r"^allow_nan is 'yes', but must be True or False$"):
        model.run(endless, "functional", allow_nan="yes")


@pytest.mark.parametrize(("device", "options", "message"), [
    ("cycles", {}, "there is no device 'cycles'; there are functional, cycle, rtl and "
     "board:NAME@ADDRESS; did you mean"),
    (None, {}, "there is no device None"),
    ("cycle", {"speed": 3}, r"^run\(\) has no keyword 'speed'; known are inputs, device, backend"),
    ("cycle", {"memry": None}, r"^run\(\) has no keyword 'memry'; did you mean memory\?$"),
    ("cycle", {"waveform": "x.vcd"}, "the cycle device has no option 'waveform'; it has memory, l"),
    ("functional", {"memory": MemoryTiming()}, "the functional device has no option 'memory'"),
    ("cycle", {"limit": 10}, "the program takes .* cycles or more|.*limit"),
    ("cycle", {"memory": 3}, "memory is 3, but must be a MemoryTiming"),
])
def test_wrong_devices_are_refused_in_one_line(model, device, options, message):
    with pytest.raises(MicrotronError, match=message) as refusal:
        model.run(image(), device, **options)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("given", "config", "options", "message"), [
    (3, "tiny", {}, "model is 3, but must be a Graph or the path of a .tflite or .onnx file"),
    ("nowhere.tflite", "tiny", {}, "nowhere.tflite: No such file"),
    (small_graph(), "huge", {}, "configuration 'huge' is neither a preset"),
    (small_graph(), None, {}, "config is None, but must be a Config"),
    (small_graph(), "tiny", {"optimise": False},
     r"compile\(\) has no keyword 'optimise'; did you mean optimize\?$"),
    (small_graph(), "tiny", {"memory": 3}, "memory is 3, but must be a MemoryTiming"),
    (small_graph(), "tiny", {"shapes": 3}, "shapes is 3, but must be a mapping"),
    (small_graph(), "tiny", {"shapes": {"image": 3}}, "the shape of image is 3, but must be whole"),
    (small_graph(), "tiny", {"shapes": {"image": (1, 0)}}, r"the shape of image is \(1, 0\)"),
    (small_graph(), "tiny", {"shapes": {"image": (1, 2)}}, "shapes and values are for models"),
    (small_graph(), "tiny", {"optimize": 1}, "optimize is 1, but must be True or False"),
    (small_graph(), "tiny", {"require_accelerator": "no"}, "require_accelerator is 'no', but"),
    (small_graph(), "tiny", {"require_accelerator": True},
     "the accelerator does not take 1 of 6 nodes: 1 for: no table .*, as TABLE 2"),
    (small_graph(), "tiny", {"cost": 3}, "cost is 3, but must be a function from a Program"),
])
def test_wrong_options_of_compile_are_refused_in_one_line(given, config, options, message):
    with pytest.raises(MicrotronError, match=message) as refusal:
        microtron.compile(given, config, **options)
    assert "\n" not in str(refusal.value)


def test_what_is_being_done_can_be_watched():
    said, passes = [], []
    microtron.compile(small_graph(), "tiny", progress=said.append,
                      observe=lambda name, graph: passes.append(name))
    assert said[0] == "simplifying"
    assert any("compiling CONV 0 (1 of" in each for each in said)
    late = said[1 + max(number for number, each in enumerate(said) if "compiling DENSE" in each):]
    for stage in ("finding layouts for", "looking for neighbours to pair (layer 2 of 2)",
                  "compiling with half of each scratchpad (layer 2 of 2)",
                  "trying other schedules in a stream of 2 layers (1 of at most 16)",
                  "joining 2 layers into a program", "checking the compiled model"):
        assert any(stage in each for each in late), stage
    assert passes[0] == "graph"
    assert len(passes) > 3


def test_where_a_model_came_from_is_noted(tmp_path):
    model = microtron.compile(small_graph(), "tiny")
    assert model.provenance["model"] == "small"
    assert model.provenance["microtron"] == microtron.__version__
    assert model.provenance["config"] == model.config.digest
    assert "read_latency=32" in model.provenance["options"]


def test_models_and_results_print_in_a_line(model):
    assert repr(model) == ("<Model small: (image: int8[1, 3, 3, 2]) → (real: float32[1, 5], conv: "
                           "int8[1, 2, 2, 4]), 2 programs, 2 of 6 nodes on the CPU>")
    result = model.run(image())
    assert repr(result) == (f"<Result (real: float32[1, 5], conv: int8[1, 2, 2, 4]) of the cycle "
                            f"device, {result.cycles:,} cycles>")


def test_a_model_may_be_the_cpus_alone_and_give_its_input():
    builder = Builder()
    builder.input("x", TensorType((2,), "int8", Quantization((0.5,))))
    builder.add("y", Dequantize(x="x"))
    model = microtron.compile(builder.graph(("y", "x")), "tiny")
    result = model.run(np.array([2, 4], np.int8))
    assert result["y"].tolist() == [1, 2]
    assert result["x"].tolist() == [2, 4]
    assert result.cycles == 0
    with pytest.raises(MicrotronError, match="there is no device"):
        model.run(np.array([2, 4], np.int8), "none")


def test_a_program_may_read_what_the_cpu_computes_and_reshapes():
    """The program reads the table's result as it was before the reshape, which the CPU computes for
    itself, in the same step."""
    quantization = Quantization((0.5,))
    builder = Builder()
    builder.input("x", TensorType((1, 8), "int8", quantization))
    table = builder.constant("table", np.arange(-128, 128, dtype=np.int8), quantization)
    builder.add("table_of", Lookup(x="x", table=table), quantization=quantization)
    builder.add("shaped", Reshape(x="table_of", shape=(2, 4)), quantization=quantization)
    weights = builder.constant("w", np.ones((4, 4), np.int8), Quantization((0.1,)))
    builder.add("dense", MatMul(left="shaped", right=weights, scales=(0.1,)), dtype="int8",
                quantization=quantization)
    builder.add("real", Dequantize(x="shaped"))
    graph = builder.graph(("dense", "real"))
    x = np.arange(8, dtype=np.int8)[None]
    result, right = microtron.compile(graph, "tiny").run(x), evaluate(graph, {"x": x})
    assert np.array_equal(result["dense"], right["dense"])
    assert np.array_equal(result["real"], right["real"])


class Counting(NumpyBackend):
    """Notes what it is asked for."""

    def __init__(self):
        self.asked = []
        self.runs = 0

    def nodes(self, part):
        self.asked.append(tuple(part.nodes))
        run = super().nodes(part)

        def count(inputs):
            self.runs += 1
            return run(inputs)
        return count

    def pack(self, layout, type_):
        self.asked.append("pack")
        return super().pack(layout, type_)


def test_a_backend_is_told_once_what_there_is_to_do(model):
    backend = Counting()
    with model.session("functional", backend=backend) as session:
        for seed in range(3):
            assert np.array_equal(session.run(image(seed))["real"],
                                  model.run(image(seed), "functional")["real"])
    assert backend.asked == ["pack", ("table_of",), "pack", ("real",)]
    assert backend.runs == 6


@needs_models
@pytest.mark.parametrize("name", ["ad01_int8.tflite", "kws_ref_model.tflite", "vww_96_int8.tflite"])
def test_a_real_model_gives_the_frameworks_own_answer(name):
    model, golden = microtron.compile(model_path(name)), np.load(golden_path(name))
    assert len(model.provenance["sha256"]) == 64
    for sample in range(3):
        if f"in0_s{sample}" in golden:
            result = model.run(golden[f"in0_s{sample}"])
            assert np.array_equal(result[next(iter(model.outputs))], golden[f"ref0_s{sample}"])
