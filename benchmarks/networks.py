"""Layers of known networks in the forms that the compiler knows, and the least they could take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol

from microtron.compiler.build import compile_conv2d
from microtron.compiler.build_convolutions import compile_depthwise, compile_first_layer
from microtron.compiler.build_other import compile_dense
from microtron.compiler.operators.conv2d import Conv2d, blocks_of
from microtron.compiler.operators.dense import Dense
from microtron.compiler.operators.depthwise import Depthwise
from microtron.compiler.operators.first_layer import default_fold, folded
from microtron.compiler.roofline import Bound, bound, convolution_bytes, used
from microtron.isa.config import Config
from microtron.isa.program import Program
from microtron.isa.timing import MemoryTiming

FEW_CHANNELS = 4


class Work(Protocol):
    """What a layer computes, in one of the forms that the compiler knows."""

    @property
    def shape(self) -> str:
        """In a few characters."""

    @property
    def macs(self) -> int:
        """Products that the result needs."""

    @property
    def bytes(self) -> int:
        """Of inputs that are used, weights and outputs: what any schedule has to move."""

    def bound(self, config: Config, memory: MemoryTiming) -> Bound:
        """The least cycles it could take."""

    def compile(self, config: Config, *, hide_latency: bool) -> tuple[Program, dict[str, int]]:
        """The program, and the knobs of its schedule."""


@dataclass(frozen=True)
class Convolution:
    """A convolution with requantization."""

    spec: Conv2d

    @property
    def shape(self) -> str:
        spec = self.spec
        return (f"{spec.height}×{spec.width}, {spec.channels_in}→{spec.channels_out}, "
                f"{spec.kernel[0]}×{spec.kernel[1]}/{spec.stride[0]}")

    @property
    def macs(self) -> int:
        return self.spec.macs

    @property
    def bytes(self) -> int:
        return convolution_bytes(self.spec)

    def bound(self, config: Config, memory: MemoryTiming) -> Bound:
        return bound(self.macs, self.bytes, config, memory)

    def compile(self, config: Config, *, hide_latency: bool) -> tuple[Program, dict[str, int]]:
        kernel = compile_conv2d(self.spec, config, hide_latency=hide_latency)
        return kernel.program, asdict(kernel.knobs)


@dataclass(frozen=True)
class FirstLayer(Convolution):
    """A convolution of few channels, with taps of the kernel folded into channels by the host.
    Its bound is that of what remains: channels are filled up to whole blocks."""

    def bound(self, config: Config, memory: MemoryTiming) -> Bound:
        spec = folded(self.spec, default_fold(self.spec, config))
        blocks = blocks_of(spec.channels_in, config.block_in)
        macs = spec.macs // spec.channels_in * blocks * config.block_in
        return bound(macs, convolution_bytes(spec), config, memory)

    def compile(self, config: Config, *, hide_latency: bool) -> tuple[Program, dict[str, int]]:
        kernel = compile_first_layer(self.spec, config, hide_latency=hide_latency)
        fold = {f"fold_{name}": value for name, value in asdict(kernel.fold).items()}
        return kernel.program, {**fold, **asdict(kernel.knobs)}


@dataclass(frozen=True)
class DepthwiseConvolution(Convolution):
    """A convolution of each channel by itself: a vector of lanes a cycle is the most."""

    spec: Depthwise

    @property
    def bytes(self) -> int:
        spec = self.spec
        rows, columns = (used(size, outputs, spec.kernel[axis], spec.stride[axis],
                              spec.dilation[axis], spec.pad[2 * axis])
                         for axis, (size, outputs) in enumerate((
                             (spec.height, spec.out_height), (spec.width, spec.out_width))))
        return (spec.channels_in * rows * columns + spec.channels_out * (
            spec.kernel[0] * spec.kernel[1] + spec.out_height * spec.out_width))

    def bound(self, config: Config, memory: MemoryTiming) -> Bound:
        lanes = config.batch * config.depthwise_lanes
        vectors = self.macs // self.spec.channels_out * blocks_of(self.spec.channels_out, lanes)
        return bound(vectors * config.macs_per_cycle, self.bytes, config, memory)

    def compile(self, config: Config, *, hide_latency: bool) -> tuple[Program, dict[str, int]]:
        kernel = compile_depthwise(self.spec, config, hide_latency=hide_latency)
        return kernel.program, asdict(kernel.knobs)


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix product, or several of one shape, with requantization."""

    spec: Dense

    @property
    def shape(self) -> str:
        spec = self.spec
        return f"{spec.matrices} × {spec.rows}×{spec.inputs}×{spec.outputs}"

    @property
    def macs(self) -> int:
        return self.spec.macs

    @property
    def bytes(self) -> int:
        return self.spec.bytes

    def bound(self, config: Config, memory: MemoryTiming) -> Bound:
        return bound(self.macs, self.bytes, config, memory)

    def compile(self, config: Config, *, hide_latency: bool) -> tuple[Program, dict[str, int]]:
        kernel = compile_dense(self.spec, config, hide_latency=hide_latency)
        return kernel.program, asdict(kernel.knobs)


