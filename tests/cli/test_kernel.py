"""`microtron kernel`: what it prints of a compiled operator, and what it refuses."""

import json
from dataclasses import MISSING, fields
from itertools import pairwise

import pytest

import microtron
from microtron.cli.main import main
from microtron.compiler.operators.catalogue import OPERATORS
from microtron.compiler.operators.convolution.conv2d import Conv2d
from microtron.isa.assembly.disassembler import disassemble
from microtron.isa.config import base, tiny
from microtron.isa.image import program_image
from microtron.isa.instructions import Sync, SyncAction
from microtron.isa.stream import decode
from microtron.isa.verification.verifier import verify

SMALL = ("conv2d", "--height", "9", "--width", "8", "--channels-in", "10", "--channels-out", "12",
         "--pad", "1", "--config", "tiny")
SIZES = {"height": 5, "width": 6, "channels-in": 4, "channels-out": 4}
REQUIRED = {
    "conv2d": SIZES, "depthwise": SIZES, "grouped": SIZES | {"groups": 2}, "transposed": SIZES,
    "residual_conv2d": SIZES, "averaged_conv2d": SIZES,
    "separable": SIZES, "conv_separable": SIZES,
    "upsample": {"height": 5, "width": 6, "channels": 4},
    "dense": {"rows": 3, "inputs": 10, "outputs": 6},
    "pool": {"kind": "max", "height": 5, "width": 6, "channels": 4, "kernel": 2},
    "elementwise": {"operation": "add", "channels": 4},
    "broadcast": {"operation": "mul", "channels": 4},
}
IMAGE = ("conv2d", "--height", 32, "--width", 32, "--channels-in", 3, "--channels-out", 16,
         "--pad", 1)


@pytest.fixture
def kernel(capsys):
    """The command: what it prints, if all goes well."""
    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["kernel", *map(str, arguments)])
        out, error = capsys.readouterr()
        assert not stop.value.code, error
        return out
    return call


@pytest.fixture
def refused(capsys):
    """The command: its one line of complaint."""
    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["kernel", *map(str, arguments)])
        out, error = capsys.readouterr()
        assert stop.value.code == 2
        assert not out
        assert error.startswith("microtron: ")
        assert error.count("\n") == 1
        return error
    return call


def options(given):
    return [part for name, value in given.items() for part in (f"--{name}", value)]


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_every_operator_is_compiled_from_its_required_options(kernel, operator):
    given = REQUIRED[operator.name]
    assert set(given) == {each.name.replace("_", "-") for each in fields(operator.description)
                          if each.default is MISSING}
    found = json.loads(kernel(operator.name, *options(given), "--config", "tiny", "--json"))
    assert (found["operator"], found["config"]) == (operator.name, "tiny")
    assert set(found["bounds"]) == {"macs", "memory", "alu"}
    assert found["bound"] == found["bounds"][found["limit"]] == max(found["bounds"].values())
    assert 0 < found["efficiency"] == found["bound"] / found["cycles"] <= 1
    assert found["utilization"] == found["macs"] / (found["cycles"] * tiny.macs_per_cycle)
    assert found["instructions"] > 0
    plain = {name.replace("-", "_"): value for name, value in given.items()}
    assert operator.description(**found["spec"]) == operator.description(**plain)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_every_field_of_a_description_is_an_option(kernel, operator):
    text = kernel(operator.name, "--help")
    for each in fields(operator.description):
        assert f"--{each.name.replace('_', '-')} " in text
        assert each.metadata["doc"].split()[-1].lower() in text.lower()


@pytest.mark.parametrize(("operator", "given", "right"), [
    ("dense", ("--matrices", 2, "--no-constant-weights", "--layout", "blocks"),
     {"matrices": 2, "constant_weights": False, "layout": "blocks"}),
    ("pool", ("--kind", "Average", "--count-include-pad", "--scale-in", "0.5", "--stride", "1,2"),
     {"kind": "average", "count_include_pad": True, "scale_in": 0.5, "stride": [1, 2]}),
    ("transposed", ("--output-padding", "1,0", "--stride", 3, "--low", -5),
     {"output_padding": [1, 0], "stride": [3, 3], "low": -5}),
])
def test_flags_names_and_numbers_are_given_as_they_are_written(kernel, operator, given, right):
    found = json.loads(kernel(operator, *options(REQUIRED[operator]), *given, "--config", "tiny",
                              "--json"))["spec"]
    assert {name: found[name] for name in right} == right


def test_a_first_layer_is_packed_as_the_compiler_packs_it(kernel):
    found = json.loads(kernel(*IMAGE, "--json"))
    made = microtron.compile_op(Conv2d(height=32, width=32, channels_in=3, channels_out=16, pad=1),
                                base)
    assert found["form"] == made.form.note
    assert "the host packs 5 × 1 pixels" in found["form"]
    assert found["cycles"] == microtron.simulate(made.program).cycles
    assert found["form"] in kernel(*IMAGE, "--show", "schedule")


