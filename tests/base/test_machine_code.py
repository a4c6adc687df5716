"""Machine code for this processor runs; that for others is theirs."""

from ctypes import c_int32, c_int64

import pytest

from microtron.base.errors import MicrotronError
from microtron.base.machine_code import Library, assembly, describe_target, names_of, object_file
from microtron.base.processor import TARGETS, host, target

TEXT = """
define i64 @twice(i64 %x) { %y = add i64 %x, %x
 ret i64 %y }
define i32 @product(i32 %x, i32 %y) { %z = mul i32 %x, %y
 ret i32 %z }
define float @sum(float %x, float %y) { %z = fadd float %x, %y
 ret float %z }
"""
MACHINES = {"x86-64": 62, "aarch64": 183, "armv7-neon": 40, "rv32imac": 243, "rv32im": 243}


def test_functions_of_one_object_are_loaded_and_outlive_the_library():
    library = Library(object_file(TEXT))
    twice = library.function("twice", c_int64, c_int64)
    product = library.function("product", c_int32, c_int32, c_int32)
    del library
    assert (twice(1 << 40), product(-3, 7)) == (1 << 41, -21)


def test_objects_call_each_other():
    caller = ("declare i64 @twice(i64)\n"
              "define i64 @fourfold(i64 %x) { %y = call i64 @twice(i64 %x)\n"
              "%z = call i64 @twice(i64 %y)\n ret i64 %z }")
    library = Library(object_file(TEXT), object_file(caller))
    assert library.function("fourfold", c_int64, c_int64)(5) == 20


def test_a_function_that_is_not_there_is_an_error():
    with pytest.raises(KeyError):
        Library(object_file(TEXT)).function("thrice", c_int64)


def test_code_that_calls_what_is_nowhere_is_refused_before_it_runs():
    caller = ("declare i64 @{0}(i64)\n"
              "define i64 @call(i64 %x) {{ %y = call i64 @{0}(i64 %x)\n ret i64 %y }}")
    with pytest.raises(MicrotronError, match="needs a function nowhere, which this process"):
        Library(object_file(caller.format("nowhere")))
    assert Library(object_file(caller.format("labs"))).function("call", c_int64, c_int64)(-3) == 3


def test_names_that_an_object_defines_and_needs():
    code = object_file("declare double @fmod(double, double)\n"
                       "define internal i64 @own(i64 %x) noinline { ret i64 %x }\n"
                       "define double @rest(double %x) { %y = call double @fmod(double %x, "
                       "double 3.0)\n ret double %y }")
    assert names_of(code) == ({"rest"}, {"fmod"})
    assert names_of(b"MZ something else") == (set(), set())


@pytest.mark.parametrize("name", TARGETS)
def test_an_object_is_for_the_machine_that_was_asked_for(name):
    code = object_file(TEXT, target(name))
    assert code[:4] == b"\x7fELF"
    assert code[4] == TARGETS[name].word_bits // 32
    assert int.from_bytes(code[18:20], "little") == MACHINES[name]


def test_floats_are_instructions_where_there_are_some_and_calls_where_not():
    assert "vadd.f32\ts" in assembly(TEXT, target("armv7-neon"))
    assert "__addsf3" in assembly(TEXT, target("rv32im"))


def test_every_target_is_described_by_itself():
    assert len({describe_target(each) for each in (*TARGETS.values(), host())}) == len(TARGETS) + 1


def test_an_unknown_processor_is_refused_with_those_that_are_known():
    with pytest.raises(MicrotronError, match="no processor 'z80'; there are x86-64, aarch64"):
        target("z80")


def test_vectors_hold_at_least_one_number():
    assert [target(name).lanes(4) for name in ("x86-64", "aarch64", "rv32im")] == [8, 4, 1]
