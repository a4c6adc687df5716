"""The row walker against its definition in plain integers, to the edges of the arithmetic."""

import random
from dataclasses import dataclass, replace

import pytest

from microtron.hw.transfer.burst_walker import BurstWalker
from microtron.isa.config import Config, base, tiny
from microtron.isa.faults import Fault
from microtron.isa.instructions import Buffer

from ..bench import Bench
from ..bus.axi_memory import MOST_BEATS, PAGE
from ..simulate import kept
from .boxes import LOADED, STORED

TOP = (1 << 32) - 1


@dataclass(frozen=True)
class Box:
    """As the walker takes it; a test gives what matters to it."""

    buffer: Buffer = Buffer.INP
    planes: int = 1
    rows: int = 1
    tiles: int = 1
    offset: int = 0
    plane_stride: int = 0
    row_stride: int = 0
    base: int = 0x4000
    size: int = 0x2000
    post: int = 5
    position: int = 7


def bursts_of(box, config):
    """What the walker issues for a box: (address, beats, last, empty), and a fault or None."""
    tile, width = config.tile_bytes(box.buffer), config.bus_bytes
    if box.offset % tile or box.plane_stride % tile or box.row_stride % tile:
        return [], Fault.ALIGNMENT
    if 0 in (box.planes, box.rows, box.tiles):
        return [(None, None, True, True)], None
    bursts = []
    for plane in range(box.planes):
        for row in range(box.rows):
            start = box.offset + plane * box.plane_stride + row * box.row_stride
            end = start + box.tiles * tile
            if start < 0 or end > box.size:
                return bursts, Fault.ADDRESS
            here, final = start // width, (end - 1) // width
            while here <= final:
                cell_end = (here // MOST_BEATS + 1) * MOST_BEATS - 1
                last = min(cell_end, final)
                of_box = last == final and (plane, row) == (box.planes - 1, box.rows - 1)
                address = (box.base // PAGE * PAGE + here * width) % (1 << config.address_bits)
                bursts.append((address, last - here + 1, of_box, False))
                here = last + 1
    return bursts, None


class Walking:
    """Gives boxes to a walker, takes bursts at random times, ends with a fault or the last."""

    def __init__(self, config, boxes, rng, stall=0.3, buffers=LOADED):
        walker = kept(BurstWalker, config, buffers)
        bench = self.bench = Bench(walker)
        bench.add(self)
        self.boxes, self.rng, self.stall = list(boxes), rng, stall
        offered = walker.boxes.payload
        self.fields = {name: bench.pin(getattr(offered, name)) for name in vars(Box())}
        self.valid, self.take = bench.pin(walker.boxes.valid), bench.pin(walker.bursts.ready)
        burst = walker.bursts.payload
        self.stop = bench.pin(walker.stop)
        self.taken, self.issued, self.busy = map(bench.probe, (
            walker.boxes.ready, walker.bursts.valid, walker.busy))
        self.cause, self.fault_position = (bench.probe(walker.fault.cause),
                                           bench.probe(walker.fault.position))
        self.address, self.beats, self.last, self.empty, self.post, self.position = map(
            bench.probe, (burst.address, burst.beats, burst.last, burst.empty, burst.post,
                          burst.position))
        self.left = len(self.boxes)
        self.bursts, self.bursts_at, self.taken_at, self.fault = [], [], [], None

    def drive(self):
        if self.boxes and not self.valid.value and self.rng.random() >= self.stall:
            for name, pin in self.fields.items():
                pin.value = getattr(self.boxes[0], name)
            self.valid.value = 1
        self.take.value = self.rng.random() >= self.stall

    def look(self):
        if self.valid.value and self.taken.value:
            self.taken_at.append(self.bench.cycle)
            self.valid.value = 0
            self.boxes.pop(0)
        if self.issued.value and self.take.value:
            address, beats = self.address.value, self.beats.value + 1
            if self.empty.value:
                address = beats = None
            self.bursts.append((address, beats, bool(self.last.value), bool(self.empty.value)))
            self.bursts_at.append(self.bench.cycle)
            assert self.post.value == 5
            self.left -= self.last.value
        if self.cause.value:
            self.fault = (Fault(self.cause.value), self.fault_position.value)
        self.bench.finished = self.left == 0 or self.fault is not None



def walk(config, *boxes, stall=0.3, buffers=LOADED):
    walking = Walking(config, boxes, random.Random(0), stall, buffers)
    walking.bench.run()
    return walking


def some_boxes(rng, config, buffers, count):
    """Sound boxes, with strides as long as the largest window."""
    boxes = []
    while len(boxes) < count:
        buffer = rng.choice(buffers)
        tile = config.tile_bytes(buffer)
        reach = rng.choice((16, 1 << 20, (1 << 31) // tile))
        box = Box(buffer=buffer, planes=rng.choice((0, 1, 1, 2, 3)), rows=rng.choice((1, 2, 3)),
                  tiles=rng.choice((0, 1, 1, 2, 3, 700 // tile)), offset=rng.choice(
                      (0, rng.randrange(1 << 32))) // tile * tile,
                  plane_stride=rng.randint(-reach, reach - 1) * tile,
                  row_stride=rng.randint(-reach, reach - 1) * tile,
                  base=rng.choice((0, 0x7000, 0xFFFFF000)), size=TOP, position=len(boxes))
        bursts, fault = bursts_of(box, config)
        if fault is None and len(bursts) < 12:
            boxes.append(box)
    return boxes


@pytest.mark.parametrize(("config", "buffers"), [
    (tiny, LOADED), (replace(tiny, bus_bits=256), LOADED),
    (Config(bus_bits=128, address_bits=40), STORED), (base, LOADED)])
def test_bursts_are_those_of_the_definition(config, buffers):
    rng = random.Random(config.digest)
    boxes = some_boxes(rng, config, buffers, 60)
    expected = [burst for box in boxes for burst in bursts_of(box, config)[0]]
    walking = walk(config, *boxes, buffers=buffers)
    assert walking.bursts == expected
    assert walking.fault is None


@pytest.mark.parametrize("box", [
    Box(offset=0x2000 - 4),                                             # the last tile
    Box(offset=TOP - 3 - 4, size=TOP),                                  # of 4 GiB less one byte
    Box(offset=1 << 31, rows=2, row_stride=-(1 << 31), size=TOP),
    Box(offset=0x40, planes=2, rows=2, row_stride=4, plane_stride=-0x40),
    Box(tiles=0, offset=TOP - 3, size=0),                               # touches nothing
])
def test_what_just_fits_its_window_is_issued(box):
    walking = walk(tiny, box)
    assert (walking.bursts, walking.fault) == bursts_of(box, tiny)
    assert walking.fault is None


@pytest.mark.parametrize("box", [
    Box(offset=0x2000),
    Box(offset=0x2000 - 4, tiles=2),
    Box(size=0),
    Box(size=3),
    Box(offset=TOP - 3, tiles=2, size=TOP),                             # wraps in 32 bits
    Box(offset=TOP - 3, tiles=65535, size=TOP),
    Box(offset=0x20, rows=3, row_stride=-0x20),                         # the third row: -0x20
    Box(offset=0x20, planes=3, plane_stride=-0x20),
    Box(rows=2, row_stride=-(1 << 31)),                                 # 2**31 below, not above
    Box(offset=1 << 31, rows=3, row_stride=(1 << 31) - 4, size=TOP),    # wraps to 0x7ffffff8
    Box(offset=1 << 31, planes=3, plane_stride=(1 << 31) - 4, size=TOP),
    Box(planes=2, rows=2, tiles=3, plane_stride=0x1FF0, row_stride=8),
])
def test_a_row_that_leaves_its_window_is_a_fault_and_those_before_it_are_issued(box):
    walking = walk(tiny, box)
    expected, cause = bursts_of(box, tiny)
    assert cause == Fault.ADDRESS
    assert walking.fault == (cause, 7)
    assert walking.bursts == expected[:len(walking.bursts)]     # one may wait for the bus


@pytest.mark.parametrize("buffer", LOADED)
@pytest.mark.parametrize("field", ["offset", "plane_stride", "row_stride"])
@pytest.mark.parametrize("tiles", [0, 1])
def test_what_is_no_multiple_of_a_tile_is_a_fault_even_in_an_empty_box(buffer, field, tiles):
    tile = base.tile_bytes(buffer)
    for wrong in (1, tile // 2, -tile // 2 if field != "offset" else tile + 1):
        box = Box(buffer=buffer, tiles=tiles, **{field: wrong})
        walking = walk(base, box)
        assert (walking.fault, walking.bursts) == ((Fault.ALIGNMENT, 7), [])


def test_no_bubble_between_bursts_or_rows_and_one_between_boxes():
    box = Box(planes=2, rows=3, tiles=200, plane_stride=2800, row_stride=900)
    one = Box(rows=6, row_stride=0x100)
    walking = walk(tiny, box, one, Box(), Box(), stall=0.0)
    count = len(bursts_of(box, tiny)[0])
    assert count > 10
    start = walking.taken_at[0] + 2
    expected = list(range(start, start + count + 6))
    assert walking.bursts_at[:-2] == expected
    assert walking.bursts_at[-2:] == [expected[-1] + 2, expected[-1] + 4]
