"""What a linked stream follows from: what is known of it can be found before it is linked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from ....base.source_digest import source_digest
from ....isa.config import Config
from ....isa.program import Program
from ....isa.program_key import program_parts
from .link import REMEMBERED, Layer, Sizes, link

DIGEST = hashlib.sha256


def parts_of(layers: Sequence[Layer], config: Config, sizes: Sizes) -> list[bytes]:
    """All that `link` gets, as bytes, and its own sources."""
    parts = [source_digest(link.__module__).encode(), repr((config, sizes)).encode()]
    for layer in layers:
        parts += [_digest(layer.program), repr((sorted(layer.places.items()), layer.with_next,
                                                layer.output_size, layer.stays,
                                                layer.takes)).encode()]
        for name, constant in sorted(layer.constants.items()):
            parts += [name.encode(), _digest_of_bytes(constant)]
    return parts


@lru_cache(REMEMBERED)
def _digest_of_bytes(constant: bytes) -> bytes:
    return DIGEST(constant).digest()


@lru_cache(REMEMBERED)
def _digest(program: Program) -> bytes:
    """Of a layer alone. Its data are micro-ops."""
    digest = DIGEST()
    for part in program_parts(program):
        digest.update(part)
    return digest.digest()
