"""After routing: the accelerator's clock by what it reached, set in the configuration's PLL.

Nothing is routed again: what was reached is that of these very wires.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from ..build.report import read_nextpnr_report
from ..facts.ecp5_pll import PllSettings, choose_settings
from ..facts.errors import BoardError

CLOCK = "accelerator_clk"           # what the net's name has in it, in netlists and reports
# Of the clock that was reached, where that is not the one that was wanted: nextpnr knows nothing of
# the jitter of a PLL.
MARGIN = 0.03
GROUP = ".tile_group "              # where a configuration has the words of a PLL
WORD = re.compile(r"word: (CLK(?:I|FB|OP|OS)_(?:DIV|CPHASE)) ([01]+)")


def set_clock(timing: str, config: str, oscillator_hz: int, wanted_hz: int, to: str,
              chosen: str) -> None:
    """The step after routing. If the accelerator has not reached the clock that was wanted, the
    fastest that its PLL makes below what it has reached, less the margin, is set."""
    reached = read_nextpnr_report(Path(timing), "ecp5", CLOCK).mhz
    text = Path(config).read_text(encoding="utf-8")
    settings, margin = choose_settings(oscillator_hz, wanted_hz), 0.0
    if reached * 1e6 < settings.hz:
        margin = MARGIN
        before, settings = settings, choose_settings(oscillator_hz, reached * 1e6 * (1 - margin))
        text = replace_settings(text, before, settings)
    Path(to).write_text(text, encoding="utf-8")
    Path(chosen).write_text(json.dumps({
        "hz": round(settings.hz), "margin": margin, "reached_mhz": reached}), encoding="utf-8")


def replace_settings(config: str, before: PllSettings, after: PllSettings) -> str:
    """A configuration as text, in which the one PLL with these settings has others."""
    lines = config.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.startswith(".")]
    old, new, found = _words(before), _words(after), 0
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        words = {match[1]: (number, match[2]) for number in range(start, end)
                 if (match := WORD.match(lines[number]))}
        there = {name: word for name, (_, word) in words.items()}
        if lines[start].startswith(GROUP) and there == old:
            found += 1
            for name, (number, _) in words.items():
                lines[number] = f"word: {name} {new[name]}\n"
    if found != 1:
        raise BoardError(f"the configuration has {found} PLLs that make {before.hz:,.0f} Hz of "
                         f"dividers {before}, but must have one")
    return "".join(lines)


def _words(settings: PllSettings) -> dict[str, str]:
    """Dividers as a configuration has them: one less, in seven bits; phases as they are."""
    return {name: f"{value - name.endswith('_DIV'):07b}"
            for name, value in settings.parameters.items()
            if isinstance(value, int) and name.endswith(("_DIV", "_CPHASE"))}
