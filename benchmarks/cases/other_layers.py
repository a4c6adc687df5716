"""Layers of networks that no other table has, and accelerators and memories to compile them for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.compiler.operators.convolution.transposed import Transposed
from microtron.compiler.operators.dense.dense import Dense, batch_matmul
from microtron.compiler.operators.depthwise.depthwise import Depthwise
from microtron.compiler.operators.depthwise.grouped import Grouped
from microtron.compiler.operators.description import Description
from microtron.compiler.operators.elementwise.broadcast import Broadcast
from microtron.compiler.operators.elementwise.elementwise import Elementwise, Operation
from microtron.compiler.operators.pool.pool import Kind, Pool
from microtron.isa.config import Config, base
from microtron.isa.memory_timing import MemoryTiming

Size = int | tuple[int, int]


@dataclass(frozen=True)
class OtherLayer:
    """A layer by a name that says its network and what it is."""

    name: str
    spec: Description


def _pair(size: Size) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)


def _times(size: Size) -> str:
    return "×".join(str(each) for each in _pair(size))


def _border(kernel: Size, pad: Size | None, dilation: int = 1) -> tuple[int, int, int, int]:
    """The padding on both sides; by default the one that keeps a size."""
    down, right = ((each - 1) // 2 * dilation for each in _pair(kernel)) if pad is None else (
        _pair(pad))
    return down, down, right, right


def conv(network: str, size: Size, channels: tuple[int, int], kernel: Size = 3, stride: Size = 1, *,
         pad: Size | None = None, dilation: int = 1, groups: int = 1) -> OtherLayer:
    """A convolution, in groups if there are several, and depthwise if each has one channel."""
    kind: Any = Conv2d
    more: dict[str, Any] = {}
    if groups == channels[0] == channels[1]:
        kind = Depthwise
    elif groups > 1:
        kind, more = Grouped, {"groups": groups}
    (height, width) = _pair(size)
    spec = kind(height=height, width=width, channels_in=channels[0], channels_out=channels[1],
                kernel=_pair(kernel), stride=_pair(stride), dilation=(dilation, dilation),
                pad=_border(kernel, pad, dilation), **more)
    note = "".join((f" rate {dilation}" if dilation > 1 else "",
                    f" depthwise {channels[0]}" if kind is Depthwise else
                    f" {channels[0]}→{channels[1]}", f" in {groups}" if kind is Grouped else ""))
    return OtherLayer(f"{network} {_times(size)}{note} {_times(kernel)}/{_pair(stride)[1]}", spec)


def depthwise(network: str, size: Size, channels: int, kernel: Size = 3, stride: Size = 1, *,
              pad: Size | None = None, dilation: int = 1) -> OtherLayer:
    return conv(network, size, (channels, channels), kernel, stride, pad=pad, dilation=dilation,
                groups=channels)


def pool(network: str, kind: str, size: Size, channels: int, kernel: Size, stride: Size = 1, *,
         pad: Size = 0, **more: Any) -> OtherLayer:
    (height, width) = _pair(size)
    spec = Pool(kind=Kind(kind), height=height, width=width, channels=channels,
                kernel=_pair(kernel), stride=_pair(stride), pad=_border(kernel, pad), **more)
    padded = f" pad {_pair(pad)[1]}" if pad else ""
    padded += " counted" if spec.count_include_pad else ""
    return OtherLayer(f"{network} {kind} {_times(kernel)}/{_pair(stride)[1]}{padded} of "
                      f"{_times(size)}×{channels}", spec)


def global_pool(network: str, size: Size, channels: int) -> OtherLayer:
    return pool(network, "average", size, channels, size)


def add(network: str, size: Size, channels: int) -> OtherLayer:
    height, width = _pair(size)
    spec = Elementwise(operation=Operation.ADD, height=height, width=width, channels=channels,
                       scale_left=0.02, scale_right=0.03, scale_out=0.04, zero_point_left=3,
                       zero_point_right=-5, zero_point_out=2)
    return OtherLayer(f"{network} add {_times(size)}×{channels}", spec)


def gate(network: str, size: Size, channels: int) -> OtherLayer:
    height, width = _pair(size)
    spec = Broadcast(operation=Operation.MUL, height=height, width=width, channels=channels,
                     scale_left=0.02, scale_right=0.004, scale_out=0.02, zero_point_right=-128)
    return OtherLayer(f"{network} gate {_times(size)}×{channels}", spec)


def dense(network: str, rows: int, inputs: int, outputs: int) -> OtherLayer:
    return OtherLayer(f"{network} {rows}×{inputs}×{outputs}",
                      Dense(rows=rows, inputs=inputs, outputs=outputs))


def matmul(network: str, matrices: int, rows: int, inputs: int, outputs: int,
           zeros: tuple[int, int] = (0, 0)) -> OtherLayer:
    spec = batch_matmul(rows=rows, inputs=inputs, outputs=outputs, matrices=matrices,
                        zero_point_in=zeros[0], zero_point_weights=zeros[1])
    note = f" zero points {zeros[0]} {zeros[1]}" if any(zeros) else ""
    return OtherLayer(f"{network} {matrices} of {rows}×{inputs}×{outputs}{note}", spec)


def upsample(network: str, size: int, channels: tuple[int, int], kernel: int,
             stride: int) -> OtherLayer:
    spec = Transposed(height=size, width=size, channels_in=channels[0], channels_out=channels[1],
                      kernel=(kernel, kernel), stride=(stride, stride),
                      pad=((kernel - stride) // 2,) * 4)
    return OtherLayer(f"{network} transposed {_times(size)} {channels[0]}→{channels[1]} "
                      f"{_times(kernel)}/{stride}", spec)


INCEPTION = (
    conv("Inception", 299, (3, 32), 3, 2, pad=0), conv("Inception", 149, (32, 32), pad=0),
    conv("Inception", 147, (32, 64)), conv("Inception", 73, (64, 80), 1),
    conv("Inception", 73, (80, 192), pad=0), conv("Inception", 35, (192, 64), 1),
    conv("Inception", 35, (192, 48), 1), conv("Inception", 35, (48, 64), 5),
    conv("Inception", 35, (96, 96)), conv("Inception", 35, (288, 384), 3, 2, pad=0),
    conv("Inception", 17, (768, 192), 1), conv("Inception", 17, (128, 128), (1, 7)),
    conv("Inception", 17, (128, 192), (7, 1)), conv("Inception", 8, (384, 384), (1, 3)),
    conv("Inception", 8, (2048, 320), 1), pool("Inception", "max", 147, 64, 3, 2),
    pool("Inception", "max", 35, 288, 3, 2), pool("Inception", "average", 35, 192, 3, pad=1),
    pool("Inception", "average", 17, 768, 3, pad=1),
    pool("Inception", "average", 35, 192, 3, pad=1, count_include_pad=True),
    pool("Inception", "average", 17, 768, 5, 3), global_pool("Inception", 8, 2048))
SQUEEZENET = (
    conv("SqueezeNet", 224, (3, 96), 7, 2, pad=0), conv("SqueezeNet", 55, (96, 16), 1),
    conv("SqueezeNet", 55, (16, 64), 1), conv("SqueezeNet", 55, (16, 64)),
    conv("SqueezeNet", 27, (32, 128)), conv("SqueezeNet", 13, (64, 256)),
    conv("SqueezeNet", 13, (512, 1000), 1), pool("SqueezeNet", "max", 109, 96, 3, 2),
    pool("SqueezeNet", "max", 27, 256, 3, 2), global_pool("SqueezeNet", 13, 1000))
VGG = (
    conv("VGG", 224, (3, 64)), conv("VGG", 224, (64, 64)), conv("VGG", 112, (128, 128)),
    conv("VGG", 56, (256, 256)), conv("VGG", 28, (512, 512)), conv("VGG", 14, (512, 512)),
    pool("VGG", "max", 224, 64, 2, 2), pool("VGG", "max", 56, 256, 2, 2),
    pool("VGG", "max", 14, 512, 2, 2), dense("VGG", 1, 4096, 1000))
DENSENET = (
    conv("DenseNet", 56, (64, 128), 1), conv("DenseNet", 56, (128, 32)),
    conv("DenseNet", 28, (256, 128), 1), conv("DenseNet", 14, (128, 32)),
    conv("DenseNet", 14, (1024, 512), 1), conv("DenseNet", 7, (128, 32)),
    pool("DenseNet", "average", 56, 128, 2, 2), pool("DenseNet", "average", 28, 256, 2, 2),
    global_pool("DenseNet", 7, 1024))
RESNETS = (
    conv("ResNet-50", 56, (64, 256), 1), conv("ResNet-50", 56, (256, 64), 1),
    conv("ResNet-50", 56, (256, 512), 1, 2), conv("ResNet-50", 57, (64, 128), 1, 2),
    conv("ResNet-50", 29, (128, 256), 1, 2), conv("ResNet-50", 7, (2048, 512), 1),
    pool("ResNet-50", "max", 112, 64, 3, 2, pad=1), add("ResNet-50", 56, 256),
    add("ResNet-50", 14, 1024), conv("ResNeXt", 56, (128, 128), groups=32),
    conv("ResNeXt", 28, (256, 256), groups=32), conv("ResNeXt", 14, (512, 512), groups=32),
    conv("ResNeXt", 28, (512, 512), 3, 2, groups=32), conv("ResNeXt", 7, (1024, 1024), groups=32),
    conv("RegNet", 28, (240, 240), groups=6), conv("RegNet", 14, (560, 560), groups=14),
    conv("RegNet", 28, (168, 168), groups=7), conv("RegNet", 56, (48, 48), groups=2),
    conv("RegNet", 28, (240, 560), 1))
EFFICIENTNET = (
    conv("EfficientNet", 224, (3, 32), 3, 2), depthwise("EfficientNet", 112, 32),
    conv("EfficientNet", 56, (24, 144), 1), depthwise("EfficientNet", 56, 144),
    depthwise("EfficientNet", 28, 240, 5), conv("EfficientNet", 28, (40, 240), 1),
    conv("EfficientNet", 28, (240, 40), 1), depthwise("EfficientNet", 14, 480),
    depthwise("EfficientNet", 14, 672, 5), depthwise("EfficientNet", 14, 672, 5, 2),
    conv("EfficientNet", 14, (112, 672), 1), depthwise("EfficientNet", 7, 1152, 5),
    conv("EfficientNet", 7, (1152, 320), 1), global_pool("EfficientNet", 112, 32),
    global_pool("EfficientNet", 28, 240), gate("EfficientNet", 56, 144),
    gate("EfficientNet", 14, 672), add("EfficientNet", 56, 24), add("EfficientNet", 28, 40),
    add("EfficientNet", 14, 112))
MOBILENETS = (
    conv("MobileNetV3", 224, (3, 16), 3, 2), depthwise("MobileNetV3", 112, 64, 3, 2),
    conv("MobileNetV3", 56, (72, 24), 1), depthwise("MobileNetV3", 56, 72, 5, 2),
    depthwise("MobileNetV3", 28, 120, 5), conv("MobileNetV3", 28, (40, 120), 1),
    conv("MobileNetV3", 14, (80, 200), 1), depthwise("MobileNetV3", 14, 200),
    conv("MobileNetV3", 14, (200, 80), 1), global_pool("MobileNetV3", 28, 72),
    global_pool("MobileNetV3", 28, 40), gate("MobileNetV3", 28, 72), add("MobileNetV3", 14, 40),
    dense("MobileNetV3", 1, 960, 1280), depthwise("MobileNetV2", 7, 960),
    conv("MobileNetV2", 7, (160, 960), 1), conv("MobileNetV2", 56, (24, 144), 1),
    depthwise("MobileNetV2", 112, 96, 3, 2))
YOLO = (
    conv("YOLO", 416, (3, 16)), conv("YOLO", 208, (16, 32)), conv("YOLO", 104, (32, 64)),
    conv("YOLO", 26, (128, 256)), conv("YOLO", 13, (512, 1024)), conv("YOLO", 13, (1024, 255), 1),
    conv("YOLO", 320, (3, 32), 6, 2, pad=2), pool("YOLO", "max", 416, 16, 2, 2),
    pool("YOLO", "max", 104, 64, 2, 2), pool("YOLO", "max", 13, 512, 5, pad=2),
    pool("YOLO", "max", 13, 512, 9, pad=4), pool("YOLO", "max", 13, 512, 13, pad=6))
TRANSFORMERS = (
    conv("ViT", 224, (3, 192), 16, 16, pad=0), dense("ViT", 197, 192, 576),
    dense("ViT", 197, 768, 3072), dense("ViT", 197, 3072, 768), matmul("ViT", 3, 197, 64, 197),
    matmul("ViT", 12, 197, 197, 64), matmul("ViT", 12, 197, 64, 197, (-4, 7)),
    matmul("ViT", 12, 197, 197, 64, (-128, 3)), dense("BERT", 384, 768, 768),
    dense("BERT", 384, 312, 1200), matmul("BERT", 12, 128, 64, 128, (5, -3)),
    matmul("BERT", 12, 128, 128, 64, (-128, 2)), matmul("BERT", 12, 384, 64, 384))
SEGMENTATION = (
    conv("U-Net", 256, (64, 64)), conv("U-Net", 128, (256, 128)), conv("U-Net", 256, (64, 2), 1),
    conv("U-Net", 256, (1, 32)), upsample("U-Net", 64, (128, 64), 2, 2),
    pool("U-Net", "max", 128, 128, 2, 2), upsample("FCN", 34, (21, 21), 4, 2),
    conv("DeepLab", 33, (320, 256), dilation=6, pad=6),
    conv("DeepLab", 33, (320, 256), dilation=18, pad=18), conv("DeepLab", 33, (1280, 256), 1),
    depthwise("DeepLab", 33, 960, dilation=2), depthwise("DeepLab", 65, 256))
ONE_DIMENSION = (
    conv("speech", (1, 296), (250, 250), (1, 48), (1, 2)), conv("speech", (1, 1000), (40, 64),
                                                                (1, 9)),
    conv("speech", (1, 500), (128, 128), (1, 3), dilation=4, pad=(0, 4)),
    depthwise("speech", (1, 400), 256, (1, 31)), conv("speech", (1, 400), (256, 512), 1),
    pool("speech", "max", (1, 2000), 64, (1, 4), (1, 4)), conv("ECG", (1, 3600), (1, 32), (1, 16)),
    pool("ECG", "average", (1, 1000), 64, (1, 2), (1, 2)))
SMALL = (
    conv("LeNet", 28, (1, 6), 5), pool("LeNet", "average", 28, 16, 2, 2),
    conv("digits", 35, (2, 32)), conv("digits", 35, (5, 24), 3, 2), add("digits", 64, 32),
    conv("digits", 65, (48, 96), 3, 2), conv("digits", 40, (20, 20)))

OTHER_LAYERS = (*INCEPTION, *SQUEEZENET, *VGG, *DENSENET, *RESNETS, *EFFICIENTNET, *MOBILENETS,
                *YOLO, *TRANSFORMERS, *SEGMENTATION, *ONE_DIMENSION, *SMALL)

# One of each kind, for all configurations.
PROBES = (
    conv("Inception", 73, (80, 192), pad=0), conv("Inception", 17, (768, 192), 1),
    conv("VGG", 28, (512, 512)), conv("DenseNet", 56, (128, 32)),
    conv("ResNet-50", 56, (256, 64), 1), conv("ResNet-50", 29, (128, 256), 1, 2),
    conv("ResNeXt", 28, (256, 256), groups=32), conv("RegNet", 28, (240, 240), groups=6),
    depthwise("EfficientNet", 28, 240, 5), depthwise("MobileNetV2", 7, 960),
    conv("EfficientNet", 28, (40, 240), 1), conv("YOLO", 208, (16, 32)),
    conv("MobileNetV3", 224, (3, 16), 3, 2), pool("Inception", "average", 35, 192, 3, pad=1),
    pool("ResNet-50", "max", 112, 64, 3, 2, pad=1), global_pool("EfficientNet", 28, 240),
    add("ResNet-50", 14, 1024), dense("ViT", 197, 768, 3072), matmul("ViT", 3, 197, 64, 197),
    upsample("U-Net", 64, (128, 64), 2, 2))

_SCRATCHPADS = ("uop_bytes", "inp_bytes", "wgt_bytes", "acc_bytes", "out_bytes")
REFERENCE = "base"


def _scale_base(**fields: int) -> Config:
    """`base` with other blocks, and scratchpads of as many tiles."""
    config = replace(base, **fields)
    factor = {"inp_bytes": config.batch * config.block_in // 16,
              "wgt_bytes": config.block_in * config.block_out // 256,
              "acc_bytes": config.batch * config.block_out // 16,
              "out_bytes": config.batch * config.block_out // 16}
    return replace(config, **{name: max(1, times) * getattr(base, name)
                              for name, times in factor.items()})


CONFIGURATIONS: dict[str, tuple[Config, MemoryTiming]] = {
    REFERENCE: (base, MemoryTiming()),
    "batch 4": (_scale_base(batch=4), MemoryTiming()),
    "batch 16": (_scale_base(batch=16), MemoryTiming()),
    "4 × 64": (replace(base, block_in=4, block_out=64), MemoryTiming()),
    "64 × 64": (_scale_base(block_in=64, block_out=64), MemoryTiming()),
    "16 × 8": (replace(base, block_out=8), MemoryTiming()),
    "a sixteenth": (replace(base, **{name: getattr(base, name) // 16 for name in _SCRATCHPADS}),
                    MemoryTiming()),
    "one bank": (replace(base, acc_banks=1), MemoryTiming()),
    "one burst": (replace(base, reads_in_flight=1, writes_in_flight=1), MemoryTiming()),
    "32 bits a cycle": (base, MemoryTiming(cycles_per_beat=2)),
    "256-bit bus": (replace(base, bus_bits=256), MemoryTiming()),
    "int4": (replace(base, wgt_bits=4), MemoryTiming()),
    "stalls": (base, MemoryTiming(stalls=64, seed=1)),
}


def in_batches(layer: OtherLayer, batch: int) -> OtherLayer:
    """The layer for as many images as a tile holds. Rows of products fill tiles as they are."""
    if batch == 1 or isinstance(layer.spec, Dense):
        return layer
    spec: Any = layer.spec
    return OtherLayer(f"{batch} × {layer.name}", replace(spec, images=batch))


def cases() -> Iterator[tuple[str, OtherLayer]]:
    """All layers on the reference, then a few on each of the other configurations."""
    for layer in OTHER_LAYERS:
        yield REFERENCE, layer
    for name, (config, _) in CONFIGURATIONS.items():
        if name != REFERENCE:
            for layer in PROBES:
                yield name, in_batches(layer, config.batch)
