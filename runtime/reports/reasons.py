"""Why nodes are left to the CPU, grouped: one line for each reason, and what to do about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field

from ...base.checked_values import printable
from ...base.classes.dataclass import dataclass
from ..models.compiled_model import NodeReport
from ..times.host_times import NodeTime
from .units import duration

MOST_OPERATORS = 4          # that a line lists

# What a reason is about, and what helps. The first that fits counts.
ADVICE = tuple((re.compile(pattern), advice) for pattern, advice in (
    (r"^real numbers; quantize", "quantize the model"),
    (r"^real arithmetic runs", "expected at the model's edges; elsewhere, quantize the layers "
                               "between"),
    (r"activations have int8", "quantize activations to int8"),
    (r"has not one scale", "quantize activations with one scale for each tensor"),
    (r"result is an output, or read", "follows from its neighbours, which run on the CPU too"),
    (r"from lane to lane", "keep one order of axes throughout the model"),
    (r"no exponential", "leave it out where only the order of scores matters"),
    (r"no table of values", "ReLU and clip cost nothing on the accelerator, and with tables = 8 no "
                            "function of one tensor does"),
    (r"no such function", "ReLU and clip cost nothing on the accelerator"),
    (r"addresses that depend on data", "nothing: look-ups stay on the CPU"),
    (r"results of 32 bits", "quantize the result to int8"),
    (r"differ from one product to the next", "nothing, on this configuration"),
    (r"weights of this configuration have|\bweights$", "take a configuration with wider weights, "
                                                       "or quantize them to int8"),
    (r"computed at run time", "make them constants"),
    (r"is a real constant", "fold it into the layer before, or quantize it"),
    (r"too fine for the scale", "quantize weights to int8, and the bias with the product of the "
                                "scales of input and weights"),
    (r"repeated to meet|one side is constant", "give both sides one shape, or fold the constant "
                                               "into the layer before"),
    (r"no operator for it|has no quantized", "use another operation, or add an operator "
                                             "(docs/recipes.md)"),
    (r"tile fits|scratchpad|too small|takes .* bytes", "take a larger configuration"),
))


@dataclass
class ReasonGroup:
    """Nodes that fall back to the CPU for the same reason."""

    reason: str
    nodes: list[NodeReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def advice(self) -> str:
        """What a user can do; nothing if we do not know."""
        return next((advice for pattern, advice in ADVICE if pattern.search(self.reason)), "")

    def line(self) -> str:
        """The group in a line."""
        count = len(self.nodes)
        counts = Counter(each.operator for each in self.nodes).most_common()
        operators = [name if number == count else f"{number} {name}"
                     for name, number in counts[:MOST_OPERATORS]]
        more = ["…"] if len(counts) > MOST_OPERATORS else []
        time = [duration(self.seconds)] if self.seconds else []
        known = self.reason.removesuffix("; quantize the model")
        advice = f"; {self.advice}" if self.advice else ""
        return printable(f"{count} node{'s' * (count != 1)}: {known}{advice} "
                         f"({', '.join([*operators, *more, *time])})")


def group_reasons(nodes: Iterable[NodeReport],
                  times: Mapping[str, NodeTime] | None = None) -> list[ReasonGroup]:
    """Nodes on the CPU by reason, those that take longest first, then those with most nodes.
    Reasons that differ in numbers alone are one."""
    groups: dict[str, ReasonGroup] = {}
    for each in nodes:
        group = groups.setdefault(re.sub(r"\d+", "#", each.reason), ReasonGroup(each.reason))
        group.nodes.append(each)
        if each.reason != group.reason:
            group.reason = re.sub(r"\d+(, \d+)*", "…", each.reason)
        if times is not None and each.name in times:
            group.seconds += times[each.name].seconds or 0
    return sorted(groups.values(), key=lambda each: (-each.seconds, -len(each.nodes)))
