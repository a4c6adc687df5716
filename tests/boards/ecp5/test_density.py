"""Logic moves apart where a part has too few places."""

import numpy as np
import pytest

from microtron.boards.ecp5.density import IN_A_TILE, SMALL, DensityMap
from microtron.boards.ecp5.dies import DIES

DIE = DIES["25"]
PLACES = IN_A_TILE * (DIE.columns - 4) * (DIE.rows - 4 - 3)


def luts(number):
    return {f"lut_{each}": {"type": "LUT4"} for each in range(number)}


def fullest(at, size):
    """The most cells in a square."""
    _, counts = np.unique(at // size, axis=1, return_counts=True)
    return counts.max() / size ** 2


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("where", [(10.0, 20.0), (0.0, 0.0), (-5.0, 200.0)])
def test_cells_in_one_point_take_the_room_that_they_need(share, where):
    number = int(share * PLACES)
    at = np.repeat(np.array(where)[:, None], number, axis=1)
    spread = DensityMap(luts(number), DIE).spread(at)
    # A square may lie over parts of four regions.
    assert fullest(spread, SMALL) < 4 * IN_A_TILE
    assert ((spread >= 0) & (spread < [[DIE.columns], [DIE.rows]])).all()
    if share > 0.9:
        assert np.ptp(spread[0]) > 0.9 * (DIE.columns - 4)


def test_cells_that_have_room_stay():
    rng = np.random.default_rng(0)
    at = np.stack([rng.uniform(5, DIE.columns - 5, 500), rng.uniform(5, DIE.rows - 5, 500)])
    moved = np.abs(DensityMap(luts(500), DIE).spread(at) - at)
    assert np.median(moved) < 0.02
    assert moved.max() < 2 * SMALL


def test_more_cells_than_places_are_shared_out():
    at = np.full((2, int(2 * PLACES)), 20.0)
    spread = DensityMap(luts(at.shape[1]), DIE).spread(at)
    assert fullest(spread, 10) < 4 * IN_A_TILE


def test_blocks_take_no_room():
    at = np.full((2, 300), 20.0)
    blocks = {f"block_{each}": {"type": "MULT18X18D"} for each in range(300)}
    assert np.abs(DensityMap(blocks, DIE).spread(at) - at).max() == 0
