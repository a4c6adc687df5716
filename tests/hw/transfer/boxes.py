"""Random loads and stores that are valid by construction, and the configurations to try."""

from microtron.isa.config import Config, tiny
from microtron.isa.instructions import Buffer, Engines, Load, Store
from microtron.isa.verification.bounds import index_range

SMALL = {"uop_bytes": 512, "inp_bytes": 1 << 10, "wgt_bytes": 4 << 10, "acc_bytes": 8 << 10,
         "out_bytes": 2 << 10}
CONFIGS = {
    "tiny": tiny,
    "tiny on 128": Config(block_in=4, block_out=4, bus_bits=128, **SMALL),
    "tiny on 256": Config(block_in=4, block_out=4, bus_bits=256, reads_in_flight=3,
                          writes_in_flight=1, **SMALL),
    "batch": Config(batch=2, block_in=8, block_out=4, wgt_bits=4, bus_bits=128, **SMALL),
    "one lane": Config(block_in=2, block_out=1, **SMALL),
    "bytes on 256": Config(block_in=1, block_out=1, bus_bits=256, **SMALL),
    "wider out": Config(block_in=4, block_out=16, bus_bits=64, writes_in_flight=3, **SMALL),
    "a word too few": Config(block_in=1, block_out=1, bus_bits=256, acc_banks=1,
                             **{**SMALL, "inp_bytes": 16, "out_bytes": 8, "acc_bytes": 16}),
}
LOADED = (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC, Buffer.ACC8)
STORED = (Buffer.OUT, Buffer.ACC)
SEGMENT_BASES = (0x3000, 0x9000, 0x5000)        # the first for reading, two for writing
SEGMENT_SIZES = (0x1800, 0x1000, 0x0C00)


def random_box(rng, config, buffer, size, *, longest=12):
    """A shape, an offset and strides of a box of tiles inside `size` bytes."""
    tile = config.tile_bytes(buffer)
    while True:
        shape = (rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 4)),
                 rng.choice((1, 2, 3, rng.randint(1, longest))))
        if rng.random() < 0.1:
            empty = rng.randrange(3)
            shape = tuple(0 if axis == empty else count for axis, count in enumerate(shape))
        stride = (rng.randint(-9, 20) * tile, rng.randint(-5, 12) * tile)
        low, high = index_range(0, shape, (*stride, tile)) or (0, 0)
        room = (size - (high - low) - tile) // tile
        if room >= 0:
            return {"shape": shape, "stride": stride, "offset": _corner(rng, room) * tile - low}


def random_load(rng, config, buffer):
    tile, tiles = config.tile_bytes(buffer), config.tiles(buffer)
    while True:
        segment = rng.randrange(len(SEGMENT_SIZES))
        longest = max(2, min(900 // tile, 2 * config.bus_bytes, tiles))
        box = random_box(rng, config, buffer, SEGMENT_SIZES[segment], longest=longest)
        pad = tuple(rng.choice((0, 0, 1, 2)) for _ in range(4)) \
            if buffer != Buffer.UOP and rng.random() < 0.6 else (0, 0, 0, 0)
        rows, width = box["shape"][1] + pad[0] + pad[1], box["shape"][2] + pad[2] + pad[3]
        pitch = rng.choice((rows * width, rng.randint(0, rows * width + 3)))
        _, high = index_range(0, (box["shape"][0], rows * width), (pitch, 1)) or (0, 0)
        if high < tiles:
            break
    value = rng.choice((0, 5, 7, -8)) if buffer == Buffer.WGT else rng.choice((0, 5, -128, 127))
    return Load(buffer=buffer, segment=segment, sram=_corner(rng, tiles - 1 - high), pad=pad,
                sram_pitch=pitch, pad_value=value, **box, **_random_tokens(rng, own=Engines.LOAD))


def random_store(rng, config, buffer):
    tile, tiles = config.tile_bytes(buffer), config.tiles(buffer)
    while True:
        segment = rng.choice((1, 2))
        longest = max(2, min(900 // tile, 2 * config.bus_bytes, tiles))
        box = random_box(rng, config, buffer, SEGMENT_SIZES[segment], longest=longest)
        pitch = (rng.choice((0, 1, 9, 12)), rng.choice((0, 1, 3, 9)))
        _, high = index_range(0, box["shape"], (*pitch, 1)) or (0, 0)
        if high < tiles:
            break
    return Store(buffer=buffer, segment=segment, sram=_corner(rng, tiles - 1 - high),
                 sram_pitch=pitch, **box, **_random_tokens(rng, own=Engines.STORE))


def _corner(rng, most):
    return rng.choice((0, most, rng.randint(0, most)))


def _random_tokens(rng, own):
    def mask():
        return Engines(rng.choice((0, rng.randrange(16))) & ~own)
    return {"wait": mask(), "post": mask()}
