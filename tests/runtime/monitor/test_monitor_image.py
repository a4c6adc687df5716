"""Images of networks as the host reads them: also those that are damaged, or none."""

import random

import numpy as np
import pytest

from microtron.base.errors import ImageError
from microtron.compiler.graph.types import Quantization, TensorType
from microtron.runtime.monitor.image import HEADER, NETWORK, NetworkImage

from .fake_monitor import BASE, image_bytes


def test_tensors_are_what_the_tables_say():
    image = NetworkImage(image_bytes(), BASE)
    type_ = TensorType((2, 4), "int8", Quantization((0.5,), (3,)))
    assert (image.name, image.stages, image.stage(0)) == ("plus", 1, "program 0")
    assert [(each.name, each.type, each.address, each.bytes) for each in image.inputs.values()] == [
        ("x", type_, BASE + 1024, 8)]
    assert image.outputs["y"].address == BASE + 1040
    assert image.outputs["y"].dtype == np.int8


def test_a_tensor_without_a_scale_stands_for_itself():
    image = NetworkImage(image_bytes(scale=0.0), BASE)
    assert image.inputs["x"].type == TensorType((2, 4), "int8")


@pytest.mark.parametrize(("content", "message"), [
    (b"", "not an image of a network for a board; `microtron firmware` makes them"),
    (b"something else" * 9, "not an image of a network"),
    (image_bytes()[:-4], "an image of version 2, .* bytes; this is version 2, and .* are there"),
    (image_bytes(needed=1040), "tensor y lies at 0x40000410, outside of the 1,040 bytes of memory"),
    (image_bytes(dtype=b"int9"), "a damaged image: tensor x: type is 'int9', but must be one of"),
    (image_bytes(dtype=b"\xff"), "a damaged image: the name at 0x[0-9a-f]+ is no text"),
    (image_bytes(scale=-1.0), "a damaged image: tensor x: scales are"),
])
def test_what_is_no_image_is_refused(content, message):
    with pytest.raises(ImageError, match=message) as caught:
        NetworkImage(content, BASE)
    assert "\n" not in str(caught.value)


def test_an_image_for_memory_elsewhere_is_refused():
    with pytest.raises(ImageError, match="or one for another system: a table refers to 48 bytes"):
        NetworkImage(image_bytes(), 0x8000_0000)


def test_a_damaged_image_is_refused_or_read_and_nothing_else():
    rng, right = random.Random(1), image_bytes()
    refused = 0
    for _ in range(3000):
        content = bytearray(right)
        place = rng.randrange(HEADER.size - 8, HEADER.size + NETWORK.size + 120)
        content[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            image = NetworkImage(bytes(content), BASE)
            assert all(BASE <= each.address <= BASE + image.memory_bytes - each.bytes
                       for each in (*image.inputs.values(), *image.outputs.values()))
        except ImageError:
            refused += 1
    assert refused > 1000
