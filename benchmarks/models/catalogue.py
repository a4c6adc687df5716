"""The models that there are, by name."""

from __future__ import annotations

from collections.abc import Callable

from .mobilenet import mobilenet_v2, mobilenet_v2_pair
from .resnet import resnet18, resnet50
from .transformer import bert_block, vit_tiny

MODELS: dict[str, Callable[..., None]] = {
    each.__name__: each for each in (resnet18, resnet50, mobilenet_v2, mobilenet_v2_pair, vit_tiny,
                                     bert_block)}
