"""Turns are short while somebody asks for it, and as usual afterwards."""

import sys

import pytest

from microtron.runtime.switch_interval import INTERVAL, ShortSwitchInterval


def test_turns_are_short_until_the_last_leaves():
    usual, turns = sys.getswitchinterval(), ShortSwitchInterval()
    with turns:
        with turns:
            assert sys.getswitchinterval() == pytest.approx(INTERVAL)
        assert sys.getswitchinterval() == pytest.approx(INTERVAL)
    assert sys.getswitchinterval() == usual > INTERVAL
