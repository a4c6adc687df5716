"""Features of a point that transfer across layers and configurations, computed without compiling.

Sizes are logarithms to the base of two, so that what scales adds up. A feature that a layer does
not have, such as the columns of a fully connected one, is not a number.

    config_…, memory_…      the hardware and the memory
    operator_…              1 for the layer's own operator, 0 for the others
    work_…, bound_…         the least work, and the three bounds
    bytes_…, fill_…         tensors, and how often each would fill the scratchpad it goes through
    extent_…, tile_…, steps_…   loops, how much of each is done at once, and in how many steps
    estimate_…              the analytic estimate, and how it reacts to latency and bandwidth
    pipeline_…              cycles of the steps as simulated, how busy engines are, and reactions
"""

from __future__ import annotations

from dataclasses import fields, replace
from math import log2, nan, prod

from ..compiler.operators.catalogue import operator_of
from ..compiler.operators.form import Form
from ..isa.config import Config
from ..isa.instructions import SCRATCHPADS
from ..isa.memory_timing import MemoryTiming
from .pipeline.pipeline_parts import PARTS, pipeline_of
from .points import LayerPoint

OPERATORS = ("conv2d", "depthwise", "grouped", "dense", "pool", "elementwise", "broadcast",
             "residual_conv2d", "averaged_conv2d", "separable", "conv_separable")
KNOBS = ("blocks", "rows", "columns", "depth", "groups", "tap_rows", "tap_columns", "tiles")
FLAGS = ("one_by_one", "data_stays", "resident", "doubled", "single_sums")
CONFIG_SIZES = ("batch", "block_in", "block_out", "bus_bytes", "acc_banks", "queue_depth",
                "reads_in_flight", "writes_in_flight", "vector_cycles", "macs_per_cycle")
CONFIG_PLAIN = ("out_readers", "window_taps")
MEMORY = ("read_latency", "write_latency", "cycles_per_beat", "reads", "writes")
MEMORY_PLAIN = ("turn", "shared", "stalls")
TENSORS = {"data": "inp", "left": "inp", "weights": "wgt", "output": "out"}     # and where they go
SLOW_BUS = 64               # cycles for a beat, at which the bus alone decides
FAR = 10_000                # cycles of latency, at which nothing else matters


def features_of(point: LayerPoint) -> dict[str, float]:
    """All features of a point, by name; every point has the same names, in the same order."""
    form, config, memory = point.form, point.config, point.memory
    found = {f"config_{name}": log2(getattr(config, name)) for name in CONFIG_SIZES}
    found |= {f"config_{name}": float(getattr(config, name)) for name in CONFIG_PLAIN}
    found |= {f"config_{buffer.name.lower()}_tiles": log2(config.tiles(buffer))
              for buffer in SCRATCHPADS}
    found |= {f"memory_{name}": log2(getattr(memory, name)) for name in MEMORY}
    found |= {f"memory_{name}": float(getattr(memory, name)) for name in MEMORY_PLAIN}
    found |= {f"operator_{name}": float(point.layer.operator == name) for name in OPERATORS}
    found |= _work(form, config, memory)
    found |= _tensors(form, config)
    found |= _geometry(point)
    tiles = _tiles(point, form)
    return found | tiles | _estimates(point, form, tiles["steps"]) | _pipeline(point)


def _pipeline(point: LayerPoint) -> dict[str, float]:
    """What the simulation of steps says, beside the estimate and the bound."""
    parts = pipeline_of(point)
    cycles = parts["cycles"]
    form, memory = point.form, point.memory
    return {"pipeline": _log(cycles), "pipeline_by_estimate": _log(cycles / estimate_of(point)),
            "pipeline_by_bound": _log(cycles / bound_of_point(point)),
            "pipeline_latency": _log(memory.read_latency / cycles),
            "pipeline_turn": _log(memory.shared * memory.turn + 1),
            **{f"pipeline_{name}": _log(parts[name] / cycles) for name in PARTS[1:]},
            **{f"ways_{name}": float(form.interleaves[name].ways if name in form.interleaves else 1)
               for name in ("data", "output")}}


def estimate_of(point: LayerPoint, memory: MemoryTiming | None = None) -> float:
    """The analytic estimate of a point's cycles."""
    template = operator_of(point.layer).template
    return float(template.estimate(point.form, point.schedule.knobs, memory or point.memory))


