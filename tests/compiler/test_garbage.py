"""The search for garbage is less frequent for a while, and then as before."""

import gc

import pytest

from microtron.compiler.garbage import RARELY, collect_rarely


@pytest.fixture
def threshold():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_the_threshold_is_higher_inside_and_the_same_afterwards(threshold):
    with collect_rarely():
        assert gc.get_threshold() == (RARELY, *threshold[1:])
        with collect_rarely():
            pass
        assert gc.get_threshold()[0] == RARELY
    assert gc.get_threshold() == threshold


def test_an_error_inside_changes_nothing(threshold):
    with pytest.raises(ZeroDivisionError), collect_rarely():
        raise ZeroDivisionError
    assert gc.get_threshold() == threshold


def test_one_that_is_turned_off_stays_so(threshold):
    gc.set_threshold(0, 5, 6)
    with collect_rarely():
        assert gc.get_threshold() == (0, 5, 6)
    assert gc.get_threshold() == (0, 5, 6)
