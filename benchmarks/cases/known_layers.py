"""Layers of known networks, as the compiler takes them."""

from __future__ import annotations

from dataclasses import dataclass

from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.dense.dense import Dense, batch_matmul
from microtron.compiler.operators.depthwise.depthwise import Depthwise


def convolution(size: int, channels_in: int, channels_out: int, kernel: int,
                stride: int) -> Conv2d:
    """Square, with the padding that keeps a size, divided by the stride."""
    return Conv2d(height=size, width=size, channels_in=channels_in, channels_out=channels_out,
                  kernel=(kernel, kernel), stride=(stride, stride), pad=(kernel // 2,) * 4)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a network. `offloaded` says how often it is among the 19 convolutions of
    ResNet-18 that VTA runs: all but the first."""

    network: str
    name: str
    spec: Conv2d | Dense
    times: int                  # it occurs in the network
    vta: str = ""               # its name in VTA's tests
    offloaded: int = 0

    @property
    def shape(self) -> str:
        """In a few characters."""
        spec = self.spec
        if isinstance(spec, Dense):
            return f"{spec.matrices} × {spec.rows}×{spec.inputs}×{spec.outputs}"
        return (f"{spec.height}×{spec.width} {spec.channels_in}→{spec.channels_out} "
                f"{spec.kernel[0]}×{spec.kernel[1]}/{spec.stride[0]}")


def _resnet(osdi: str, vta: str, times: int, size: int, channels_in: int, channels_out: int,
            kernel: int, stride: int) -> Layer:
    return Layer(network="resnet18", name=osdi, vta=vta, times=times,
                 offloaded=times if vta not in ("", "C1") else 0,
                 spec=convolution(size, channels_in, channels_out, kernel, stride))


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
            spec=convolution(size, channels_in, channels_out, 1, 1))
      for number, (size, channels_in, channels_out, times) in enumerate(POINTWISE, 1)),
    *(Layer(network="mobilenet", name=f"D{number}", times=times,
            spec=Depthwise(
                height=size, width=size, channels_in=channels, channels_out=channels,
                stride=(stride, stride), pad=(stride % 2, 1, stride % 2, 1)))
      for number, (size, channels, stride, times) in enumerate(DEPTHWISE, 1)))

# A block of BERT-base for 128 words: projections, the products of twelve heads, feed-forward.
BERT = tuple(
    Layer(network="bert", name=name, times=times, spec=(
        Dense(rows=rows, inputs=inputs, outputs=outputs) if matrices == 1 else
        batch_matmul(rows=rows, inputs=inputs, outputs=outputs, matrices=matrices)))
    for name, times, matrices, rows, inputs, outputs in (
        ("projection", 4, 1, 128, 768, 768), ("scores", 1, 12, 128, 64, 128),
        ("context", 1, 12, 128, 128, 64), ("up", 1, 1, 128, 768, 3072),
        ("down", 1, 1, 128, 3072, 768)))

LAYERS = (*RESNET_18, *MOBILENET, *BERT)
