"""What to propose where a model file leaves shapes of inputs open: options that have been tried."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...base.classes.dataclass import dataclass
from ..graph.types import GraphError, Shape
from .given_inputs import GivenInputs, Sizes

IMAGE_SIZES = (224, 320, 640, 64, 256, 32)      # for sizes that are open, in this order
SIGNAL_SIZES = (512, 128, 16, 1024, 32, 1)
TEXT_SIZES = (128, 512, 16, 1024, 32, 1)        # tokens
UNKNOWN_SHAPES = ((1, 3, 224, 224), (1, 128), (1, 80, 128), (128,))     # if axes are open too
COLOURS = (1, 3, 4)


@dataclass(frozen=True)
class OpenInput:
    """An input that no value takes the place of, as the file and given shapes have it."""

    name: str
    sizes: Sizes | None             # None: not even how many axes there are
    symbols: Sequence[str]          # names of sizes, some of them empty
    is_real: bool

    def plausible(self, size: int, chosen: dict[str, int]) -> Shape:
        """A shape with open sizes filled in: batches of one, colours, and a size for the rest. A
        name means the same wherever it is."""
        found: list[int] = []
        sizes = self.sizes or ()
        for axis, (extent, symbol) in enumerate(zip(sizes, self.symbols, strict=True)):
            guess = chosen.get(symbol, self._guess(axis, symbol, size))
            if extent is None and symbol:
                chosen[symbol] = guess
            found.append(guess if extent is None else extent)
        return tuple(found)

    def _guess(self, axis: int, symbol: str, size: int) -> int:
        sizes = self.sizes or ()
        states = len(sizes) == 3 and axis == 1 and (sizes[0] or 1) > 1      # (layer, batch, number)
        if "batch" in symbol.lower() or states or (axis == 0 and len(sizes) > 1):
            return 1
        return 3 if axis == 1 and len(sizes) == 4 and sizes[3] not in COLOURS else size


def proposals(inputs: Sequence[OpenInput], given: GivenInputs) -> Iterator[GivenInputs]:
    """Shapes that may fit, the most usual first."""
    waiting = [each for each in inputs if each.sizes is None or None in each.sizes]
    if any(each.sizes is None or len(each.sizes) > 3 for each in waiting):
        usual = IMAGE_SIZES
    else:
        usual = SIGNAL_SIZES if any(each.is_real for each in inputs) else TEXT_SIZES
    for number, size in enumerate(usual):
        chosen: dict[str, int] = {}
        shapes = {each.name: UNKNOWN_SHAPES[number % len(UNKNOWN_SHAPES)] if each.sizes is None
                  else each.plausible(size, chosen) for each in waiting}
        yield GivenInputs({**given.shapes, **shapes}, given.values)


def working_proposal(inputs: Sequence[OpenInput], given: GivenInputs,
                     read: Callable[[GivenInputs], GivenInputs]) -> GivenInputs | None:
    """The first proposal that `read` takes, and completes where it needs more."""
    for each in proposals(inputs, given):
        try:
            return read(each)
        except GraphError:
            continue
    return None


def options_text(given: GivenInputs) -> str:
    """Shapes and values as options of the command line, to be copied."""
    return " ".join([*(_option("--shape", name, shape) for name, shape in given.shapes.items()),
                     *(_option("--value", name, value) for name, value in given.values.items())])


def _option(option: str, name: str, numbers: object) -> str:
    text = ",".join(map(str, np.ravel(np.asarray(numbers)).tolist()))
    return f"{option} {shlex.quote(f'{name}={text}')}"
