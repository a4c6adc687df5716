"""The commands for networks: model files, images of models and programs alike."""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import microtron
from microtron.base.cache import CODE, cache_folder
from microtron.compiler.graph.evaluate_graph import evaluate
from microtron.compiler.passes.pipeline import PASSES
from microtron.isa.image import program_image
from microtron.sim.simulate import simulate

from ..command import bad, command, good
from ..compiler.frontends.onnx.onnx_models import graph_model
from ..runtime.small_model import image, small_graph


def onnx_model(rows=1):
    """x (rows, 8) × weights, as QLinearMatMul, and a softmax that the CPU computes."""
    rng = np.random.default_rng(2)
    constants = {"s": np.float32(0.1), "z": np.int8(2), "t": np.float32(0.2),
                 "zero": np.int8(0), "u": np.float32(0.4),
                 "w": rng.integers(-9, 9, (8, 4)).astype(np.int8)}
    nodes = [helper.make_node("QLinearMatMul", ["x", "s", "z", "w", "t", "zero", "u", "z"], ["y"],
                              "product"),
             helper.make_node("DequantizeLinear", ["y", "u", "z"], ["r"], "real"),
             helper.make_node("Softmax", ["r"], ["p"], "softmax")]
    return graph_model(nodes, [helper.make_tensor_value_info("x", onnx.TensorProto.INT8,
                                                             (rows, 8))], ["p"],
                       [numpy_helper.from_array(np.asarray(array), name)
                        for name, array in constants.items()])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model file, an image of a model with two programs, one of a program, and inputs."""
    folder = tmp_path_factory.mktemp("models")
    onnx.save(onnx_model(), folder / "product.onnx")
    onnx.save(onnx_model("n"), folder / "open.onnx")
    model = microtron.compile(small_graph(), "tiny")
    model.save(folder / "small.mt")
    program_image.save(model.programs[0], folder / "program.mt")
    np.save(folder / "x.npy", np.arange(8, dtype=np.int8).reshape(1, 8))
    np.save(folder / "image.npy", image())
    np.save(folder / "real.npy", (image().astype(np.float32) - 3) * 0.5)
    np.save(folder / "short.npy", image()[0])
    np.save(folder / "wide.npy", image().astype(np.int32))
    return folder


def test_a_model_file_is_compiled_into_an_image(files, tmp_path):
    text = good("compile", files / "product.onnx", "-o", tmp_path / "p.mt", "--config", "tiny")
    assert text == (f"{tmp_path / 'p.mt'}: 1 program; 2 of 3 nodes run on the CPU; for the "
                    f"reasons, microtron inspect {tmp_path / 'p.mt'}\n")
    model = microtron.load(tmp_path / "p.mt")
    assert model.provenance["model"] == "product.onnx"
    assert len(model.provenance["sha256"]) == 64


def test_a_network_that_was_compiled_before_needs_little_of_the_compiler(files, tmp_path):
    script = ("import sys\n"
              "from microtron.cli.main import main\n"
              "try:\n"
              "    main()\n"
              "except SystemExit as stop:\n"
              "    assert not stop.code, stop.code\n"
              "print(*sys.modules, file=sys.stderr)\n")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / CODE.part).symlink_to(cache_folder(CODE.part))     # not to compile the simulators anew
    again = [subprocess.run(
        [sys.executable, "-c", script, "compile", str(files / "product.onnx"), "--config", "tiny",
         "-o", str(tmp_path / "p.mt")], capture_output=True, text=True, check=True,
        env={**os.environ, "MICROTRON_CACHE": str(cache), "MICROTRON_ANEW": ""}).stderr.split()
        for _ in range(2)]
    unused = {"microtron.compiler.accelerator.emission.emit",
              "microtron.compiler.accelerator.lower_schedule", "microtron.compiler.schedule.lower"}
    assert unused <= set(again[0])
    assert not {*unused, "rich.console", "numba", "llvmlite"} & set(again[1])


def test_an_image_lies_beside_its_model_unless_told_otherwise(files, tmp_path):
    (tmp_path / "m.onnx").write_bytes((files / "product.onnx").read_bytes())
    good("compile", tmp_path / "m.onnx", "--config", "tiny")
    assert microtron.load(tmp_path / "m.mt").config == microtron.load(files / "small.mt").config


def test_what_happens_on_the_way_can_be_shown(files, tmp_path):
    text = good("compile", files / "product.onnx", "--config", "tiny", "--show",
                "graph,passes,placement,plan", cwd=tmp_path)
    assert not list(tmp_path.iterdir())
    assert not (files / "product.mt").exists()
    for part in ("graph:\nx: int8[1, 8]", "after fold_constants: ", "placement:\n",
                 "cpu          softmax               softmax  no exponential in the ALU",
                 "plan:\nstep 0: "):
        assert part in text


def test_the_graph_after_each_pass_is_written_as_onnx(files, tmp_path):
    good("compile", files / "product.onnx", "--config", "tiny", "--dump-passes", "new/passes",
         "-o", "m.mt", cwd=tmp_path)
    dumped = sorted((tmp_path / "new" / "passes").glob("*.onnx"))
    assert len(dumped) == len(PASSES) + 1
    for path in dumped:
        assert [each.op_type for each in onnx.load(path).graph.node] == [
            "MatMul", "Dequantize", "Softmax"]


def test_the_graphs_are_written_if_the_network_is_refused(files, tmp_path):
    assert "softmax" in bad("compile", files / "product.onnx", "--require-accelerator",
                            "--config", "tiny", "--dump-passes", "passes", cwd=tmp_path)
    assert len(list((tmp_path / "passes").glob("*.onnx"))) == len(PASSES) + 1


def test_open_shapes_are_given(files, tmp_path):
    good("compile", files / "open.onnx", "--config", "tiny", "--shape", "x=3,8", "-o",
         tmp_path / "m.mt")
    assert microtron.load(tmp_path / "m.mt").inputs["x"].shape == (3, 8)


@pytest.mark.parametrize("device", ["functional", "cycle"])
def test_a_model_runs_with_files(files, tmp_path, device):
    good("run", files / "small.mt", "-i", f"image={files / 'image.npy'}", "-o",
         f"real={tmp_path / 'real.npy'}", "-o", f"conv={tmp_path / 'conv.npy'}", "--device", device)
    right = evaluate(small_graph(), {"image": image()})
    assert np.array_equal(np.load(tmp_path / "real.npy"), right["real"])
    assert np.array_equal(np.load(tmp_path / "conv.npy"), right["conv"])
    good("run", files / "small.mt", "-i", files / "real.npy", "-o",
         f"conv={tmp_path / 'again.npy'}", "--device", device)
    assert np.array_equal(np.load(tmp_path / "again.npy"), right["conv"])


def test_a_model_file_runs_at_once(files, tmp_path):
    text = good("run", files / "product.onnx", "--config", "tiny", "-i", files / "x.npy", "-o",
                tmp_path / "p.npy")
    assert np.load(tmp_path / "p.npy").sum() == pytest.approx(1)
    assert "1 node: no exponential in the ALU" in text
    assert "cycles" in text


def test_nan_is_refused_unless_allowed(files, tmp_path):
    onnx.save(graph_model([helper.make_node("Neg", ["x"], ["y"])], [helper.make_tensor_value_info(
        "x", onnx.TensorProto.FLOAT, (2, 2))], ["y"], []), tmp_path / "negated.onnx")
    x = np.array([[1, 2], [np.nan, 4]], np.float32)
    np.save(tmp_path / "x.npy", x)
    arguments = ("run", tmp_path / "negated.onnx", "-i", tmp_path / "x.npy",
                 "-o", tmp_path / "y.npy", "--device", "functional")
    assert "input x holds NaN at [1, 0], 1 of 4 numbers" in bad(*arguments)
    good(*arguments, "--allow-nan")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), -x)
    assert "--allow-nan is for networks" in bad("run", files / "program.mt", "--allow-nan")


def test_a_run_tells_scripts_what_ran_where(files):
    found = json.loads(good("run", files / "small.mt", "-i", files / "image.npy", "--json"))
    model = microtron.load(files / "small.mt")
    assert found["device"] == "cycle"
    assert found["cycles"] == sum(simulate(each).cycles for each in model.programs)
    assert [each["cycles"] for each in found["programs"]] == [
        simulate(each).cycles for each in model.programs]
    assert [each["where"] for each in found["nodes"]].count("cpu") == 2


def test_layers_add_up_to_the_whole(files):
    found = json.loads(good("inspect", files / "small.mt", "--json"))
    model = microtron.load(files / "small.mt")
    assert found["totals"]["cycles"] == sum(simulate(each).cycles for each in model.programs)
    layers = [each for each in found["layers"] if each["cycles"] is not None]
    assert [each["name"] for each in layers] == ["conv", "sum", "dense"]
    for step, program in ((0, model.programs[0]), (2, model.programs[1])):
        mine = [each for each in layers if each["step"] == step]
        assert sum(each["cycles"] for each in mine) == simulate(program).cycles
        assert sum(each["bytes"] for each in mine) == simulate(program).bytes
        assert sum(each["instructions"] for each in mine) == len(program.code)
    assert all(each["cycles"] > 0 and each["bound"] > 0 for each in layers)
    assert found["totals"]["cpu_nodes"] == 2
    assert found["totals"]["peak_memory"] <= found["totals"]["tensor_memory"]


def test_layers_are_a_table_for_people_and_for_spreadsheets(files):
    text = good("inspect", files / "small.mt", columns=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    for part in ("1 node: no table of values in the ALU", "1 node: real arithmetic runs on the CPU",
                 "end to end", "without reuse"):
        assert part in " ".join(text.split()), part
    said = good("inspect", files / "small.mt", "--table", files / "layers.csv")
    assert f"{files / 'layers.csv'}: " in said
    with (files / "layers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    (files / "layers.csv").unlink()
    assert [each["name"] for each in rows if each["where"] != "hand-over"] == [
        "conv", "sum", "table_of", "flat", "dense", "real"]
    assert rows[2]["reason"] == "no table of values in the ALU"
    assert int(rows[0]["macs"]) == 128


def test_every_program_of_a_model_is_profiled_verified_and_printed(files):
    assert len(json.loads(good("profile", files / "small.mt", "--json"))["programs"]) == 2
    assert "program 2 of 2" in good("profile", files / "small.mt")
    lines = good("verify", files / "small.mt").splitlines()
    assert [": safe: " in line for line in lines] == [True, True]
    verdict = json.loads(good("verify", files / "small.mt", "--json"))
    assert verdict["safe"] is True
    assert len(verdict["programs"]) == 2
    text = good("disasm", files / "small.mt")
    assert text.count(".config") == 2
    assert "; program 2 of 2\n" in text
    one = good("disasm", files / "product.onnx", "--config", "tiny")
    assert one.count(".config") == 1


def test_programs_are_taken_as_before(files):
    assert good("verify", files / "program.mt").count(": safe: ") == 1
    assert "bytes loaded" in good("run", files / "program.mt")
    assert good("disasm", files / "program.mt").count(".config") == 1


def test_memory_is_as_told(files):
    plain, slow = (json.loads(good("inspect", files / "small.mt", "--json", *more))["totals"]
                   for more in ((), ("--memory", "read_latency=500")))
    assert slow["cycles"] > plain["cycles"] + 400


def test_a_trace_shows_all_programs_and_the_cpu(files, tmp_path):
    good("run", files / "small.mt", "-i", files / "image.npy", "--trace", tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = {each["name"] for each in events if each["ph"] == "X"}
    assert {"program 1", "program 2", "CONV 0", "TABLE 2", "DENSE 3", "gemm"} <= names
    assert "--waveform shows one program, but" in bad(
        "run", files / "small.mt", "-i", files / "image.npy", "--device", "rtl", "--waveform",
        tmp_path / "u.fst")
    assert "columns are of one program" in bad(
        "run", files / "small.mt", "-i", files / "image.npy", "--trace", tmp_path / "u.npz")


def test_columns_of_a_network_with_one_program_are_those_of_the_program(files, tmp_path):
    good("run", files / "product.onnx", "--config", "tiny", "-i", files / "x.npy", "--trace",
         tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as columns:
        assert columns["end"].max() > 0


@pytest.mark.parametrize(("arguments", "message"), [
    (("compile", "nothing.onnx"), "nothing.onnx: No such file"),
    (("compile", "program.mt"), "program.mt: not a network but an image of a program"),
    (("compile", "small.mt"), "small.mt was compiled already; microtron inspect shows it"),
    (("compile", "small.mt", "--dump-passes", "passes"), "small.mt was compiled already"),
    (("compile", "product.onnx", "--dump-passes", "small.mt"), "small.mt: the folder cannot be"),
    (("compile", "product.onnx", "--show", "all"), "--show: there is no 'all'; there are graph"),
    (("compile", "product.onnx", "--config", "huge"), "configuration 'huge' is neither a preset"),
    (("compile", "product.onnx", "--shape", "x"), "--shape 'x' must be an input and whole numbers"),
    (("compile", "product.onnx", "--shape", "x=1,b"), "--shape 'x=1,b' must be an input and"),
    (("compile", "product.onnx", "--shape", "x=1", "--shape", "x=2"), "--shape names the input"),
    (("compile", "product.onnx", "--config", "tiny", "--require-accelerator"),
     "the accelerator does not take 2 of 3 nodes: 1 for: real arithmetic runs on the CPU, as real "
     "(dequantize); 1 for: no exponential in the ALU, as softmax (softmax)"),
    (("compile", "product.onnx", "--config", "tiny", "-o", "/nowhere/x.mt"), "/nowhere/x.mt"),
    (("compile", "open.onnx", "--config", "tiny"), "open.onnx"),
    (("inspect", "program.mt"), "program.mt: not a network but an image of a program"),
    (("inspect", "small.mt", "--config", "tiny"), "--config is for .tflite and .onnx files; small"),
    (("inspect", "small.mt", "--table", "layers.txt"), "layers.txt must end with .parquet, .csv"),
    (("inspect", "small.mt", "--table", "no/layers.csv"), "there is no folder"),
    (("run", "small.mt", "-i", "image.npy", "-o", "real=a.csv", "--table", "a.csv"), "a.csv is to "
     "receive two results"),
    (("inspect", "small.mt", "--limit", "10"), "10"),
    (("run", "program.mt", "--shape", "x=1"), "--shape is for .tflite and .onnx files; program.mt"),
    (("verify", "program.mt", "--config", "tiny"), "--config is for .tflite and .onnx files"),
    (("run", "small.mt"), "the input image (int8[1, 3, 3, 2]) is not given"),
    (("run", "small.mt", "-i", "other=image.npy"), "--input: there is no input other; the model "
                                                   "has image"),
    (("run", "small.mt", "-i", "imgae=image.npy"), "there is no input imgae; the model has image; "
                                                   "did you mean image?"),
    (("run", "small.mt", "-i", "image.npy", "-o", "rael=a.npy"), "--output: there is no output "
     "rael; the model has real, conv; did you mean real?"),
    (("run", "program.mt", "--clock", "5"), "--clock is for networks, but program.mt is a program"),
    (("profile", "program.mt", "--all"), "--all is for networks, but program.mt is a program"),
    (("run", "small.mt", "-i", "short.npy"), "short.npy: holds int8 of shape (3, 3, 2), but input"),
    (("run", "small.mt", "-i", "wide.npy"), "wide.npy: holds int32 of shape (1, 3, 3, 2), but "
                                            "input image is int8 or float32 or float64 or float16"),
    (("run", "small.mt", "-i", "image.npy", "-i", "image.npy"), "names the tensor image twice"),
    (("run", "small.mt", "-i", "image.npy", "-o", "out.npy"), "--output out.npy must be a tensor "
     "and a file, as in real=output.npy; the model has real, conv"),
    (("run", "small.mt", "-i", "image.npy", "-o", "real=a.npy", "-o", "conv=a.npy"), "a.npy is to "
     "receive two results"),
    (("run", "small.mt", "-i", "image.npy", "--device", "gpu"), "there is no device 'gpu'"),
    (("run", "small.mt", "-i", "image.npy", "--seed", "3"), "--seed is for the functional device"),
], ids=lambda each: " ".join(each)[:40] if isinstance(each, tuple) else "")
def test_misuse_is_refused_in_one_line(files, arguments, message):
    before = sorted(files.iterdir())
    assert message in bad(*arguments, cwd=files)
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize("arguments", [
    ("verify",), ("disasm",), ("profile", "--limit", "20000", "--json"),
    ("inspect", "--limit", "20000"), ("inspect", "--limit", "20000", "--json"),
    ("run", "--limit", "20000", "-i", "image=image.npy", "--device", "functional"),
], ids=" ".join)
def test_damaged_images_end_in_one_line(files, tmp_path, arguments):
    content = (files / "small.mt").read_bytes()
    (tmp_path / "image.npy").write_bytes((files / "image.npy").read_bytes())
    for seed in range(25):
        rng = random.Random(f"{arguments} {seed}")
        data = bytearray(content[:rng.choice((len(content), rng.randrange(len(content))))])
        for _ in range(rng.choice((1, 1, 4))):
            first = rng.randrange(max(len(data), 1))
            data[first:first + 1] = bytes([(data[first] if data else 0) ^ 1 << rng.randrange(8)])
        (tmp_path / "m.mt").write_bytes(bytes(data))
        ended = command(arguments[0], "m.mt", *arguments[1:], cwd=tmp_path)
        assert ended.code == 2, ended
        assert ended.error.count("\n") == 1


def test_objects_for_a_processor(files, tmp_path):
    """From a model file, with an image beside it, and from an image."""
    good("compile", "product.onnx", "--config", "tiny", "-o", tmp_path / "p.mt", "--cpu", "rv32im",
         "--emit-objects", tmp_path / "one", cwd=files)
    told = json.loads(good("compile", tmp_path / "p.mt", "--cpu", "rv32im", "--emit-objects",
                           tmp_path / "two", "--json", cwd=files))
    names = {path.name for path in (tmp_path / "one").iterdir() if path.name[0] != "."}
    assert {"microtron_network.h", "product_onnx.h", "product_onnx.c"} < names
    assert {path.rsplit("/")[-1] for path in told["objects"]} == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_objects_are_not_written_over_what_somebody_else_wrote(files, tmp_path):
    def emit(*more):
        return ("compile", files / "small.mt", "--cpu", "rv32im", "--emit-objects", tmp_path, *more)

    (tmp_path / "small.c").write_text("mine")
    (tmp_path / "other.c").write_text("mine")
    assert f"{tmp_path}: small.c would be written over, though written or changed by" in bad(
        *emit())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.c", "small.c"]
    assert (tmp_path / "small.c").read_text() == "mine"
    good(*emit("--force"))
    written = (tmp_path / "small.c").read_text()
    assert written != "mine"
    (tmp_path / "small.h").unlink()
    good(*emit())                       # ours: written again
    (tmp_path / "small.c").write_text(written + "/* changed */")
    assert "small.c would be written over" in bad(*emit())
    (tmp_path / ".microtron_objects").write_text("{")       # nobody knows any more
    assert "small.c would be written over" in bad(*emit())
    assert (tmp_path / "other.c").read_text() == "mine"


@pytest.mark.parametrize(("arguments", "said"), [
    (("--cpu", "rv32im"), "--cpu and --emit-objects go together"),
    (("--emit-objects", "objects"), "--cpu and --emit-objects go together"),
    (("--cpu", "rv31", "--emit-objects", "objects"), "there is no processor 'rv31'; there are"),
    (("--cpu", "rv32im", "--emit-objects", "product.onnx"), "product.onnx: no such folder"),
])
def test_objects_that_cannot_be_written(files, arguments, said):
    error = bad("compile", "product.onnx", "--config", "tiny", "--show", "plan", *arguments,
                cwd=files)
    assert said in error
    assert not (files / "objects").exists()
