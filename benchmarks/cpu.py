"""Compiled kernels for the CPU against ONNX Runtime, each with one thread: float32 and int8 matrix
products and convolutions, and the nodes that networks leave to the CPU. Kernels of more than a
millisecond are also measured with two threads."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from math import exp, log
from typing import Any

import numpy as np
from cases.cpu_cases import NETWORKS, Case, cases
from common import Column, Outcome, Row, factor, main, quantity

from microtron.base.arrays import Array
from microtron.base.processor import host
from microtron.compiler.cpu.cpu_part import compile_part
from microtron.compiler.frontends.onnx import read_onnx
from microtron.runtime.models.compiled_host import LoadedPart

LONG = 1e-3                     # seconds from which on two threads are measured
SECONDS = 0.5                   # for each case
FEWEST = 5
SLOW = 0.25
REASONS: dict[str, str] = {         # by the first word of a node's name
    "conv": "numbers of neighbouring channels are in different pages of memory",
    "qlinear": "sums of few products take less time than to scale them",
}
Call = Callable[[], Any]


def measure_case(case: Case, seconds: float) -> Row:
    import onnxruntime

    data = case.model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    part = compile_part(read_onnx(data, case.name), host())
    one = LoadedPart(part, 1)
    inputs = dict(case.inputs)
    calls: list[Call] = [lambda: one(inputs), lambda: session.run(None, inputs)]
    check(case, calls)
    ours, theirs = alternating(calls, seconds)
    row = {"name": case.name, "kind": case.kind, "seconds": ours, "onnxruntime_seconds": theirs,
           "ratio": theirs / ours, "scaling": None}
    if ours >= LONG:
        two = LoadedPart(part, 2)
        one_thread, two_threads = alternating([calls[0], lambda: two(inputs)], seconds)
        row["scaling"] = one_thread / two_threads
    return row


def check(case: Case, calls: list[Call]) -> None:
    """Refuse to compare different results. Quantized ones may be one apart: ONNX Runtime rounds
    scaled sums as real numbers."""
    names = [each.name for each in case.model.graph.output]
    for name, one, other in zip(names, map(calls[0]().get, names), calls[1](), strict=True):
        _check_result(f"{case.name}: {name}", np.asarray(one), np.asarray(other))


def _check_result(name: str, found: Array, expected: Array) -> None:
    whole = found.dtype.kind in "iu"
    near = {"rtol": 0, "atol": 1} if whole else {
        "rtol": 1e-3, "atol": 1e-4 * float(np.abs(expected).max(initial=1))}
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64),
                               err_msg=name, **near)


def alternating(calls: list[Call], seconds: float) -> list[float]:
    """The shortest time of each, measured in turns, so that all meet the same machine."""
    best = [float("inf")] * len(calls)
    start, rounds = time.perf_counter(), 0
    while rounds < FEWEST or time.perf_counter() - start < seconds:
        for place, call in enumerate(calls):
            before = time.perf_counter()
            call()
            best[place] = min(best[place], time.perf_counter() - before)
        rounds += 1
    return best


def mean(numbers: Iterable[float]) -> float:
    """The geometric one."""
    logs = [log(each) for each in numbers]
    return exp(sum(logs) / len(logs)) if logs else float("nan")


def measure(options: argparse.Namespace) -> Outcome:
    rows = [measure_case(each, options.seconds) for each in cases(options.network or NETWORKS)
            if options.only in each.name]
    by_kind = {kind: round(mean(row["ratio"] for row in rows if row["kind"] == kind), 3)
               for kind in dict.fromkeys(row["kind"] for row in rows)}
    slow = {row["name"]: REASONS.get(row["name"].split(" ")[0], "not known")
            for row in rows if row["ratio"] < SLOW}
    scalings = [row["scaling"] for row in rows if row["scaling"] is not None]
    return Outcome(
        benchmark="cpu", title="Compiled kernels against ONNX Runtime, one thread each",
        columns=(Column("name", "node"), Column("kind", "kind"),
                 Column("seconds", "time", quantity("s")),
                 Column("onnxruntime_seconds", "ONNX Runtime", quantity("s")),
                 Column("ratio", "speed against it", factor),
                 Column("scaling", "two threads", lambda each: factor(each) if each else "")),
        rows=rows,
        facts={"ratio": round(mean(row["ratio"] for row in rows), 3), "by_kind": by_kind,
               "scaling": round(mean(scalings), 3) if scalings else None, "slow": slow},
        details=tuple(f"{name}: slower than {SLOW}×: {why}" for name, why in slow.items()))


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each node")
    parser.add_argument("--network", action="append", help="whose nodes are measured")
    parser.add_argument("--only", default="", help="nodes whose name has this in it")


if __name__ == "__main__":
    main(measure, __doc__ or "", _arguments)