def test_knobs_of_a_packed_image_keep_its_patches(kernel):
    found = json.loads(kernel(*IMAGE, "--knobs", "rows=4", "--json"))
    assert found["knobs"]["rows"] == 4
    assert "the host packs 5 × 1 pixels" in found["form"]


def test_every_phase_of_a_transposed_convolution_has_its_line(kernel):
    text = kernel("transposed", *options(SIZES), "--config", "tiny", "--show", "schedule")
    assert [line.strip().partition(" blocks=")[0] for line in text.splitlines()[:4]] == [
        "schedule: part 0:", "part 1:", "part 2:", "part 3:"]
    assert "a convolution for each of 4 phases" in text


def test_all_parts_are_shown_in_their_order(kernel):
    text = kernel(*SMALL)
    starts = [text.index(part) for part in ("schedule: blocks=", "\nnest:", "\nstream: ",
                                            "\ncycles: ")]
    assert starts == sorted(starts)
    assert text.startswith("schedule: ")
    assert "output: int8[1, 3, 9, 8, 1, 4] in dram, result" in text
    assert "gemm(sums[" in text


@pytest.mark.parametrize("part", ["schedule", "nest", "stream", "cycles"])
def test_one_part_alone_is_one_part_alone(kernel, part):
    text = kernel(*SMALL, "--show", part)
    assert text.startswith(f"{part}:")
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        text.splitlines()[0]]


def test_parts_are_shown_in_their_own_order_whatever_was_asked(kernel):
    text = kernel(*SMALL, "--show", "cycles,schedule")
    assert text.index("schedule:") < text.index("cycles:")
    assert "nest:" not in text


def test_a_long_stream_is_cut_and_says_so(kernel, tmp_path):
    text = kernel(*SMALL, "--show", "stream", "-o", tmp_path / "conv.mt")
    program = program_image.load(tmp_path / "conv.mt")
    assert f"stream: {len(program.code)} instructions" in text
    assert f"and {len(program.code) - 40} more; --all shows them" in text
    assert len(text.splitlines()) == 1 + 40 + 1
    everything = kernel(*SMALL, "--show", "stream", "--all").splitlines()
    assert len(everything) == 1 + len(program.code)
    assert everything[-1].split() == [str(len(program.code) - 1), "sync.end"]
    listed = [line.partition(";")[0].split() for line in disassemble(program).splitlines()]
    assert [line.split()[1:] for line in everything[1:]] == listed[-len(program.code):]


def test_the_image_that_is_written_is_safe_and_for_that_configuration(kernel, tmp_path):
    kernel(*SMALL, "-o", tmp_path / "conv.mt")
    program = program_image.load(tmp_path / "conv.mt")
    verify(program)
    assert program.config == tiny
    assert program.tensor("output").shape == (1, 3, 9, 8, 1, 4)


def test_knobs_replace_those_that_are_named_and_no_others(kernel):
    before = json.loads(kernel(*SMALL, "--json"))["knobs"]
    after = json.loads(kernel(*SMALL, "--knobs", "rows=2,columns=3", "--json"))["knobs"]
    assert before != after
    assert after == {**before, "rows": 2, "columns": 3}
    assert "rows=2 columns=3" in kernel(*SMALL, "--knobs", "rows=2,columns=3", "--show", "schedule")


def test_without_latency_hiding_engines_take_turns_and_it_takes_longer(kernel, tmp_path):
    hidden = json.loads(kernel(*SMALL, "--json"))
    serial = json.loads(kernel(*SMALL, "--no-latency-hiding", "--json", "-o", tmp_path / "t.mt"))
    assert serial["cycles"] > 1.2 * hidden["cycles"]
    assert serial["efficiency"] < hidden["efficiency"]
    code = decode(program_image.load(tmp_path / "t.mt").code)
    pairs = [(one, other) for one, other in pairwise(code)
             if not isinstance(one, Sync) and not isinstance(other, Sync)]
    assert any(isinstance(each, Sync) and each.action == SyncAction.BARRIER for each in code)
    assert all(one.engine == other.engine for one, other in pairs)


def test_cost_and_bound_of_a_layer_of_resnet_18(kernel):
    """Figures by hand: 28² × 128 × 64 products, of 28² used pixels; 256 products a cycle."""
    found = json.loads(kernel("conv2d", "--height", 56, "--width", 56, "--channels-in", 64,
                              "--channels-out", 128, "--kernel", 1, "--stride", 2, "--json"))
    assert found["config"] == "base"
    assert found["macs"] == 28 * 28 * 128 * 64
    assert found["bytes"] == 28 * 28 * 64 + 64 * 128 + 28 * 28 * 128
    assert found["bound"] == found["macs"] / base.macs_per_cycle
    assert found["limit"] == "macs"
    assert found["efficiency"] == found["bound"] / found["cycles"]
    assert 0.5 < found["efficiency"] < 1


