"""Models of ONNX Runtime's `quantize_dynamic`: the accelerator computes their sums of products, to
the bit, and the CPU what depends on scales that are known at run time only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import microtron
from microtron.compiler.network.network import Where
from microtron.isa.config import tiny
from microtron.runtime.models.compiled_model import ProgramStep

from ..compiler.frontends.onnx.onnx_models import runtime, with_all_outputs
from ..cross import PROCESSORS
from ..models import model_path, needs_models
from .aot.replay import replay

CONFIGS = {"tiny": tiny, "rectangular": replace(tiny, block_out=8, acc_bytes=16 << 10),
           "batch": replace(tiny, batch=2, block_in=8)}
WEIGHTS = {"int8": {}, "uint8": {"unsigned": True}, "by channel": {"per_channel": True},
           "7 bits": {"reduce_range": True}}
PRODUCTS = ("MatMulInteger", "ConvInteger")
# Of each model: its file, the products that quantize_dynamic leaves real, and how many of all
# multiply-adds are the accelerator's.
REAL = {"resnet20": ("resnet20_cifar10_float.onnx", 0, 1.0),
        "minilm": ("minilm_l3_encoder_float.onnx", 6, 0.97),
        "mobilenet": ("mobilenet_v2_torchvision_float.onnx", 0, 1.0)}


def quantize(model, path, *, unsigned=False, **options):
    """The model as `quantize_dynamic` writes it."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    kind = QuantType.QUInt8 if unsigned else QuantType.QInt8
    quantize_dynamic(model, path, weight_type=kind, **options)
    return onnx.load(path)


def float_model():
    """Two convolutions, one by channel, then a Gemm and a MatMul of several rows."""
    rng = np.random.default_rng(3)

    def weights(name, *shape):
        return numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)

    constants = [weights("w1", 6, 3, 3, 3), weights("b1", 6), weights("w2", 6, 1, 3, 3),
                 weights("w3", 10, 24), weights("b3", 10), weights("w4", 10, 7)]
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], group=6, pads=[1, 0, 1, 2]),
        helper.make_node("Reshape", ["c2", "rows"], ["m"]),
        helper.make_node("Gemm", ["m", "w3", "b3"], ["g"], transB=1),
        helper.make_node("MatMul", ["g", "w4"], ["y"])]
    constants.append(numpy_helper.from_array(np.array([4, 24]), "rows"))
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (4, 7))], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def cosine(one, other):
    one, other = one.ravel().astype(np.float64), other.ravel().astype(np.float64)
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


@pytest.mark.parametrize(("weights", "config"), [
    *((weights, "tiny") for weights in WEIGHTS), ("uint8", "rectangular"), ("int8", "batch")])
def test_all_products_are_the_accelerators_and_exact(weights, config, tmp_path):
    model = with_all_outputs(quantize(float_model(), tmp_path / "q.onnx", **WEIGHTS[weights]))
    onnx.save(model, tmp_path / "all.onnx")
    compiled = microtron.compile(tmp_path / "all.onnx", CONFIGS[config], cost=lambda program: 1)
    x = np.random.default_rng(1).normal(0.2, 1, (1, 3, 8, 8)).astype(np.float32)
    found = compiled.run(x, "functional").outputs
    assert sum(each.macs for each in compiled.nodes if each.where == Where.ACCELERATOR) == sum(
        each.macs for each in compiled.nodes) > 0
    known = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    products = [each for each in model.graph.node if each.op_type in PRODUCTS]
    assert len(products) == 4
    for node in products:                   # of the numbers that were quantized here
        sums, = ReferenceEvaluator(_alone(node)).run(None, {
            name: (known | found)[name] for name in node.input})
        np.testing.assert_array_equal(found[node.output[0]], sums, node.op_type)
    right, = ReferenceEvaluator(model).run(["y"], {"x": x})
    assert cosine(found["y"], right) >= 0.9999


def _alone(node):
    """A model of one node."""
    kinds = {"int8": onnx.TensorProto.INT8, "uint8": onnx.TensorProto.UINT8}
    graph = helper.make_graph([node], "node", [
        helper.make_tensor_value_info(name, kinds["uint8"], None) for name in node.input], [
        helper.make_tensor_value_info(node.output[0], onnx.TensorProto.INT32, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_sums_leave_in_32_bits_and_models_of_them_are_stored(tmp_path):
    quantize(float_model(), tmp_path / "q.onnx")
    compiled = microtron.compile(tmp_path / "q.onnx", "tiny")
    ports = [port for step in compiled.steps if isinstance(step, ProgramStep)
             for port in step.outputs]
    assert {port.type.dtype for port in ports} == {"int32"}
    compiled.save(tmp_path / "q.mt")
    x = np.random.default_rng(1).normal(0.2, 1, (1, 3, 8, 8)).astype(np.float32)
    results = [model.run(x, device)["y"] for model in (compiled, microtron.load(tmp_path / "q.mt"))
               for device in ("functional", "cycle")]
    for each in results[1:]:
        np.testing.assert_array_equal(each, results[0])


@pytest.mark.soak
@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_board_s_processor_unpacks_results_of_32_bits(processor, tmp_path):
    quantize(float_model(), tmp_path / "q.onnx")
    compiled = microtron.compile(tmp_path / "q.onnx", "tiny", cost=lambda program: 1)
    x = np.random.default_rng(1).normal(0.2, 1, (1, 3, 8, 8)).astype(np.float32)
    assert replay(compiled, {"x": x}, processor, tmp_path) == "equal"


@needs_models
@pytest.mark.soak
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", REAL)
def test_real_networks_give_what_onnx_runtime_gives(name, weights, tmp_path):
    """On a processor whose kernels saturate, sums of 7 bits are still exact there; ONNX's reference
    judges others."""
    file, real, share = REAL[name]
    source = onnx.load(model_path(file))
    del source.graph.value_info[:]          # one file has shapes that contradict its own
    model = quantize(source, tmp_path / "q.onnx", **WEIGHTS[weights])
    rng = np.random.default_rng(0)
    inputs = {each.name: rng.normal(size=[size.dim_value or 1 for size in
                                          each.type.tensor_type.shape.dim]).astype(np.float32)
              for each in model.graph.input}
    compiled = microtron.compile(tmp_path / "q.onnx", "base",
                                 shapes={each: array.shape for each, array in inputs.items()})
    macs = [(each.where, each.macs) for each in compiled.nodes if each.macs]
    assert sum(where == Where.CPU for where, _ in macs) == real
    assert sum(count for where, count in macs if where != Where.CPU) >= share * sum(
        count for _, count in macs)
    right = runtime(str(tmp_path / "q.onnx")).run(None, inputs)
    found = compiled.run(inputs, "functional").outputs
    if any(cosine(*pair) < 0.9999 for pair in zip(found.values(), right, strict=True)):
        right = ReferenceEvaluator(model).run(None, inputs)
    for one, other in zip(found.values(), right, strict=True):
        assert cosine(one, other) >= 0.9999
