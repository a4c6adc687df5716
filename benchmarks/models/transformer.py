"""A small vision transformer, and one block of a BERT encoder."""

from __future__ import annotations

from pathlib import Path

from .qdq import Tensor, Writer
from .weights import Weights

CLASSES = 1000


def vit_tiny(path: str | Path, *, size: int = 224, patch: int = 16, width: int = 192,
             heads: int = 3, depth: int = 12, seed: int = 0) -> None:
    """Write ViT-Ti/16, or one of other sizes."""
    weights = Weights(seed)
    writer = Writer("vit_tiny")
    tokens = (size // patch) ** 2
    x = writer.input("image", (1, 3, size, size), weights.rng.normal(0, 1, (1, 3, size, size)))
    x = writer.conv(x, *weights.conv(width, 3, patch), stride=patch)
    x = writer.transpose(writer.reshape(x, (1, width, tokens)), 0, 2, 1)
    x = writer.concat(writer.constant(weights.embedding(1, 1, width)), x, axis=1)
    x = writer.add(x, writer.constant(weights.embedding(1, tokens + 1, width)))
    for _ in range(depth):
        y = writer.layer_norm(x, *weights.norm(width))
        x = writer.add(x, _attention(writer, weights, y, heads))
        y = writer.layer_norm(x, *weights.norm(width))
        x = writer.add(x, _perceptron(writer, weights, y))
    x = writer.first(writer.layer_norm(x, *weights.norm(width)))
    writer.output("scores", writer.dense(x, *weights.dense(CLASSES, width)), (1, CLASSES))
    writer.save(path)


def bert_block(path: str | Path, *, tokens: int = 128, width: int = 768, heads: int = 12,
               seed: int = 0) -> None:
    """Write one block of BERT's encoder, which normalizes after each half."""
    weights = Weights(seed)
    writer = Writer("bert_block")
    x = writer.input("hidden", (1, tokens, width), weights.rng.normal(0, 1, (1, tokens, width)))
    y = _attention(writer, weights, x, heads)
    x = writer.layer_norm(writer.add(x, y), *weights.norm(width))
    y = _perceptron(writer, weights, x)
    x = writer.layer_norm(writer.add(x, y), *weights.norm(width))
    writer.output("encoded", x, (1, tokens, width))
    writer.save(path)


def _attention(writer: Writer, weights: Weights, x: Tensor, heads: int) -> Tensor:
    """Attention of all tokens to all, in several heads."""
    _, tokens, width = x.sample.shape
    depth = width // heads

    def project(*order: int) -> Tensor:
        y = writer.linear(x, *weights.linear(width, width))
        return writer.transpose(writer.reshape(y, (1, tokens, heads, depth)), *order)

    query, key, value = project(0, 2, 1, 3), project(0, 2, 3, 1), project(0, 2, 1, 3)
    scores = writer.rescale(writer.matmul(query, key), depth ** -0.5)
    mixed = writer.matmul(writer.softmax(scores), value)
    mixed = writer.reshape(writer.transpose(mixed, 0, 2, 1, 3), (1, tokens, width))
    return writer.linear(mixed, *weights.linear(width, width))


def _perceptron(writer: Writer, weights: Weights, x: Tensor) -> Tensor:
    """Two layers, the inner one four times as wide."""
    width = x.sample.shape[-1]
    inner = writer.gelu(writer.linear(x, *weights.linear(width, 4 * width)))
    return writer.linear(inner, *weights.linear(4 * width, width))
