"""Settings of nextpnr's router2 that it has no options for: it reads them from the netlist.

What a wire costs is its delay, times 1 + price × its other users, times 1 + history, where the
price starts at `initCurrCongWeight` and grows by `currCongWeightMult` in each round. The search
adds an estimate of what is left to the sink, times `estimateWeight`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ...base.atomic_files import write_atomically


def write_settings(source: str | Path, to: str | Path, settings: Mapping[str, str]) -> None:
    """The netlist with settings of router2, by their names there, which nextpnr takes from its top
    module."""
    design = json.loads(Path(source).read_text(encoding="utf-8"))
    for module in design["modules"].values():
        if int(module.get("attributes", {}).get("top", "0"), 2):
            module["settings"] = {f"router2/{name}": value for name, value in settings.items()}
    write_atomically(Path(to), json.dumps(design).encode())
