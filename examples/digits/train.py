"""Trains the network of the demo on scikit-learn's digits and writes it as ONNX.

    pip install "microtron[models,train]"
    python examples/digits/train.py

takes about a minute and writes, beside this file: digits_float.onnx (as trained) and
digits_samples.npz (what the demo quantizes it with), digits.onnx (the same network in int8, QDQ)
and digits_test.npz (the digits that it has not seen). All are in the repository; nothing else needs
this script.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from network import Array, Parameters, forward, gradients, initial

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))     # for the writer of quantized models

SEED = 1
HELD_OUT = 360                  # of 1797 digits
CALIBRATED_ON = 256
SAMPLES = 32                    # that the demo quantizes with
EPOCHS, BATCH = 40, 16
RATE, DECAY = 2e-3, 1e-4        # of Adam; weights decay by themselves
BRIGHTEST = 16                  # of a pixel


def main() -> None:
    training, labels, test, test_labels = digits()
    parameters = train(training, labels)
    print(f"real numbers: {accuracy(parameters, test, test_labels):.2%} of {len(test)} digits")
    write(parameters, training[:CALIBRATED_ON], HERE / "digits.onnx")
    write_float(parameters, HERE / "digits_float.onnx")
    np.savez_compressed(HERE / "digits_samples.npz",
                        image=training[:SAMPLES].astype(np.uint8).transpose(0, 3, 1, 2))
    np.savez_compressed(HERE / "digits_test.npz", images=test[..., 0].astype(np.uint8),
                        labels=test_labels.astype(np.uint8))


def digits() -> tuple[Array, Array, Array, Array]:
    """Images (n, 8, 8, 1) with pixels from 0 to 16 and labels, to train with and to test with."""
    from sklearn.datasets import load_digits

    data: Any = load_digits()
    order = np.random.default_rng(SEED).permutation(len(data.target))
    images = data.images[order].astype(np.float32)[..., None]
    labels = data.target[order]
    return images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT]


def train(images: Array, labels: Array) -> Parameters:
    """Parameters after some epochs of Adam on images that are moved by up to a pixel."""
    rng = np.random.default_rng(SEED)
    parameters = initial(rng)
    parameters["first"] /= BRIGHTEST / 2                    # pixels are not near 1
    means = {name: np.zeros_like(each) for name, each in parameters.items()}
    squares = {name: np.zeros_like(each) for name, each in parameters.items()}
    steps = 0
    total = EPOCHS * (len(images) // BATCH)
    for epoch in range(EPOCHS):
        losses = []
        for chosen in np.split(rng.permutation(len(images))[:len(images) // BATCH * BATCH],
                               len(images) // BATCH):
            loss, found = gradients(parameters, shift_images(images[chosen], rng), labels[chosen])
            losses.append(loss)
            steps += 1
            rate = RATE * (1 + np.cos(np.pi * steps / total)) / 2
            for name, each in found.items():
                means[name] += 0.1 * (each - means[name])
                squares[name] += 0.001 * (each * each - squares[name])
                size = np.sqrt(squares[name] / (1 - 0.999 ** steps)) + 1e-8
                parameters[name] -= (rate * (means[name] / (1 - 0.9 ** steps) / size
                                             + DECAY * parameters[name])).astype(np.float32)
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")
    return parameters


def shift_images(images: Array, rng: np.random.Generator) -> Array:
    """Images moved by up to a pixel in both directions."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    places = rng.integers(0, 3, (len(images), 2))
    return np.stack([each[y:y + 8, x:x + 8] for each, (y, x) in zip(padded, places, strict=True)])


def accuracy(parameters: Parameters, images: Array, labels: Array) -> float:
    return float((forward(parameters, images)["dense"].argmax(axis=1) == labels).mean())


def write(parameters: Parameters, sample: Array, path: Path) -> None:
    """The network as a quantized model, calibrated on some images."""
    from models.qdq import Writer

    def weights(name: str) -> tuple[Array, Array]:
        """As ONNX has them: (output, input, y, x)."""
        return parameters[name].transpose(3, 2, 0, 1), parameters[f"{name}.bias"]

    writer = Writer("digits")
    image = writer.input("image", (1, 1, 8, 8), sample.transpose(0, 3, 1, 2))
    first = writer.conv(image, *weights("first"), pad=1, activation="Relu")
    second = writer.conv(first, *weights("second"), stride=2, pad=1, activation="Relu")
    matrix, bias = parameters["depthwise"].transpose(2, 3, 0, 1), parameters["depthwise.bias"]
    deep = writer.conv(second, matrix, bias, pad=1, groups=len(matrix), activation="Relu")
    deep = writer.conv(deep, *weights("pointwise"))
    mean = writer.global_average(writer.add(second, deep, activation="Relu"))
    writer.output("scores", writer.dense(mean, parameters["dense"].T, parameters["dense.bias"]),
                  (1, 10))
    writer.save(path)


def write_float(parameters: Parameters, path: Path) -> None:
    """The network in float, as it was trained."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes: list[Any] = []
    constants: list[Any] = []

    def node(kind: str, operands: list[str], result: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, operands, [result], name=result, **attributes))
        return result

    def conv(x: str, name: str, axes: tuple[int, ...], **attributes: Any) -> str:
        return layer("Conv", x, name, name, parameters[name].transpose(axes), **attributes)

    def layer(kind: str, x: str, name: str, result: str, weights: Array, **attributes: Any) -> str:
        for word, array in (("weights", weights), ("bias", parameters[f"{name}.bias"])):
            constants.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32),
                                                     f"{name}.{word}"))
        return node(kind, [x, f"{name}.weights", f"{name}.bias"], result, **attributes)

    def relu(x: str) -> str:
        return node("Relu", [x], f"{x}.relu")

    full, deep, pads = (3, 2, 0, 1), (2, 3, 0, 1), [1, 1, 1, 1]
    first = relu(conv("image", "first", full, pads=pads))
    second = relu(conv(first, "second", full, pads=pads, strides=[2, 2]))
    channels = parameters["depthwise"].shape[2]
    third = relu(conv(second, "depthwise", deep, pads=pads, group=channels))
    total = relu(node("Add", [second, conv(third, "pointwise", full)], "sum"))
    flat = node("Flatten", [node("GlobalAveragePool", [total], "mean")], "flat")
    layer("Gemm", flat, "dense", "scores", parameters["dense"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in (("image", [1, 1, 8, 8]), ("scores", [1, 10]))]
    model = helper.make_model(helper.make_graph(nodes, "digits", ends[:1], ends[1:], constants),
                              opset_imports=[helper.make_opsetid("", 20)], ir_version=10,
                              producer_name="microtron")
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
