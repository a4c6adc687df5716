"""Signed factors in the upper bits of a multiplier: the product stays the same."""

import copy

import pytest

from microtron.boards.ecp5.align_multiplier_operands import align_multiplier_operands
from microtron.boards.ecp5.editable_netlist import Netlist

from .small_netlists import Design, simulate, stimuli


def raised(design, seed=0):
    """The wires that are gone, and the multiplier afterwards; outputs must not notice."""
    before = design.module()
    after = copy.deepcopy(before)
    found = align_multiplier_operands(Netlist(after))
    inputs = stimuli(before, seed)
    assert simulate(before, inputs) == simulate(after, inputs)
    return found, next(each for each in after["cells"].values() if each["type"] == "MULT18X18D")


@pytest.mark.parametrize(("left", "right"), [(8, 8), (17, 8), (18, 8), (1, 2), (18, 18), (12, 5)])
@pytest.mark.parametrize("registered", [False, True])
def test_copies_of_signs_need_no_wires(left, right, registered):
    design = Design()
    product = design.signed_multiplier(design.given("left", left), design.given("right", right))
    shown = product[:left + right]
    design.show("product", design.registered(shown) if registered else shown)
    found, cell = raised(design)
    assert found == 36 - left - right
    for side, bits in (("A", left), ("B", right)):
        factor = [cell["connections"][f"{side}{number}"][0] for number in range(18)]
        assert factor[:18 - bits] == ["0"] * (18 - bits)
        assert len(set(factor[18 - bits:])) == bits
    assert cell["connections"]["P35"] == [shown[-1]]


@pytest.mark.parametrize("upper", [16, 20, 30, 35])
def test_a_factor_goes_up_no_further_than_the_product_has_room(upper):
    """Somebody may read copies of the product's sign."""
    design = Design()
    product = design.signed_multiplier(design.given("left", 8), design.given("right", 8))
    design.show("product", [*product[:16], product[upper]])
    assert raised(design)[0] == 35 - upper


@pytest.mark.parametrize(("signed", "gone"), [(("0", "0"), 0), (("1", "0"), 10), (("0", "1"), 10)])
def test_only_signed_factors_move(signed, gone):
    design = Design()
    left, right = (design.given(name, 8) for name in ("left", "right"))
    factors = [bits if sign == "1" else [*bits, *("0" * 10)]
               for bits, sign in zip((left, right), signed, strict=True)]
    product = design.signed_multiplier(*factors, signed)
    design.show("product", product[:16])
    assert raised(design)[0] == gone


def test_a_constant_factor_stays():
    design = Design()
    product = design.signed_multiplier(design.given("left", 18), ["1", "0", "1", "0"])
    design.show("product", product[:22])
    assert raised(design)[0] == 0


def test_a_product_that_nobody_reads_stays():
    design = Design()
    design.signed_multiplier(design.given("left", 8), design.given("right", 8))
    assert raised(design)[0] == 0
