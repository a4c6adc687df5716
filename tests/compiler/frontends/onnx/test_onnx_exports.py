"""What exporters write around the layers: embeddings, masks, heads whose shapes are computed, and
channels that are shuffled. Of arithmetic on shapes, nothing is left in the graph."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from microtron.compiler.frontends.onnx import read_onnx
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.passes.pipeline import run_passes

from .onnx_models import graph_model, runtime

WIDTH, HEADS, WORDS = 12, 3, 40


class Export:
    """A model while it is written, as a tracing exporter does: a node for every small step."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def __call__(self, op, *operands, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(operands), [name], name, **attributes))
        return name

    def known(self, values, dtype="int64"):
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def size(self, tensor, axis):
        """Shape → Gather → Unsqueeze: one size of a tensor, as a list."""
        return self("Unsqueeze", self("Gather", self("Shape", tensor), self.known(axis)),
                    self.known([0]))

    def model(self, inputs, output):
        self.nodes.append(helper.make_node("Identity", [output], ["y"]))
        return graph_model(self.nodes, inputs, ["y"], self.constants)


def compare(model, inputs, shapes, *, nodes):
    """Our outputs and those of ONNX Runtime are near, before and after all passes."""
    data = model.SerializeToString()
    right = runtime(data).run(None, inputs)[0]
    graph = read_onnx(data, "export", shapes)
    assert not any(node.type.dtype == "int64" and node.operation.title() in (
        "gather", "concat", "slice", "binary") for node in graph.nodes.values())
    after = run_passes(graph)
    assert len(after.nodes) <= nodes, str(after)
    for each in (graph, after):
        np.testing.assert_allclose(evaluate(each, inputs)["y"], right, rtol=1e-4, atol=1e-5)


def heads(export, x, weights):
    """A projection, as (batch, heads, words, width of a head) with sizes from the input."""
    projected = export("MatMul", x, weights)
    shape = export("Concat", export.size(x, 0), export.size(x, 1), export.known([HEADS]),
                   export("Div", export.known([WIDTH]), export.known([HEADS])), axis=0)
    return export("Transpose", export("Reshape", projected, shape), perm=[0, 2, 1, 3])


def test_an_encoder_of_words():
    rng = np.random.default_rng(0)
    export = Export()

    def weights(*shape):
        return export.known(rng.normal(0, 0.3, shape), "float32")

    words = export("Gather", weights(WORDS, WIDTH), "ids")
    length = export("Gather", export("Shape", "ids"), export.known(1))
    places = export("Range", export.known(0), length, export.known(1))
    # Expand as PyTorch's exporter writes it: sizes of -1 become 1
    to = export("Concat", export.size("ids", 0), export.known([-1]), axis=0)
    ones = export("ConstantOfShape", export("Shape", to),
                  value=numpy_helper.from_array(np.array([1])))
    minus = export("Mul", ones, export.known(-1))
    to = export("Where", export("Equal", to, minus), ones, to)
    places = export("Expand", export("Unsqueeze", places, export.known([0])), to)
    x = export("Add", words, export("Gather", weights(64, WIDTH), places))
    x = export("LayerNormalization", x, weights(WIDTH), weights(WIDTH), epsilon=1e-6)
    mask = export("Unsqueeze", export("Cast", "mask", to=TensorProto.FLOAT), export.known([1, 2]))
    mask = export("Mul", export("Sub", export.known(1.0, "float32"), mask),
                  export.known(-1e4, "float32"))
    query, key, values = (heads(export, x, weights(WIDTH, WIDTH)) for _ in range(3))
    key = export("Transpose", key, perm=[0, 1, 3, 2])
    scores = export("Div", export("MatMul", query, key), export.known(2.0, "float32"))
    soft = export("Softmax", export("Add", scores, mask), axis=-1)
    mixed = export("Transpose", export("MatMul", soft, values), perm=[0, 2, 1, 3])
    joined = export("Reshape", mixed, export("Concat", export.size(mixed, 0), export.size(mixed, 1),
                                             export.known([WIDTH]), axis=0))
    x = export("Add", x, export("Gemm", export("Reshape", joined, export.known([-1, WIDTH])),
                                weights(WIDTH, WIDTH), transB=1))
    half = export("Mul", x, export.known(0.5, "float32"))
    error = export("Erf", export("Div", x, export.known(np.sqrt(2), "float32")))
    x = export("Mul", half, export("Add", error, export.known(1.0, "float32")))
    pooled = export("Gather", x, export.known(0), axis=1)
    model = export.model([
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "words"])
        for name in ("ids", "mask")], export("Tanh", pooled))
    ids = rng.integers(0, WORDS, (1, 7))
    compare(model, {"ids": ids, "mask": (ids % 5 > 0).astype(np.int64)}, {"ids": (1, 7)}, nodes=45)


def test_shuffled_channels_and_a_head_of_a_detector():
    rng = np.random.default_rng(1)
    export = Export()
    x = export("Conv", "x", export.known(rng.normal(0, 0.3, (8, 3, 3, 3)), "float32"),
               pads=[1, 1, 1, 1], strides=[2, 2])
    x = export("Clip", x, export.known(0.0, "float32"), export.known(6.0, "float32"))
    parts = export("Reshape", x, export("Concat", export.size(x, 0), export.known([2, 4]),
                                        export.size(x, 2), export.size(x, 3), axis=0))
    turned = export("Transpose", parts, perm=[0, 2, 1, 3, 4])
    x = export("Reshape", turned, export("Concat", export.size(x, 0), export.known([8]),
                                         export("Slice", export("Shape", x), export.known([2]),
                                                export.known([9])), axis=0))
    sides = export("Mul", export("Cast", export("Slice", export("Shape", x), export.known([2]),
                                                export.known([4])), to=TensorProto.FLOAT),
                   export.known([2.0, 2.0], "float32"))
    sizes = export("Concat", export("Slice", export("Shape", x), export.known([0]),
                                    export.known([2])),
                   export("Cast", export("Floor", sides), to=TensorProto.INT64), axis=0)
    export.nodes.append(helper.make_node("Resize", [x, "", "", sizes], ["resized"], mode="nearest"))
    flat = export("Flatten", export("ReduceMean", "resized", axes=[2, 3]))
    model = export.model([helper.make_tensor_value_info("x", TensorProto.FLOAT,
                                                        ["n", 3, "h", "w"])], flat)
    x = rng.normal(size=(2, 3, 8, 6)).astype(np.float32)
    compare(model, {"x": x}, {"x": x.shape}, nodes=9)