def bound_of_point(point: LayerPoint) -> float:
    """The roofline: the largest of the three bounds of its form."""
    return float(point.form.work.bound(point.config, point.memory).cycles)


def _work(form: Form, config: Config, memory: MemoryTiming) -> dict[str, float]:
    work, bound = form.work, form.work.bound(config, memory)
    numbers = {"work_macs": work.macs, "work_products": work.products, "work_bytes": work.bytes,
               "work_passes": work.passes, "bound_macs": bound.macs, "bound_memory": bound.memory,
               "bound_alu": bound.alu, "bound": bound.cycles}
    found = {name: _log(value) for name, value in numbers.items()}
    return found | {
        "bound_memory_by_macs": found["bound_memory"] - found["bound_macs"],
        "bound_alu_by_macs": found["bound_alu"] - found["bound_macs"],
        "bound_alu_by_memory": found["bound_alu"] - found["bound_memory"],
        "work_padding": _log(work.products * config.macs_per_cycle) - found["work_macs"]}


def _tensors(form: Form, config: Config) -> dict[str, float]:
    """Bytes of tensors, and of those that a scratchpad has to hold."""
    sizes: dict[str, float] = dict.fromkeys(("inp", "wgt", "out"), nan)
    for name, shape in form.shapes.items():
        if name in TENSORS:
            sizes[TENSORS[name]] = float(prod(shape))
    found = {f"bytes_{name}": _log(value) for name, value in sizes.items()}
    found |= {f"fill_{name}": _log(value / getattr(config, f"{name}_bytes"))
              for name, value in sizes.items()}
    return found | {"fill_acc": _log(4 * sizes["out"] / config.acc_bytes)}


def _geometry(point: LayerPoint) -> dict[str, float]:
    """The window of a layer that has one."""
    found = {}
    for name in ("kernel", "stride", "dilation"):
        sides = getattr(point.layer, name, (nan, nan))
        found[f"window_{name}"] = float(sides[0] * sides[1])
    return found


def steps_of(point: LayerPoint) -> float:
    """Steps of all loops together; a program has some instructions for each."""
    return float(2 ** _tiles(point, point.form)["steps"])


def _tiles(point: LayerPoint, form: Form) -> dict[str, float]:
    """Loops, what is done of them at once, and the steps that this takes."""
    largest = operator_of(point.layer).template.largest(form)
    values = _knobs(point.schedule.knobs)
    extents, steps = _knobs(largest), 0.0
    found: dict[str, float] = {}
    for name in KNOBS:
        extent = extents.get(name, nan)
        tile = values.get(name, nan) or extent          # 0 is all of them
        taken = _log(-(-extent // tile)) if tile == tile and extent == extent else nan
        found |= {f"extent_{name}": _log(extent), f"tile_{name}": _log(tile),
                  f"steps_{name}": taken}
        steps += 0.0 if taken != taken else taken
    found |= {f"knob_{name}": values.get(name, nan) for name in FLAGS}
    return found | {"steps": steps}


def _knobs(knobs: object) -> dict[str, float]:
    found: dict[str, float] = {}
    for field in fields(knobs):                 # type: ignore[arg-type]    # every Knobs is one
        value = getattr(knobs, field.name)
        if isinstance(value, tuple):            # the part of a window that is combined at once
            found |= {"tap_rows": float(value[0]), "tap_columns": float(value[1])}
        else:
            found[field.name] = float(value)
    return found


def _estimates(point: LayerPoint, form: Form, steps: float) -> dict[str, float]:
    """What the analytic model says, and what of it is due to the bus and to latency."""
    memory = point.memory
    here = estimate_of(point)
    near = estimate_of(point, replace(memory, read_latency=1))
    far = estimate_of(point, replace(memory, read_latency=FAR))
    slow = estimate_of(point, replace(memory, read_latency=1, cycles_per_beat=SLOW_BUS))
    traffic = slow * point.config.bus_bytes / SLOW_BUS
    return {"estimate": _log(here), "estimate_by_bound": _log(here / bound_of_point(point)),
            "estimate_near": _log(near / here), "estimate_waits": _log((far - near) / FAR),
            "estimate_traffic": _log(traffic),
            "estimate_reuse": _log(traffic / max(1, form.work.bytes)),
            "estimate_per_step": _log(here) - steps}


def _log(value: float) -> float:
    return nan if value != value else log2(max(value, 2 ** -20))

