"""Microtron: a co-design kit for small tensor accelerators.

    import microtron

    model = microtron.compile("model.onnx", "base")     # networks
    result = model.run(image)                           # exact cycles, bit-exact outputs

    layer = microtron.Conv2d(height=28, width=28, channels_in=32, channels_out=64, pad=1)
    kernel = microtron.compile_op(layer, "base")        # single operators
    microtron.simulate(kernel.program).cycles

docs/api.md lists all names. They are imported when they are first used, so that `import microtron`
itself is quick. Everything else in the package is internal.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base.errors import (
        AssemblyError,
        ConfigError,
        ExecutionError,
        ImageError,
        MicrotronError,
        VerificationError,
    )
    from .base.keywords import KeywordError
    from .compiler.compile import bound_of, schedules_of, work_of
    from .compiler.errors import CompileError
    from .compiler.frontends.read_model import read_model
    from .compiler.graph.graph import Graph
    from .compiler.operators.convolution.conv2d import Conv2d
    from .compiler.operators.convolution.residual import ResidualConv2d
    from .compiler.operators.convolution.transposed import Transposed
    from .compiler.operators.dense.dense import Dense
    from .compiler.operators.depthwise.conv_separable import ConvSeparable
    from .compiler.operators.depthwise.depthwise import Depthwise
    from .compiler.operators.depthwise.grouped import Grouped
    from .compiler.operators.depthwise.separable import Separable
    from .compiler.operators.depthwise.upsample import Upsample
    from .compiler.operators.elementwise.broadcast import Broadcast
    from .compiler.operators.elementwise.elementwise import Elementwise
    from .compiler.operators.pool.conv_global_average import AveragedConv2d
    from .compiler.operators.pool.pool import Pool
    from .explore.predictor import CostModel, load_cost_model
    from .isa.arithmetic import quantize_scale, requantize_array
    from .isa.assembly.assembler import assemble
    from .isa.assembly.disassembler import disassemble
    from .isa.config import PRESETS, Config
    from .isa.config_files import load_config, save_config
    from .isa.memory_timing import MemoryTiming
    from .isa.program import Program
    from .isa.program_files import load_program, save_program
    from .isa.verification.verifier import Verdict, verify
    from .quantization.quantize import QuantizedModel, quantize
    from .report.save_report import save_report
    from .runtime.api import compile, compile_op, inspect, load, simulated_cost
    from .runtime.devices.device import Device, open_device, run
    from .runtime.models.kernel import Kernel
    from .runtime.models.model import Model
    from .runtime.models.result import Result
    from .runtime.models.session import Session
    from .runtime.models.tensors import InputError
    from .runtime.monitor.client import Monitor
    from .runtime.monitor.line import BoardLine
    from .runtime.monitor.network import BoardNetwork
    from .runtime.reports.layers import Inspection
    from .runtime.reports.profile import Profile, profile
    from .runtime.reports.show import show
    from .runtime.times.schedules import evaluate
    from .sim.functional.order import Adversarial
    from .sim.parallel import Job, simulate_many
    from .sim.report import Report
    from .sim.simulate import simulate

__version__ = "0.2.0"
__all__ = [
    "PRESETS",
    "Adversarial",
    "AssemblyError",
    "AveragedConv2d",
    "BoardLine",
    "BoardNetwork",
    "Broadcast",
    "CompileError",
    "Config",
    "ConfigError",
    "Conv2d",
    "ConvSeparable",
    "CostModel",
    "Dense",
    "Depthwise",
    "Device",
    "Elementwise",
    "ExecutionError",
    "Graph",
    "Grouped",
    "ImageError",
    "InputError",
    "Inspection",
    "Job",
    "Kernel",
    "KeywordError",
    "MemoryTiming",
    "MicrotronError",
    "Model",
    "Monitor",
    "Pool",
    "Profile",
    "Program",
    "QuantizedModel",
    "Report",
    "ResidualConv2d",
    "Result",
    "Separable",
    "Session",
    "Transposed",
    "Upsample",
    "Verdict",
    "VerificationError",
    "__version__",
    "assemble",
    "bound_of",
    "compile",
    "compile_op",
    "disassemble",
    "evaluate",
    "inspect",
    "load",
    "load_config",
    "load_cost_model",
    "load_program",
    "open_device",
    "profile",
    "quantize",
    "quantize_scale",
    "read_model",
    "requantize_array",
    "run",
    "save_config",
    "save_program",
    "save_report",
    "schedules_of",
    "show",
    "simulate",
    "simulate_many",
    "simulated_cost",
    "verify",
    "work_of",
]
# Where each name is.
_MODULES = {
    "base.errors": (
        "AssemblyError", "ConfigError", "ExecutionError", "ImageError", "MicrotronError",
        "VerificationError",
    ),
    "base.keywords": ("KeywordError",),
    "compiler.compile": ("bound_of", "schedules_of", "work_of"),
    "compiler.errors": ("CompileError",),
    "compiler.frontends.read_model": ("read_model",),
    "compiler.graph.graph": ("Graph",),
    "compiler.operators.convolution.conv2d": ("Conv2d",),
    "compiler.operators.pool.conv_global_average": ("AveragedConv2d",),
    "compiler.operators.depthwise.grouped": ("Grouped",),
    "compiler.operators.convolution.residual": ("ResidualConv2d",),
    "compiler.operators.convolution.transposed": ("Transposed",),
    "compiler.operators.dense.dense": ("Dense",),
    "compiler.operators.depthwise.conv_separable": ("ConvSeparable",),
    "compiler.operators.depthwise.depthwise": ("Depthwise",),
    "compiler.operators.depthwise.separable": ("Separable",),
    "compiler.operators.depthwise.upsample": ("Upsample",),
    "compiler.operators.elementwise.broadcast": ("Broadcast",),
    "compiler.operators.elementwise.elementwise": ("Elementwise",),
    "compiler.operators.pool.pool": ("Pool",),
    "explore.predictor": ("CostModel", "load_cost_model"),
    "isa.arithmetic": ("quantize_scale", "requantize_array"),
    "isa.assembly.assembler": ("assemble",),
    "isa.assembly.disassembler": ("disassemble",),
    "isa.config": ("PRESETS", "Config"),
    "isa.config_files": ("load_config", "save_config"),
    "isa.memory_timing": ("MemoryTiming",),
    "isa.program": ("Program",),
    "isa.program_files": ("load_program", "save_program"),
    "isa.verification.verifier": ("Verdict", "verify"),
    "quantization.quantize": ("QuantizedModel", "quantize"),
    "report.save_report": ("save_report",),
    "runtime.api": ("compile", "load", "inspect", "compile_op", "simulated_cost"),
    "runtime.devices.device": ("Device", "open_device", "run"),
    "runtime.times.schedules": ("evaluate",),
    "runtime.models.kernel": ("Kernel",),
    "runtime.models.model": ("Model",),
    "runtime.models.result": ("Result",),
    "runtime.models.session": ("Session",),
    "runtime.models.tensors": ("InputError",),
    "runtime.monitor.client": ("Monitor",),
    "runtime.monitor.line": ("BoardLine",),
    "runtime.monitor.network": ("BoardNetwork",),
    "runtime.reports.layers": ("Inspection",),
    "runtime.reports.profile": ("Profile", "profile"),
    "runtime.reports.show": ("show",),
    "sim.functional.order": ("Adversarial",),
    "sim.parallel": ("Job", "simulate_many"),
    "sim.report": ("Report",),
    "sim.simulate": ("simulate",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:                   # type checkers are to see the imports above alone
    def __getattr__(name: str) -> object:
        """Import a name when it is first used."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
