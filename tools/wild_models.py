"""Model files inside packages: compile each, run it, and compare it with its own runtime.

    pip download --no-deps -d packages silero-vad mediapipe     # or npm pack; or a site-packages
    python tools/wild_models.py packages --json found.json
    python tools/wild_models.py packages --quantize             # float files, to int8 first

Nothing is downloaded. Every .onnx and .tflite file in the folders, and in the wheels, zips and
tarballs there, is compiled once whatever it is called, in a process of its own with a time limit. A
model whose inputs are open is tried again with the options that its error proposes. Outputs are
compared with ONNX Runtime without optimizations, or with LiteRT. With --quantize, a float file is
quantized with random data first: each layer is compared with ONNX Runtime on the quantized file,
and the outputs with those of the same integers on the CPU. How far they are from ONNX Runtime's, to
which single steps of many layers add up, is only reported. How many of its MACs the accelerator
takes is what counts then. The exit code is 1 if an answer is wrong or a process crashed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:           # a worker imports what it needs; the others start quickly
    from microtron import Model
    from microtron.base.arrays import Array
    from microtron.base.checked_values import PlainData
    from microtron.compiler.graph.graph import Graph
    from microtron.compiler.graph.types import TensorType

SUFFIXES = (".onnx", ".tflite")
ARCHIVES = (".whl", ".zip", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
ALIKE = 0.999               # cosine of an output that is right
CLOSE = 1e-3                # of the largest number, for outputs whose direction says nothing
MOST_STEPS = 1              # that a layer of integers may differ by
MEMORY = 16 << 30           # bytes of addresses that a process may have
COLUMNS = ("verdict", "file", "bytes", "nodes", "accelerator_macs", "cpu_macs", "percent",
           "handovers", "layers", "steps", "error", "cosine", "seconds", "reason")


def model_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all model files in a folder and in the archives there."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        if path.suffix in SUFFIXES and path.is_file():
            yield str(path.relative_to(folder) if folder.is_dir() else path), path.read_bytes()
        elif path.name.endswith(ARCHIVES) and path.is_file():
            try:
                yield from ((f"{path.name}:{name}", data) for name, data in _members(path))
            except (OSError, zipfile.BadZipFile, tarfile.TarError) as error:
                print(f"{path}: {error}", file=sys.stderr)


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(SUFFIXES):
                    yield name, archive.read(name)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if member.name.endswith(SUFFIXES) and (file := archive.extractfile(member)) is not None:
                yield member.name, file.read()


def judge(path: Path, name: str, arguments: argparse.Namespace) -> PlainData:
    """What became of one file, in a process of its own."""
    start = time.monotonic()
    command = [sys.executable, __file__, "--worker", str(path), "--config", arguments.config,
               "--seed", str(arguments.seed), *(["--quantize"] if arguments.quantize else [])]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False,
                               timeout=arguments.seconds)
        last = ended.stdout.splitlines()[-1:] or [""]
        if ended.returncode == 0:
            found = json.loads(last[0])
        else:
            why = (signal.Signals(-ended.returncode).name if ended.returncode < 0
                   else (ended.stderr.splitlines() or ["?"])[-1])
            found = {"verdict": "crashed", "reason": why}
    except subprocess.TimeoutExpired:
        found = {"verdict": "too long", "reason": f"more than {arguments.seconds} seconds"}
    return {"file": name, "bytes": path.stat().st_size, **found,
            "seconds": round(time.monotonic() - start, 1)}


# In the process of a file.

def examine(path: Path, config: str, seed: int, *, quantize: bool = False) -> PlainData:
    """Compile, run and compare; with `quantize`, a float model as int8."""
    from microtron.base.errors import MicrotronError
    from microtron.compiler.network.network import Where
    from microtron.runtime.models.compiled_model import ProgramStep

    try:
        (model, path, graph), options = _compile(path, config, quantize=quantize)
    except MicrotronError as error:
        return {"verdict": "refused", "reason": str(error)}
    hosted, macs = (sum(each.macs for each in nodes) for nodes in (model.host_nodes, model.nodes))
    found: PlainData = {
        "options": options, "cpu_macs": hosted, "accelerator_macs": macs - hosted,
        "percent": 100 * (macs - hosted) / macs if macs else None,
        "handovers": sum(len(step.inputs) + len(step.outputs) for step in model.steps
                         if isinstance(step, ProgramStep)),
        "nodes": sum(each.where in (Where.ACCELERATOR, Where.CPU) for each in model.nodes)}
    inputs = random_inputs(model.inputs, seed)
    if graph is not None:
        options = {}                            # the file that was written has them inside
        found |= compare_layers(graph, path, inputs)
        if found["steps"] > MOST_STEPS:
            return {**found, "verdict": "wrong", "reason": "a layer differs by too many steps"}
    try:
        expected = (_by_onnxruntime if path.suffix == ".onnx" else _by_litert)(
            path, inputs, options.get("values", {}))
    except Exception as error:              # whatever the other runtime raises
        return {**found, "verdict": "no reference", "reason": " ".join(str(error).split())[:200]}
    try:
        outputs = list(model.run(inputs, "functional").outputs.values())
    except MicrotronError as error:
        return {**found, "verdict": "refused", "reason": str(error)}
    if graph is None:
        return {**found, **compare(outputs, expected)}
    whole = compare(outputs, expected)
    return {**found, **compare(outputs, run_on_cpu(graph, inputs)),
            **{name: whole[name] for name in ("error", "cosine") if name in whole}}


def compare_layers(graph: Graph, path: Path, inputs: Mapping[str, Array]) -> PlainData:
    """By how many steps the integers of any layer differ from ONNX Runtime's."""
    from microtron.quantization.layer_steps import layer_steps, stored_by_onnxruntime

    steps = layer_steps(graph, stored_by_onnxruntime(path.read_bytes(), inputs), inputs)
    return {"layers": len(steps), "steps": max(steps.values())}


