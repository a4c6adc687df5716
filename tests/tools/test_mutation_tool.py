"""The search for faults that no test notices: the faults it makes, and that it can tell."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def mutations():
    spec = importlib.util.spec_from_file_location("mutations", ROOT / "tools" / "mutations.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module
    spec.loader.exec_module(module)
    return module


SOURCE = '''"""A module with 3 words."""
from x import y


# Signatures go on.
def f(a: int | None = 1,        # in more than a line
      *more: int | str) -> int:
    if a < 2 and not more:
        return -a + min(a, 3)
    return f(*more)
'''


def test_faults_are_operators_words_and_numbers_of_the_code(mutations):
    found = {(fault.row, fault.old, fault.new)
             for fault in mutations.faults_in("f.py", SOURCE)}
    assert found == {(8, "<", "<="), (8, "2", "3"), (8, "and", "or"), (8, "not", ""),
                     (9, "-", "+"), (9, "+", "-"), (9, "min", "max"), (9, "3", "4")}


def test_a_fault_changes_its_token_and_nothing_else(mutations):
    fault = next(each for each in mutations.faults_in("f.py", SOURCE) if each.old == "min")
    assert fault.apply(SOURCE) == SOURCE.replace("min", "max")
    assert fault.line(SOURCE) == "return -a + max(a, 3)"


def test_the_choice_is_the_same_for_the_same_seed(mutations):
    one, again, other = (mutations.select_faults(["isa"], 30, seed) for seed in (1, 1, 2))
    assert one == again != other
    assert len({fault.file for fault in one}) > 5


@pytest.mark.parametrize("file", ["compiler/expression/affine.py", "sim/limit.py",
                                  "isa/verification/derive_tokens.py"])
def test_the_nearest_tests_run_first(mutations, file):
    first = mutations.tests_of(file)[0]
    assert (ROOT / first).exists()
    assert Path(first).stem == f"test_{Path(file).stem}"


def test_every_listed_fault_still_stands_somewhere(mutations):
    for (file, line), reason in mutations.ALIKE.items():
        text = (ROOT / file).read_text()
        assert reason
        assert line in {fault.line(text) for fault in mutations.faults_in(file, text)}


@pytest.mark.soak
def test_a_fault_that_matters_is_noticed_and_one_that_does_not_is_not(mutations):
    text = (ROOT / "compiler/expression/affine.py").read_text()
    fault = next(each for each in mutations.faults_in("compiler/expression/affine.py", text)
                 if "other.constant" in each.line(text) and each.old == "+")
    assert mutations.is_noticed(fault)
