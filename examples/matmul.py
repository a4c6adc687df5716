"""Assembles, verifies, runs and disassembles a blocked matrix multiply, and shows what happened.

    python examples/matmul.py --save .

writes its inputs to a.npy, b.npy and params.npy instead, for `microtron run`, and the right result
to expected.npy.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import microtron
from microtron import Adversarial, VerificationError

SOURCE = Path(__file__).with_suffix(".asm")
ORDERS = 20

Array = npt.NDArray[Any]


def operands() -> tuple[dict[str, Array], Array]:
    """The tensors that the program takes, by name, and the result that NumPy gets."""
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (128, 64), np.int8)
    b = rng.integers(-128, 128, (64, 64), np.int8)
    bias = rng.integers(-5000, 5000, 64, np.int32)
    multiplier, shift = zip(*(microtron.quantize_scale(each) for each in rng.uniform(
        0.0005, 0.002, 64)), strict=True)
    params = np.stack([bias, multiplier, shift]).astype(np.int32)
    inputs = {"a": a, "b": b.reshape(4, 16, 4, 16).swapaxes(1, 2),
              "params": params.reshape(3, 4, 16).swapaxes(0, 1)}
    return inputs, microtron.requantize_array(a.astype(np.int32) @ b.T.astype(np.int32), *params)


def save(folder: Path) -> None:
    inputs, expected = operands()
    for name, array in {**inputs, "expected": expected}.items():
        np.save(folder / f"{name}.npy", array)


def demonstrate() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    program = microtron.assemble(text, place=SOURCE.name)
    verdict = microtron.verify(program)

    inputs, expected = operands()
    outputs, report = microtron.run(program, inputs)
    assert np.array_equal(outputs["c"], expected), "the accelerator and NumPy disagree"
    for seed in range(ORDERS):
        device = microtron.open_device("functional", order=Adversarial(seed))
        others, _ = microtron.run(program, inputs, device)
        assert np.array_equal(others["c"], expected), f"order {seed} gives another result"

    listing = microtron.disassemble(program)
    print(listing[listing.index("block_0:"):listing.index("block_1:")].rstrip(), "\n")
    print(f"Verified: {verdict.instructions} instructions, {verdict.tokens} tokens, no race, no "
          f"deadlock.")
    print(f"Result equal to NumPy's in program order and in {ORDERS} adversarial orders.")
    microtron.show(report, f"{SOURCE.name}: C = requantize(A·Bᵀ + bias), 128×64×64 on base")

    broken = re.sub(r"requantize wait=gemm\|store params", "requantize wait=gemm params", text)
    try:
        microtron.verify(microtron.assemble(broken))
    except VerificationError as race:
        print(f"Without one token: {race}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the inputs, run nothing")
    folder = parser.parse_args().save
    if folder is None:
        demonstrate()
    else:
        save(folder)


if __name__ == "__main__":
    main()
