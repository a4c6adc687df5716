"""Settings of nextpnr's router2 that it has no options for: it reads them from the netlist.

What a wire costs is its delay, times 1 + price × its other users, times 1 + history, where the
price grows in each round by GROWTH. After some ten rounds with nextpnr's own growth, a free wire
anywhere is cheaper than one in use beside the sink, so what conflicts in the last rounds is led far
around (docs/measured.md). `slim` on the ECPIX-5 ends after 52 rounds with these; `small` on the
ULX3S, which ends with nextpnr's own, does not. Only systems with two clocks have them.
"""

from __future__ import annotations

import json
from pathlib import Path

from ...base.atomic_files import write_atomically

SETTINGS = {
    "router2/initCurrCongWeight": "1.0",        # the first price; 0.5 unless set
    "router2/currCongWeightMult": "1.0",        # GROWTH; 2.0 unless set
}


def write_settings(source: str | Path, to: str | Path) -> None:
    """The netlist with the settings, which nextpnr takes from its top module."""
    design = json.loads(Path(source).read_text(encoding="utf-8"))
    for module in design["modules"].values():
        if int(module.get("attributes", {}).get("top", "0"), 2):
            module["settings"] = SETTINGS
    write_atomically(Path(to), json.dumps(design).encode())
