"""The command line as a user meets it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer

from microtron.cli.main import app
from microtron.cli.parsing.help import GROUPS

from ..command import bad, command, good

EXAMPLE = Path(__file__).parents[2] / "examples" / "matmul.asm"


def test_assemble_verify_run_and_disassemble(tmp_path):
    image, text = tmp_path / "matmul.mt", tmp_path / "again.asm"
    assert "20 instructions" in good("asm", EXAMPLE, "-o", image)
    assert "safe: 20 instructions" in good("verify", image)
    good("disasm", image, "-o", text)
    good("asm", text, "-o", tmp_path / "again.mt")
    assert (tmp_path / "again.mt").read_bytes() == image.read_bytes()
    a = np.random.default_rng(0).integers(-128, 128, (128, 64), np.int8)
    params = np.zeros((4, 3, 16), np.int32)
    params[:, 1], params[:, 2] = 1 << 30, 30
    eye = np.zeros((4, 4, 16, 16), np.int8)
    for block in range(4):
        eye[block, block] = np.eye(16, dtype=np.int8)
    for name, array in (("a", a), ("b", eye), ("params", params)):
        np.save(tmp_path / f"{name}.npy", array)
    inputs = [part for name in ("a", "b", "params")
              for part in ("-i", f"{name}={tmp_path / name}.npy")]
    table = good("run", image, *inputs, "-o", f"c={tmp_path / 'c.npy'}", "--seed", 3)
    assert "2,048" in table
    assert np.array_equal(np.load(tmp_path / "c.npy"), a)


def test_tokens_can_be_derived_while_assembling(tmp_path):
    good("asm", EXAMPLE, "--tokens", "-o", tmp_path / "derived.mt")
    assert "safe" in good("verify", tmp_path / "derived.mt")


def test_scripts_get_json(tmp_path):
    assert json.loads(good("verify", EXAMPLE, "--json"))["safe"] is True
    assert json.loads(good("run", EXAMPLE, "--json"))["counts"]["macs"] == 524288
    assert json.loads(good("config", "tiny", "--json"))["tiny"]["block_in"] == 4


def test_the_cycle_device_runs_with_data_and_writes_traces(tmp_path):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "a.npy", rng.integers(-128, 128, (128, 64), np.int8))
    np.save(tmp_path / "b.npy", rng.integers(-128, 128, (4, 4, 16, 16), np.int8))
    inputs = ["-i", f"a={tmp_path / 'a.npy'}", "-i", f"b={tmp_path / 'b.npy'}"]
    for device, *options in (["functional"], ["cycle", "--trace", tmp_path / "trace.json"],
                             ["cycle", "--trace", tmp_path / "trace.npz"]):
        good("run", EXAMPLE, *inputs, "--device", device, *options,
             "-o", f"c={tmp_path / device}.npy")
    assert np.array_equal(np.load(tmp_path / "cycle.npy"), np.load(tmp_path / "functional.npy"))
    slices = [event for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
              if event["ph"] == "X"]
    with np.load(tmp_path / "trace.npz") as columns:
        assert len(slices) == len(columns["start"]) - 1 == 19


def test_a_profile_fits_on_one_screen_and_scripts_get_json():
    lines = good("profile", EXAMPLE).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120
    for words in ("cycles", "efficiency", "waiting for memory", "waiting for gemm",
                  "queue empty", "8,192 out", "Most expensive waits"):
        assert any(words in line for line in lines), words
    usual, slow = (json.loads(good("profile", EXAMPLE, "--json", *options))
                   for options in ((), ("--memory", "read_latency=100")))
    assert slow["cycles"] > usual["cycles"] > usual["roofline"]["bound"]
    assert len(usual["waits"]) == 5
    for wait in usual["waits"]:
        assert any(f"{wait['cycles']:,} │ {wait['position']} {wait['text'][:9]}" in line
                   for line in lines)


def test_an_unsafe_program_is_explained_and_refused(tmp_path):
    broken = tmp_path / "broken.asm"
    broken.write_text(EXAMPLE.read_text().replace("requantize wait=gemm|store", "requantize"))
    refused = command("verify", broken)
    assert refused.code == 2
    assert "no tokens put" in refused.error
    assert json.loads(command("verify", broken, "--json").out)["safe"] is False
    assert "no tokens put" in bad("run", broken)


def test_configurations_are_shown_saved_and_converted(tmp_path):
    assert "1×32×32" in good("config")
    good("config", "small", "-o", tmp_path / "mine.toml")
    assert "block_out = 8" in good("config", tmp_path / "mine.toml")
    vta = {"LOG_BATCH": 0, "LOG_BLOCK": 4, "LOG_INP_WIDTH": 3, "LOG_WGT_WIDTH": 3,
           "LOG_ACC_WIDTH": 5, "LOG_UOP_BUFF_SIZE": 15, "LOG_INP_BUFF_SIZE": 15,
           "LOG_WGT_BUFF_SIZE": 18, "LOG_ACC_BUFF_SIZE": 17, "TARGET": "sim"}
    (tmp_path / "vta_config.json").write_text(json.dumps(vta))
    assert good("config", tmp_path / "vta_config.json") == good("config", "base")


def test_the_instruction_set_explains_itself():
    assert "requantize" in good("isa")
    assert "three nested loops" in good("isa", "gemm")
    assert good("isa", "--header").startswith(("/*", "#", "//"))
    assert "gemm" in good("isa", "--manual")


@pytest.mark.parametrize(("arguments", "message"), [
    (("verify", "nowhere.mt"), "nowhere.mt"),
    (("verify", "nowhere.asm"), "nowhere.asm: cannot be read"),
    (("run", EXAMPLE, "--device", "abacus"), "there is no device 'abacus'"),
    (("run", EXAMPLE, "-i", "a"), "'a' must be a tensor and a file"),
    (("run", EXAMPLE, "-i", "z=z.npy"), "there is no tensor 'z'"),
    (("run", EXAMPLE, "-i", "a=none.npy"), "none.npy: cannot be read"),
    (("run", EXAMPLE, "-i", "a=a.npy", "-i", "a=b.npy"), "--input names the tensor 'a' twice"),
    (("run", EXAMPLE, "-o", "z=z.npy"), "there is no tensor 'z'"),
    (("run", EXAMPLE, "-o", "c=c.npy", "-o", "a=a.npy"),
     "tensor 'a' is no output: the accelerator may only read it; outputs are c"),
    (("run", EXAMPLE, "-o", "c=c.npy", "-o", "c=d.npy"), "--output names the tensor 'c' twice"),
    (("run", EXAMPLE, "--device", "cycle", "-o", "c=x.json", "--trace", "x.json"),
     "x.json is to receive two results"),
    (("run", EXAMPLE, "--seed", "1" * 5000), "--seed"),
    (("run", EXAMPLE, "--limit", "0"), "limit is 0, but must be an integer of 1 or more"),
    (("run", EXAMPLE, "--limit", "99"), "tile operations, but the limit is 99; it was not"),
    (("run", EXAMPLE, "--device", "cycle", "--limit", "99"), "cycles, but the limit is 99; it was"),
    (("run", EXAMPLE, "--device", "rtl", "--limit", "99"), "cycles, but the limit is 99; it was"),
    (("profile", EXAMPLE, "--limit", "99"), "cycles, but the limit is 99; it was not started"),
    (("profile", EXAMPLE, "--limit", "0"), "limit is 0"),
    (("compare", EXAMPLE, "--limit", "99"), "cycles, but the limit is 99; it was not started"),
    (("compare", EXAMPLE, "--limit", "0"), "limit is 0"),
    (("run", EXAMPLE, "--device", "functional", "--seed", "-1"), "-1"),
    (("run", EXAMPLE, "--memory", "reads=1"), "--memory is for the cycle or rtl device"),
    (("run", EXAMPLE, "--trace", "t.json"), "--trace is for the cycle or rtl device"),
    (("run", EXAMPLE, "--device", "cycle", "--trace", "t.txt"), "must end in .json or .npz"),
    (("run", EXAMPLE, "--device", "cycle", "--waveform", "w.vcd"), "--waveform is for the rtl"),
    (("run", EXAMPLE, "--device", "cycle", "--memory", "reads=0"), "reads is 0"),
    (("profile", EXAMPLE, "--memory", "speed=1"), "there is no 'speed'"),
    (("profile", "nowhere.mt"), "nowhere.mt"),
    (("run", EXAMPLE, "--device", "rtl", "--memory", "speed=1"), "there is no 'speed'"),
    (("run", EXAMPLE, "--device", "rtl", "--memory", "reads=0"), "reads is 0"),
    (("verilog", "--config", "odd"), "neither a preset"),
    (("config", "huge"), "neither a preset"),
    (("config", "-o", "x.toml"), "needs the name of one configuration"),
    (("isa", "gem"), "gemm"),
    (("frobnicate",), "frobnicate"),
    (("run",), "PROGRAM"),
])
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, arguments, message):
    assert message in bad(*arguments, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_image_is_refused(tmp_path):
    (tmp_path / "odd.mt").write_bytes(b"MZ" * 1000)
    assert "odd.mt" in bad("verify", tmp_path / "odd.mt")
    (tmp_path / "odd.asm").write_bytes(b"\xff\xfe" * 100)
    assert "not UTF-8" in bad("verify", tmp_path / "odd.asm")


COMMANDS = ("asm", "compile", "inspect", "disasm", "verify", "run", "profile", "compare", "config",
            "verilog", "isa", "kernel conv2d")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_each_command_is_for_in_80_columns(name):
    text = good(*name.split(), "--help", columns=80)
    assert f"Example: microtron {name}" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_without_arguments_the_help_is_printed_as_it_is_with_help():
    assert good() == good("--help")


def test_the_help_lists_every_command_once_in_a_group_and_in_full():
    text = good(columns=80)
    listed = re.findall(r"^  ([a-z]+)  +\S", text, re.MULTILINE)
    assert sorted(listed) == sorted(typer.main.get_command(app).commands)
    assert not re.search(r"^  [a-z]+  .*\.\.\.$", text, re.MULTILINE)
    assert re.findall(r"^([A-Z][^:]+):$", text, re.MULTILINE)[1:] == list(GROUPS)


# As a process.

def process(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "microtron", *map(str, arguments)],
                          encoding="utf-8", stderr=subprocess.PIPE, check=False,
                          **{"stdout": subprocess.PIPE, **options})


def test_the_package_is_a_command_too():
    done = process("config", "tiny")
    assert (done.returncode, done.stdout, done.stderr) == (0, good("config", "tiny"), "")


@pytest.mark.parametrize("encoding", ["ascii", "latin1", "cp437", "utf-8"])
def test_any_encoding_shows_tables_and_complaints(encoding):
    for arguments in (("config",), ("isa",), ("--help",), ("run", EXAMPLE)):
        assert command(*arguments, encoding=encoding).code == 0
    assert "1x4x4" in good("config", encoding="ascii")
    assert r"'ä\u4e2d\udcff' is neither" in bad("config", "ä中\udcff", encoding="latin1")


def test_what_scripts_read_is_utf_8_whatever_the_terminal_has(tmp_path):
    (tmp_path / "text.asm").write_text(EXAMPLE.read_text() + ".provenance author \"中\"\n")
    good("asm", tmp_path / "text.asm")
    environment = {**os.environ, "PYTHONIOENCODING": "latin1"}
    text = process("disasm", tmp_path / "text.mt", env=environment).stdout
    assert text == good("disasm", tmp_path / "text.mt")
    assert "中" in text


@pytest.mark.parametrize("arguments", [("config",), ("isa", "--manual"), ("--version",),
                                       ("profile", EXAMPLE, "--json")])
def test_a_full_device_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        done = process(*arguments, stdout=full)
    assert done.returncode == 2
    assert done.stderr == ("microtron: standard output: cannot be written: No space left on "
                           "device\n")


@pytest.mark.parametrize("arguments", [("config",), ("isa", "--manual")])
def test_a_reader_that_has_gone_is_no_error_to_speak_of(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    done = process(*arguments, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", [1, 2])
def test_streams_may_be_closed(closed):
    done = process("config", "none", preexec_fn=lambda: os.close(closed))
    assert done.returncode == 2


@pytest.mark.parametrize("arguments", [
    ("verify", "/dev/zero"), ("config", "endless.toml"), ("config", "endless.json"),
    ("profile", "endless.asm", "--board", "endless.toml"),
    ("run", "endless.asm", "--device", "board:endless.toml")])
def test_text_without_end_is_refused(arguments, tmp_path, monkeypatch):
    monkeypatch.setattr("microtron.isa.program_files.ASSEMBLY_CHARACTERS", 1 << 20)
    for name in ("endless.asm", "endless.toml", "endless.json"):
        (tmp_path / name).symlink_to("/dev/zero")
    assert "cannot be read: it has more than 1,048,576 characters" in bad(*arguments, cwd=tmp_path)


@pytest.mark.parametrize("arguments", [
    ("compile",), ("quantize",), ("report",), ("tune",), ("asm",), ("firmware", "--board", "ulx3s"),
    ("tune", "model.onnx", "--cost-model")])
@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_without_a_name_is_refused_in_one_line(tmp_path, arguments, path):
    """As an empty variable of a script gives it."""
    (tmp_path / "model.onnx").write_bytes(b"")
    bad(*arguments, path, cwd=tmp_path)