def convolution(size: int, channels_in: int, channels_out: int, kernel: int,
                stride: int) -> Convolution:
    """Square, with the padding that keeps a size, divided by the stride."""
    kind = FirstLayer if channels_in < FEW_CHANNELS else Convolution
    return kind(Conv2d(
        height=size, width=size, channels_in=channels_in, channels_out=channels_out,
        kernel=(kernel, kernel), stride=(stride, stride), pad=(kernel // 2,) * 4))


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a network. `offloaded` says how often it is among the 19 convolutions of
    ResNet-18 that VTA runs: all but the first."""

    network: str
    name: str
    work: Work
    times: int                  # it occurs in the network
    vta: str = ""               # its name in VTA's tests
    offloaded: int = 0


def _resnet(osdi: str, vta: str, times: int, size: int, channels_in: int, channels_out: int,
            kernel: int, stride: int) -> Layer:
    return Layer(network="resnet18", name=osdi, vta=vta, times=times,
                 offloaded=times if vta not in ("", "C1") else 0,
                 work=convolution(size, channels_in, channels_out, kernel, stride))


# ResNet-18 as two publications number it: the paper on VTA (OSDI 2018, table 2), and VTA's tests,
# which leave out the 1 × 1 convolution without stride. That one is not in the network either.
RESNET_18 = (
    # name in the paper, in VTA's tests, times; size, channels in and out, kernel, stride
    _resnet("C1", "C1", 1, 224, 3, 64, 7, 2),
    _resnet("C2", "C2", 4, 56, 64, 64, 3, 1),
    _resnet("C3", "", 0, 56, 64, 64, 1, 1),
    _resnet("C4", "C3", 1, 56, 64, 128, 3, 2),
    _resnet("C5", "C4", 1, 56, 64, 128, 1, 2),
    _resnet("C6", "C5", 3, 28, 128, 128, 3, 1),
    _resnet("C7", "C6", 1, 28, 128, 256, 3, 2),
    _resnet("C8", "C7", 1, 28, 128, 256, 1, 2),
    _resnet("C9", "C8", 3, 14, 256, 256, 3, 1),
    _resnet("C10", "C9", 1, 14, 256, 512, 3, 2),
    _resnet("C11", "C10", 1, 14, 256, 512, 1, 2),
    _resnet("C12", "C11", 3, 7, 512, 512, 3, 1),
)
POINTWISE = (       # MobileNet v1 for images of 224 × 224: size, channels in and out, times
    (112, 32, 64, 1), (56, 64, 128, 1), (56, 128, 128, 1), (28, 128, 256, 1), (28, 256, 256, 1),
    (14, 256, 512, 1), (14, 512, 512, 5), (7, 512, 1024, 1), (7, 1024, 1024, 1))
DEPTHWISE = (       # size, channels, stride, times
    (112, 32, 1, 1), (112, 64, 2, 1), (56, 128, 1, 1), (56, 128, 2, 1), (28, 256, 1, 1),
    (28, 256, 2, 1), (14, 512, 1, 5), (14, 512, 2, 1), (7, 1024, 1, 1))
MOBILENET = (
    *(Layer(network="mobilenet", name=f"P{number}", times=times,
            work=convolution(size, channels_in, channels_out, 1, 1))
      for number, (size, channels_in, channels_out, times) in enumerate(POINTWISE, 1)),
    *(Layer(network="mobilenet", name=f"D{number}", times=times,
            work=DepthwiseConvolution(Depthwise(
                height=size, width=size, channels_in=channels, channels_out=channels,
                stride=(stride, stride), pad=(stride % 2, 1, stride % 2, 1))))
      for number, (size, channels, stride, times) in enumerate(DEPTHWISE, 1)))

# A block of BERT-base for 128 words: projections, the products of twelve heads, feed-forward.
BERT = tuple(
    Layer(network="bert", name=name, times=times, work=MatrixProduct(Dense(
        rows=rows, inputs=inputs, outputs=outputs, matrices=matrices,
        constant_weights=matrices == 1)))
    for name, times, matrices, rows, inputs, outputs in (
        ("projection", 4, 1, 128, 768, 768), ("scores", 1, 12, 128, 64, 128),
        ("context", 1, 12, 128, 128, 64), ("up", 1, 1, 128, 768, 3072),
        ("down", 1, 1, 128, 3072, 768)))

LAYERS = (*RESNET_18, *MOBILENET, *BERT)
