"""Random quantized ONNX models, as tools write them: real operators between DequantizeLinear and
QuantizeLinear.

    made = quantized_model(seed)
    made.model      ONNX, for onnx and ONNX Runtime
    made.stored     every tensor that QuantizeLinear gives, with the type of its numbers
    made.inputs     arrays

Images have one or two sides; all tensors have int8 or uint8. A model has one to eight steps, each
of which reads any tensor before it, so that there are branches, and one to three outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod, sqrt

import numpy as np
from onnx import helper, numpy_helper

from .frontends.onnx.onnx_models import TYPES, graph_model

SPREAD = 60                 # standard deviation of stored numbers, about
MOST_STEPS = 8
MOST_ELEMENTS = 3000        # of a tensor


@dataclass(frozen=True)
class Stored:
    """A quantized tensor: what it is, and about how far its real numbers spread."""

    name: str
    shape: tuple[int, ...]
    scale: str
    zero: str
    spread: float


@dataclass
class Quantized:
    """A model while it is being made. `coarse` has, for results of layers whose bias is rounded, by
    how much of a step that may move them."""

    rng: np.random.Generator
    sides: int
    dtype: str
    nodes: list = field(default_factory=list)
    constants: list = field(default_factory=list)
    images: list[Stored] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    coarse: dict[str, float] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)         # of constants
    reals: list[str] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    model: object = None

    def chance(self, probability):
        return self.rng.random() < probability

    def between(self, low, high):
        return int(self.rng.integers(low, high, endpoint=True))

    def chosen(self, *values):
        return values[self.between(0, len(values) - 1)]

    def fresh(self, word):
        return f"{word}{len(self.nodes) + len(self.constants)}"

    def constant(self, value, word="k"):
        name = self.fresh(word)
        self.values[name] = np.asarray(value)
        self.constants.append(numpy_helper.from_array(self.values[name], name))
        return name

    def add(self, kind, inputs, **attributes):
        name = self.fresh(kind.lower())
        self.nodes.append(helper.make_node(kind, inputs, [name], f"node/{name}", **attributes))
        return name

    def quantization(self, spread):
        """Names of a scale that suits the spread of real numbers, and of a zero point."""
        scale = spread / SPREAD
        scale = self.chosen(scale * self.rng.uniform(0.6, 1.6), scale, 2.0 ** round(np.log2(scale)))
        info = np.iinfo(self.dtype)
        zero = self.chosen(info.min, (info.min + info.max + 1) // 2,
                           self.between(info.min // 2, info.max // 2))
        return (self.constant(np.float32(scale), "scale"),
                self.constant(np.asarray(zero, self.dtype), "zero"))

    def source(self, what="image"):
        """One of the tensors so far, more often a late one."""
        return self.images[-1] if self.chance(0.6) else self.chosen(*self.images)

    def real(self, x):
        return self.add("DequantizeLinear", [x.name, x.scale, x.zero])

    def quantize(self, name, shape, spread, like=None):
        """The result of a step, with a scale of its own, or with that of another tensor."""
        scale, zero = (like.scale, like.zero) if like else self.quantization(spread)
        made = Stored(self.add("QuantizeLinear", [name, scale, zero]), tuple(shape), scale, zero,
                      spread)
        self.stored.append(made)
        self.images.append(made)
        if self.chance(0.05):                       # a second reader of the real numbers
            other = self.quantization(2 * spread)
            self.images.append(Stored(self.add("QuantizeLinear", [name, *other]), tuple(shape),
                                      *other, spread))
            self.stored.append(self.images[-1])
        return made

    def scale_of(self, x):
        return float(self.values[x.scale])

    def activation(self, name):
        kind = self.chosen("", "", "Relu", "Clip")
        if kind == "Clip":
            bounds = [self.constant(np.float32(each)) for each in (0, self.rng.uniform(0.5, 6))]
            return self.add("Clip", [name, *bounds])
        return self.add(kind, [name]) if kind else name

    def weights(self, shape, axis, products):
        """Real weights whose integers have one scale, or one for each output, and these scales."""
        unsigned = self.dtype == "uint8" and self.chance(0.2)
        count = shape[axis] if self.chance(0.6) else 1
        scales = (self.rng.uniform(0.5, 1.5, count) / (SPREAD * sqrt(products))).astype(np.float32)
        info = np.iinfo("uint8" if unsigned else "int8")
        middle, coarse = (128 if unsigned else 0), self.chosen(1, 1, 1, 1, 32)
        array = self.rng.integers(-127, 127, shape, endpoint=True) // coarse + middle
        scales *= coarse                            # a product is a large part of a step then
        zeros = np.full(count, middle).astype(info.dtype)
        extra = {"axis": axis} if count > 1 else {}
        if count == 1:
            scales, zeros = scales.reshape(()), zeros.reshape(())
        name = self.add("DequantizeLinear", [self.constant(array.astype(info.dtype), "w"),
                                             self.constant(scales), self.constant(zeros)], **extra)
        return name, np.broadcast_to(scales, shape[axis])

    def bias(self, x, scales, spread):
        """A bias of any kind: integers at the scale of products or another, or real numbers. And
        whether rounding it to the products' unit changes it."""
        unit = np.float32(self.scale_of(x)) * scales
        real = self.rng.normal(0, spread, len(scales)).astype(np.float32)
        kind = self.chosen("", "stored", "stored", "other", "real")
        if not kind:
            return [], False
        if kind == "real":
            return [self.constant(real, "b")], True
        if kind == "other":
            unit = np.full(len(scales), np.float32(unit.mean() * 3.3))
        array = np.rint(real / unit).astype(np.int32)
        zeros = np.zeros(len(scales), np.int32)
        return [self.add("DequantizeLinear", [self.constant(array, "b"), self.constant(unit),
                                              self.constant(zeros)], axis=0)], kind == "other"

    def layer(self, name, x, shape, spread, scales, rounded):
        """The result of a layer with weights."""
        made = self.quantize(self.activation(name), shape, spread)
        if rounded:
            for each in self.stored[self.stored.index(made):]:
                step = self.scale_of(each)
                self.coarse[each.name] = float(scales.max()) * self.scale_of(x) / step / 2


