"""Altered ONNX models: each is read, or refused in one line, within limits of time and memory.

    python tests/compiler/frontends/onnx/onnx_fuzz.py SEED COUNT

is what the tests run, in a process of its own, so that limits hold for it alone.
"""

from __future__ import annotations

import random
import resource
import sys
import warnings

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

MEMORY = 3 << 30                # bytes of address space; ONNX and NumPy take one of them
SECONDS = 5                     # for one model, of processor time
EXTREMES = (-(1 << 63), -(1 << 31), -2, -1, 0, 1, 2, 3, 7, 255, 1 << 16, (1 << 31) - 1, 1 << 40,
            (1 << 63) - 1)


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, inputs, outputs, constants):
    graph = helper.make_graph([helper.make_node(*each[:3], **each[3]) for each in nodes], "g",
                              inputs, [helper.make_empty_tensor_value_info(each)
                                       for each in outputs], constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports)


def images():
    """Convolutions and pools, with arithmetic on shapes."""
    rng = np.random.default_rng(0)
    return model([
        ("Conv", ["x", "w", "b"], ["c"], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("BatchNormalization", ["c", "b", "b", "b", "v"], ["n"], {}),
        ("Clip", ["n", "low", "high"], ["k"], {}),
        ("MaxPool", ["k"], ["m"], {"kernel_shape": [2, 2], "ceil_mode": 1}),
        ("AveragePool", ["m"], ["a"], {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}),
        ("Resize", ["a", "", "ratios"], ["u"], {"mode": "linear"}),
        ("ConvTranspose", ["u", "w"], ["t"], {"output_padding": [0, 0], "group": 1}),
        ("Pad", ["t", "pads"], ["p"], {}), ("Shape", ["p"], ["s"], {}),
        ("Gather", ["s", "first"], ["n0"], {"axis": 0}),
        ("Unsqueeze", ["n0", "zero"], ["n1"], {}), ("Concat", ["n1", "rest"], ["to"], {"axis": 0}),
        ("Reshape", ["p", "to"], ["f"], {}), ("Softmax", ["f"], ["y"], {"axis": -1}),
        ("GlobalAveragePool", ["p"], ["z"], {}), ("LRN", ["p"], ["l"], {"size": 3})],
        [value("x", [1, 4, 8, 8])], ["y", "z", "l"],
        [constant("w", rng.normal(size=(4, 4, 3, 3)).astype(np.float32)),
         constant("b", np.ones(4, np.float32)), constant("v", np.ones(4, np.float32)),
         constant("low", np.float32(0)), constant("high", np.float32(6)),
         constant("ratios", np.float32([1, 1, 2, 2])), constant("pads", [0, 0, 1, 1, 0, 0, 1, 1]),
         constant("first", 0), constant("zero", [0]), constant("rest", [-1])])


def words():
    """What transformers do."""
    return model([
        ("LayerNormalization", ["x", "g"], ["n"], {"axis": -1}),
        ("MatMul", ["n", "w"], ["q"], {}), ("Split", ["q"], ["a", "b"], {"axis": 1}),
        ("Transpose", ["b"], ["t"], {"perm": [0, 2, 1]}), ("MatMul", ["a", "t"], ["m"], {}),
        ("Slice", ["m", "zero", "two"], ["s"], {}), ("Erf", ["s"], ["e"], {}),
        ("ReduceMean", ["e"], ["r"], {"axes": [-1]}), ("Expand", ["r", "shape"], ["x2"], {}),
        ("Tile", ["x2", "shape"], ["ti"], {}), ("OneHot", ["shape", "depth", "values"], ["o"], {}),
        ("Range", ["depth", "high", "depth"], ["ra"], {}),
        ("ConstantOfShape", ["shape"], ["co"], {}), ("Gemm", ["g2", "w"], ["ge"], {"transB": 1}),
        ("Where", ["mask", "r", "r"], ["y"], {})],
        [value("x", [2, 4, 6]), value("g2", [2, 6])], ["y", "ti", "o", "ge", "ra", "co"],
        [constant("g", np.ones(6, np.float32)), constant("w", np.ones((6, 6), np.float32)),
         constant("zero", [0]), constant("two", [2]), constant("shape", [2, 2, 2]),
         constant("depth", 3), constant("high", 9), constant("values", np.float32([0, 1])),
         constant("mask", np.array(True))])


def integers():
    """Quantized layers of both kinds."""
    rng = np.random.default_rng(0)
    return model([
        ("QuantizeLinear", ["x", "s", "z"], ["q"], {}),
        ("QLinearConv", ["q", "s", "z", "w", "sw", "zw", "s", "z", "b"], ["c"], {}),
        ("DequantizeLinear", ["c", "s", "z"], ["d"], {}),
        ("DequantizeLinear", ["w", "sw", "zw"], ["dw"], {"axis": 0}),
        ("Conv", ["d", "dw"], ["e"], {}), ("QuantizeLinear", ["e", "s", "z"], ["f"], {}),
        ("MatMulInteger", ["f", "f", "z", "z"], ["y"], {})],
        [value("x", [1, 3, 6, 6])], ["y"],
        [constant("s", np.float32(0.05)), constant("z", np.uint8(120)),
         constant("w", rng.integers(-9, 9, (3, 3, 2, 2)).astype(np.int8)),
         constant("sw", np.float32([0.1, 0.2, 0.3])), constant("zw", np.zeros(3, np.int8)),
         constant("b", np.int32([1, 2, 3]))])


def alter_bytes(data, rng):
    """Bytes changed, left out, repeated or cut off."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(found) + 1)
        match rng.randrange(5):
            case 0:
                found[place:place + 1] = bytes([rng.randrange(256)])
            case 1:
                del found[place:place + rng.choice((1, 3, 50))]
            case 2:
                found[place:place] = found[place:place + 30]
            case 3:
                found[place:place] = rng.randbytes(rng.choice((1, 4, 9)))
            case _:
                del found[place:]
    return bytes(found)


def alter_fields(data, rng):
    """Numbers, names and types of a well-formed model changed to others."""
    found = ModelProto.FromString(data)
    graph = found.graph
    names = [name for node in graph.node for name in (*node.input, *node.output)] + ["", "\n"]
    for _ in range(rng.choice((1, 1, 1, 1, 3))):
        node, tensor = rng.choice(graph.node), rng.choice(graph.initializer)
        match rng.randrange(9):
            case 0 if node.input:
                node.input[rng.randrange(len(node.input))] = rng.choice(names)
            case 1:
                node.output[rng.randrange(len(node.output))] = rng.choice(names)
            case 2 if node.attribute:
                attribute = rng.choice(node.attribute)
                attribute.i = rng.choice(EXTREMES)
                if attribute.ints:
                    attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(EXTREMES)
            case 3:
                node.op_type = rng.choice(graph.node).op_type
            case 4 if tensor.dims:
                tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(EXTREMES)
            case 5:
                tensor.data_type = rng.randrange(22)
            case 6 if tensor.data_type == TensorProto.INT64:
                count = len(tensor.raw_data) // 8
                tensor.raw_data = b"".join(rng.choice(EXTREMES).to_bytes(8, "little", signed=True)
                                           for _ in range(count))
            case 7:
                dims = rng.choice(graph.input).type.tensor_type.shape.dim
                if dims:
                    rng.choice(dims).dim_value = rng.choice(EXTREMES)
            case _:
                graph.node.insert(rng.randrange(len(graph.node)), rng.choice(graph.node))
    return found.SerializeToString()


def limited(seconds):
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


def main(seed, count):
    from microtron.compiler.frontends.onnx import read_onnx
    from microtron.compiler.graph.types import GraphError
    from microtron.compiler.passes.pipeline import run_passes

    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rng = random.Random(seed)
    seeds = [each().SerializeToString() for each in (images, words, integers)]
    for each in seeds:
        read_onnx(each)                     # as they are, all are good
    read = 0
    for number in range(count):
        alter = alter_bytes if rng.random() < 0.3 else alter_fields
        data = alter(rng.choice(seeds), rng)
        limited(SECONDS)
        try:
            graph = read_onnx(data, "altered.onnx")
            run_passes(graph)
            read += 1
        except GraphError as error:
            message = str(error)
            if not message.isprintable() or not message.startswith("altered.onnx: "):
                raise AssertionError(f"model {number} of seed {seed}: {message!r}") from error
        except BaseException:
            print(f"model {number} of seed {seed}: {data!r}", file=sys.stderr)
            raise
    print(f"{count} models, {read} of them read")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