def run_on_cpu(graph: Graph, inputs: dict[str, Array]) -> list[Array]:
    """The outputs of a quantized graph by the CPU half, with the accelerator's integers."""
    from microtron.quantization.report import IntegerModel

    found = IntegerModel(graph).run(inputs)
    return [found[name] for name in graph.outputs]


def _build(path: Path, config: str, quantize: bool,
           **options: Any) -> tuple[Model, Path, Graph | None]:
    """The compiled model, the file that its answers are compared with, and its quantized graph."""
    import microtron

    if not quantize:
        return microtron.compile(path, config, **options), path, None
    found = microtron.quantize(path, random_data=True, method="minmax", techniques=(),
                               judged_samples=1, **options)
    written = path.with_name(f"{path.stem}_int8.onnx")
    found.save(written)
    return microtron.compile(found.graph, config, cost="estimate"), written, found.graph


def _compile(path: Path, config: str, *,
             quantize: bool) -> tuple[tuple[Model, Path, Graph | None], PlainData]:
    """The model and the options that it took."""
    from microtron.base.errors import MicrotronError
    from microtron.cli.options import ModelInputs

    try:
        return _build(path, config, quantize), {}
    except MicrotronError as error:
        proposed = re.search(r"as in (--shape .*)$", str(error))
        if proposed is None:
            raise
    words = shlex.split(proposed[1])
    given: dict[str, list[str]] = {"--shape": [], "--value": []}
    for option, text in zip(words[::2], words[1::2], strict=True):
        given[option].append(text)
    options = ModelInputs(given["--shape"], given["--value"]).parse()
    return _build(path, config, quantize, **options), dict(options)


def random_inputs(types: Mapping[str, TensorType], seed: int) -> dict[str, Array]:
    """Arrays of the right types: pixels or samples, small indices, any byte."""
    import numpy as np

    rng = np.random.default_rng(seed)
    found = {}
    for name, type_ in types.items():
        dtype = np.dtype(type_.dtype)
        if dtype.kind == "f":
            found[name] = rng.uniform(0, 1, type_.shape).astype(dtype)
        elif dtype.kind == "b":
            found[name] = rng.integers(0, 2, type_.shape).astype(bool)
        elif dtype.itemsize == 1:
            low, high = type_.range
            found[name] = rng.integers(low, high + 1, type_.shape).astype(dtype)
        else:
            found[name] = rng.integers(1, 16, type_.shape).astype(dtype)
    return found


def _by_onnxruntime(path: Path, inputs: Mapping[str, Array],
                    values: Mapping[str, object]) -> list[Array]:
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = dict(inputs)
    for each in session.get_inputs():
        if each.name in values:
            dtype = {"float": "float32", "double": "float64"}.get(
                each.type[len("tensor("):-1], each.type[len("tensor("):-1])
            shape = tuple(size if isinstance(size, int) and size > 0 else -1 for size in each.shape)
            given[each.name] = np.asarray(values[each.name], dtype).reshape(shape)
    return list(session.run(None, given))