def quantized_model(seed):
    """A model, made from a seed."""
    from .quantized_steps import STEPS

    rng = np.random.default_rng(seed)
    made = Quantized(rng, int(rng.integers(1, 3)), str(rng.choice(["int8", "uint8"])))
    info, infos = np.iinfo(made.dtype), []
    for number in range(made.between(1, 2)):
        shape = (made.between(1, 2), made.between(1, 20),
                 *[made.between(1, 9) for _ in range(made.sides)])
        name = f"x{number}"
        scale, zero = made.quantization(rng.uniform(0.3, 3))
        made.images.append(Stored(name, shape, scale, zero, made.scale_of(Stored(
            name, shape, scale, zero, 0)) * SPREAD))
        array = rng.integers(info.min, info.max, shape, endpoint=True)
        extreme = rng.choice([info.min, info.max], shape)
        made.inputs[name] = np.where(rng.random(shape) < 0.1, extreme, array).astype(made.dtype)
        infos.append(helper.make_tensor_value_info(name, TYPES[made.dtype], shape))
    for _ in range(made.between(1, MOST_STEPS)):
        made.chosen(*STEPS)(made)
    if not made.stored:
        made.quantize(made.real(made.source()), made.images[0].shape, made.images[0].spread)
    outputs = {made.stored[-1].name, *(made.chosen(*made.stored).name
                                       for _ in range(made.between(0, 2)))}
    if made.chance(0.3):
        made.reals.append(made.add("Softmax", [made.real(made.stored[-1])]))
    made.model = graph_model(made.nodes, infos, [*sorted(outputs), *made.reals], made.constants)
    return made


def fits(shape):
    return 0 < prod(shape) <= MOST_ELEMENTS
