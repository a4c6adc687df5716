"""Any operator as something to run and compare: a kernel, operands for it, and what NumPy says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtron.compiler.compile import compile_op
from microtron.compiler.expression.evaluate import evaluate
from microtron.compiler.expression.tensor import topological_order
from microtron.compiler.operators.packing import check_operands
from microtron.isa.arithmetic import quantize_scale
from microtron.isa.config import tiny
from microtron.isa.verification.verifier import verify
from microtron.runtime.devices.device import run

from .references import expected

CONFIGS = {
    "tiny": tiny,
    "batch 2": replace(tiny, batch=2),
    "more in than out": replace(tiny, block_in=8),
    "more out than in": replace(tiny, block_out=16, wgt_bytes=16 << 10, acc_bytes=32 << 10,
                                out_bytes=8 << 10),
    "more out than in, batch 2": replace(tiny, block_out=8, batch=2, acc_bytes=16 << 10),
    "windows": replace(tiny, window_taps=3),
    "windows, more in than out, batch 2": replace(tiny, block_in=8, batch=2, window_taps=3),
}


def operands_for(form, seed=0):
    """All that a user gives, from a seed. Scales of all sizes: some channels get few different
    results, others saturate almost always, and the first has ties."""
    rng = np.random.default_rng(seed)
    shapes = {each.name: each.shape for each in form.operands}
    given = {each.name: rng.integers(*each.range, each.shape, endpoint=True).astype(
                 np.int8 if each.range[1] < 128 else np.int16)
             for each in form.operands
             if not each.name.endswith(("bias", "multiplier", "shift"))}
    for which in ("", "mixed_", "window_"):
        if f"{which}multiplier" in shapes:
            channels, = shapes[f"{which}multiplier"]
            scales = 10.0 ** rng.uniform(-4.5, 0.3, channels)
            scales[0] = 2.0 ** -8
            multiplier, shift = np.transpose([quantize_scale(float(scale)) for scale in scales])
            given |= {f"{which}bias": rng.integers(-1 << 15, 1 << 15, channels),
                      f"{which}multiplier": multiplier, f"{which}shift": shift}
    return given


def check(spec, config, *devices, seed=0, **options):
    """Compile, prove, run on every device and compare with NumPy. Gives the kernel and reports."""
    kernel = compile_op(spec, config, **options)
    verify(kernel.program)
    given = operands_for(kernel.form, seed)
    right, reports = expected(spec, given), []
    for device in devices or ("functional",):
        outputs, report = run(kernel.program, kernel.pack(given), device)
        np.testing.assert_array_equal(kernel.unpack(outputs), right, f"{kernel.knobs} on {device}")
        reports.append(report)
    return kernel, reports


def check_meaning(spec, form, seed=0):
    """Evaluate the tensor expressions of a form and compare with NumPy."""
    given = operands_for(form, seed)
    packed = form.pack(check_operands(form.operands, given))
    result = evaluate(form.output, {tensor: packed[tensor.name]
                                    for tensor in topological_order(form.output)
                                    if tensor.body is None})
    np.testing.assert_array_equal(form.unpack(result), expected(spec, given))
