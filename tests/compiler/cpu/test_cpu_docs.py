"""What docs/cpu.md shows works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cpu.md"
BEFORE = """
from dataclasses import dataclass
import numpy as np
from microtron.compiler.cpu.registry import Operand, lowers
from microtron.compiler.expression.expression import Expression
from microtron.compiler.expression.functions import square_root
from microtron.compiler.expression.tensor import Tensor, compute
from microtron.compiler.graph.builder import Builder
from microtron.compiler.graph.operation import Operation, operand
from microtron.compiler.graph.types import TensorType
from microtron.runtime.models.compiled_host import CompiledBackend

@dataclass(frozen=True, kw_only=True)
class Squareplus(Operation):
    x: str = operand()

    def infer(self, x):
        return x

    def compute(self, result, x):
        return (x.array + np.sqrt(x.array * x.array + 4)) / 2

"""
AFTER = """
builder = Builder()
builder.input("x", TensorType((5, 7), "float32"))
builder.add("y", Squareplus(x="x"))
x = np.linspace(-3, 3, 35, dtype=np.float32).reshape(5, 7)
found = CompiledBackend(1).nodes(builder.graph(("y",)))({"x": x})["y"]
np.testing.assert_allclose(found, (x + np.sqrt(x * x + 4)) / 2, 1e-6)
print("right")
"""


def test_the_operation_that_the_page_adds_is_compiled():
    example, = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    # In a process of its own: what it registers stays registered.
    done = subprocess.run([sys.executable, "-c", BEFORE + example + AFTER], capture_output=True,
                          text=True)
    assert done.stdout == "right\n", done.stderr
