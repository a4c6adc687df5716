"""The command line as a user meets it: in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "matmul.asm"


def microtron(*arguments, cwd=None):
    return subprocess.run([sys.executable, "-m", "microtron.cli", *map(str, arguments)], cwd=cwd,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "COLUMNS": "120"})


def good(*arguments, cwd=None):
    done = microtron(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "\x1b[" not in done.stdout, "colours belong on terminals only"
    return done.stdout


def bad(*arguments, cwd=None):
    """One line on standard error, exit code 2, no traceback."""
    done = microtron(*arguments, cwd=cwd)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


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
                  "nothing in its queue", "8,192 out", "Most expensive waits"):
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
    done = microtron("verify", broken)
    assert done.returncode == 2
    assert "no tokens put" in done.stderr
    assert json.loads(microtron("verify", broken, "--json").stdout)["safe"] is False
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
    (("run", EXAMPLE, "-i", "z=z.npy"), "z.npy"),
    (("run", EXAMPLE, "-o", "z=z.npy"), "there is no tensor 'z'"),
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


def test_a_file_that_is_no_image_is_refused(tmp_path):
    (tmp_path / "odd.mt").write_bytes(b"MZ" * 1000)
    assert "odd.mt" in bad("verify", tmp_path / "odd.mt")
    (tmp_path / "odd.asm").write_bytes(b"\xff\xfe" * 100)
    assert "not UTF-8" in bad("verify", tmp_path / "odd.asm")


def test_help_says_what_each_command_is_for():
    for command in ("asm", "disasm", "verify", "run", "profile", "config", "isa"):
        assert "Example: microtron" in good(command, "--help")