def test_slower_memory_takes_longer(kernel):
    assert json.loads(kernel(*SMALL, "--json", "--memory", "cycles_per_beat=8"))["cycles"] > (
        json.loads(kernel(*SMALL, "--json"))["cycles"])


def test_sizes_and_borders_can_differ_by_side(kernel):
    spec = json.loads(kernel(*SMALL, "--kernel", "2,3", "--stride", "1,2", "--dilation", "2,1",
                             "--pad", "0,1,2,3", "--images", 3, "--json"))["spec"]
    assert (spec["kernel"], spec["stride"], spec["dilation"], spec["pad"], spec["images"]) == (
        [2, 3], [1, 2], [2, 1], [0, 1, 2, 3], 3)


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "Missing command."),
    (("conv3d",), "No such command 'conv3d'."),
    (("conv2d", "--height", 3), "Missing option '--width'."),
    ((*SMALL, "--show", "nest,tree"), "there is no 'tree'; there are schedule, nest, stream"),
    ((*SMALL, "--knobs", "rows"), "'rows' must be one of blocks, rows, columns, depth"),
    ((*SMALL, "--knobs", "rows=0"), "conv2d: knob rows is 0, but must be from 1 to 9"),
    ((*SMALL, "--knobs", "rows=-1"), "conv2d: knob rows is -1, but must be from 1 to 9"),
    ((*SMALL, "--knobs", "rows=10"), "conv2d: knob rows is 10, but must be from 1 to 9"),
    ((*SMALL, "--knobs", "one_by_one=2"), "knob one_by_one is 2, but must be True or False"),
    ((*SMALL, "--knobs", "lines=2"), "'lines=2' must be one of blocks, rows, columns, depth"),
    ((*SMALL, "--knobs", "rows=2,rows=2"), "'rows=2' must be one of blocks, rows, columns, depth"),
    ((*SMALL, "--height", "90", "--knobs", "rows=90,columns=8"), "sums does not fit in acc: "),
    (("transposed", *options(SIZES), "--config", "tiny", "--knobs", "rows=2"),
     "--knobs: this operator has several parts, each with its own; none can be given"),
    ((*SMALL, "--knobs", f"rows={'9' * 5000}"), "--knobs: 'rows=9999999999999999999999999999999"),
    ((*SMALL, "--knobs", "9" * 5000), "' must be one of blocks, rows, columns, depth"),
    ((*SMALL, "--height", "9" * 5000), "--height is 99999999999999999999…, which is too long"),
    ((*SMALL, "--pad", f"1,{'9' * 5000},1,1"), "--pad is 99999999999999999999…, which is too"),
    ((*SMALL, "--kernel", "3,3,3"), "kernel is (3, 3, 3), but must be one number or 2: rows and"),
    ((*SMALL, "--pad", "1,2"), "pad is (1, 2), but must be one number or 4: top, bottom, left"),
    ((*SMALL, "--pad", "-1"), "conv2d: pad is -1, but must be a whole number from 0 to 65536"),
    ((*SMALL, "--stride", "0"), "conv2d: stride is 0, but must be a whole number from 1 to 65536"),
    ((*SMALL, "--stride", "1,0"), "stride is (1, 0), but must be whole numbers from 1 to 65536"),
    ((*SMALL, "--height", "0"), "conv2d: height is 0, but must be a whole number from 1 to 65536"),
    ((*SMALL, "--height", "65537"), "height is 65537, but must be a whole number from 1 to 65536"),
    ((*SMALL, "--height", "9.0"), "height is 9.0, but must be a whole number from 1 to 65536"),
    ((*SMALL, "--height", "nine"), "height is 'nine', but must be a whole number from 1 to 65536"),
    ((*SMALL, "--height", ""), "height is '', but must be a whole number from 1 to 65536"),
    ((*SMALL, "--rounding", "odd"), "rounding is 'odd', but must be one of twice, even, away"),
    ((*SMALL, "--rounding", "1"), "rounding is 1, but must be one of twice, even, away"),
    ((*SMALL, "--low", "20", "--high", "10"), "low is 20, but must be at most high, which is 10"),
    (("pool", *options(REQUIRED["pool"]), "--scale-in", "0"), "scale_in is 0, but must be a posit"),
    (("pool", *options(REQUIRED["pool"]), "--scale-in", "inf"), "scale_in is inf, but must be a "),
    ((*SMALL, "--kernel", "20"), "the kernel reaches over 20 × 20, more than the padded input"),
    ((*SMALL, "--config", "huge"), "huge"),
    ((*SMALL, "--memory", "speed=1"), "speed"),
])
def test_what_cannot_be_compiled_is_refused_in_a_line(refused, arguments, message):
    assert message in refused(*arguments)