def _by_litert(path: Path, inputs: Mapping[str, Array],
               values: Mapping[str, object]) -> list[Array]:
    """By reference kernels if numbers are quantized, by faster ones otherwise."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    def interpreter(kernels: Any) -> Any:
        found = Interpreter(str(path), experimental_op_resolver_type=kernels)
        for detail, array in zip(found.get_input_details(), inputs.values(), strict=True):
            found.resize_tensor_input(detail["index"], array.shape)
        found.allocate_tensors()
        return found

    chosen = interpreter(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    if any(each["quantization_parameters"]["scales"].size for each in chosen.get_tensor_details()):
        chosen = interpreter(OpResolverType.BUILTIN_REF)
    for detail, array in zip(chosen.get_input_details(), inputs.values(), strict=True):
        chosen.set_tensor(detail["index"], array)
    chosen.invoke()
    return [chosen.get_tensor(each["index"]) for each in chosen.get_output_details()]


def compare(outputs: list[Array], expected: list[Array]) -> PlainData:
    """How far outputs are from what is expected: the worst of all."""
    import numpy as np

    if len(outputs) != len(expected):
        return {"verdict": "wrong", "reason": f"{len(outputs)} outputs instead of {len(expected)}"}
    error, cosine, reason = 0.0, 1.0, ""
    for number, (ours, theirs) in enumerate(zip(outputs, expected, strict=True)):
        theirs = np.asarray(theirs)
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            reason = reason or (f"output {number} is {ours.dtype} {ours.shape} instead of "
                                f"{theirs.dtype} {theirs.shape}")
            continue
        a, b = ours.astype(np.float64).ravel(), theirs.astype(np.float64).ravel()
        known = np.isfinite(b)
        if not np.array_equal(np.isfinite(a), known):
            reason = reason or f"output {number} is finite in other places"
            continue
        a, b = a[known], b[known]
        worst = float(np.abs(a - b).max(initial=0))
        norms = float(np.linalg.norm(a) * np.linalg.norm(b))
        alike = float(a @ b / norms) if norms else float(worst == 0)
        error, cosine = max(error, worst), min(cosine, alike)
        if alike < ALIKE and worst > CLOSE * max(float(np.abs(b).max(initial=0)), CLOSE):
            reason = reason or f"output {number} has cosine {alike:.4f} and is off by {worst:.3g}"
    return {"verdict": "wrong" if reason else "right", "error": error, "cosine": cosine,
            "reason": reason}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="folders, archives or model files")
    parser.add_argument("--config", default="base", help="the accelerator; base unless given")
    parser.add_argument("--seconds", type=float, default=600, help="that a file may take")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--match", default="", help="only files whose name matches this pattern")
    parser.add_argument("--json", type=Path, help="file to write all results to")
    parser.add_argument("--quantize", action="store_true",
                        help="quantize float files with random data first")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.worker:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        print(json.dumps(examine(arguments.worker, arguments.config, arguments.seed,
                                 quantize=arguments.quantize)))
        return 0
    for folder in arguments.folders:
        if not folder.exists():
            parser.error(f"{folder}: there is no such file or folder")
    return _examine_all(arguments)


def _examine_all(arguments: argparse.Namespace) -> int:
    results: list[PlainData] = []
    seen: set[bytes] = set()
    print("\t".join(COLUMNS))
    for folder in arguments.folders:
        for name, data in model_files(folder):
            digest = hashlib.sha256(data).digest()
            if digest in seen or not re.search(arguments.match, name):
                continue
            seen.add(digest)
            with tempfile.TemporaryDirectory() as place:
                path = Path(place) / Path(name).name
                path.write_bytes(data)
                results.append(judge(path, name, arguments))
            print("\t".join(_cell(results[-1].get(each, "")) for each in COLUMNS), flush=True)
            if arguments.json:
                _write(arguments.json, json.dumps(results, indent=1))
    counts = {each["verdict"]: sum(other["verdict"] == each["verdict"] for other in results)
              for each in results}
    print(f"{len(results)} files: {', '.join(f'{count} {each}' for each, count in counts.items())}")
    return int(bool(counts.get("wrong") or counts.get("crashed")))


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main())
