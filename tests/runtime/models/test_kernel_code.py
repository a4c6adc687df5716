"""Functions of kernels are compiled together, found one by one, and in memory once."""

import re

import pytest

from microtron.base.machine_code import object_file
from microtron.base.processor import host
from microtron.compiler.cpu.cpu_part import compile_part
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operations.pointwise.binary import Binary, BinaryKind
from microtron.compiler.graph.types import TensorType
from microtron.runtime.models import kernel_code
from microtron.runtime.models.kernel_code import functions_of

ADD, MULTIPLY = BinaryKind.ADD, BinaryKind.MUL


def module(*kinds):
    """One kernel for each kind, of two inputs, and one of a single input."""
    builder = Builder()
    x, y = (builder.input(each, TensorType((3, 37), "float32")) for each in "xy")
    names = [builder.add(f"z{number}", Binary(kind=kind, left=x, right=y))
             for number, kind in enumerate(kinds)]
    names.append(builder.add("twice", Binary(kind=ADD, left=x, right=x)))
    return compile_part(builder.graph(tuple(names)), host()).module


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """How often LLVM is at work. Nothing is in memory or kept yet."""
    monkeypatch.setenv("MICROTRON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel_code, "LOADED", type(kernel_code.LOADED)())
    texts = []
    monkeypatch.setattr(kernel_code, "object_file", lambda text, **options:
                        texts.append(text) or object_file(text, **options))
    return texts


def in_a_new_process(monkeypatch):
    monkeypatch.setattr(kernel_code, "LOADED", type(kernel_code.LOADED)())


def test_a_part_is_compiled_at_once(compiled):
    functions = functions_of(module(ADD, MULTIPLY))
    assert len(compiled) == 1
    assert len({each.library for each in functions.values()}) == 1
    assert len({each.address for each in functions.values()}) == len(functions) == (
        3 + 2 + 2)          # bodies; for two buffers and for three; run all in a row, and help


def test_kernels_of_one_part_serve_another(compiled):
    first = functions_of(module(ADD))
    both = functions_of(module(ADD, MULTIPLY))
    assert {name: both[name] for name in first} == first
    assert [len(re.findall("define (?!internal)", text)) for text in compiled] == [len(first), 1]


def test_code_that_is_not_optimized_is_other_code(compiled):
    plain, quick = (functions_of(module(ADD), optimize=each) for each in (True, False))
    assert not {each.address for each in plain.values()} & {each.address for each in quick.values()}


def test_code_is_kept_for_the_next_process_whatever_was_compiled_with_it(compiled, monkeypatch):
    functions_of(module(ADD))
    functions_of(module(ADD, MULTIPLY))
    for kinds, libraries in (((ADD,), 1), ((MULTIPLY,), 2), ((ADD, MULTIPLY), 2)):
        in_a_new_process(monkeypatch)
        found = functions_of(module(*kinds))
        assert len({each.library for each in found.values()}) == libraries
    assert len(compiled) == 2


@pytest.mark.parametrize("kind", [kernel_code.FUNCTION, kernel_code.MODULE])
def test_what_was_lost_is_compiled_anew(compiled, monkeypatch, tmp_path, kind):
    functions_of(module(ADD))
    for path in (tmp_path / "cache" / "code").glob(f"{kind}-*"):
        path.unlink()
    in_a_new_process(monkeypatch)
    functions = functions_of(module(ADD))
    in_a_new_process(monkeypatch)
    assert functions_of(module(ADD)).keys() == functions.keys()
    assert len(compiled) == 2


def test_without_a_cache_it_works_and_says_so_once(compiled, monkeypatch, tmp_path, capsys):
    (tmp_path / "cache").write_text("a file is in the way")
    assert len(functions_of(module(ADD))) == 6
    assert capsys.readouterr().err.count("cannot be kept") == 1
