"""How many places of LUTs a Gowin design takes, with those that registers stand in.

A register's input comes from the LUT in front of it, which nothing else can have then: one that
another cell drives takes that place as well. Registers alone, or LUTs alone, may seem to fit when
both together do not, and nextpnr searches on and on.
"""

from __future__ import annotations

import json
from pathlib import Path

from ...base.checked_values import PlainData
from ..build import cell_count
from ..facts.errors import BoardError

LOGIC = ("LUT", "ALU")          # whose output may go straight into the register behind it
REGISTER = "DFF"
LUT_RAM = "RAM16SDP"
DATA = "D"                      # the input of a register


def count_lut_sites(module: PlainData) -> int:
    """The least that a module, as Yosys writes it to JSON, takes; nextpnr adds a few for carries
    that begin or end in other logic."""
    drivers: dict[int | str, tuple[str, str]] = {}
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                drivers.update(dict.fromkeys(bits, (name, cell["type"])))
    taken, followed = 0, set()          # the logic that has its register already
    for cell in module["cells"].values():
        kind = cell["type"]
        if kind.startswith(REGISTER):
            name, source = drivers.get(cell["connections"][DATA][0], ("", ""))
            alone = not source.startswith(LOGIC) or name in followed
            followed.add(name)
            taken += alone
        elif kind.startswith(LUT_RAM):
            taken += int(cell_count.WEIGHTS["lut"][kind])
        else:
            taken += kind.startswith(LOGIC)
    return taken


def check_fit(netlist: str, top: str, board: str, device: str, available: dict[str, int]) -> None:
    """The step of a build: counts as on other parts, but of LUTs, places."""
    cell_count.check_fit("gowin", board, device, available)
    module = json.loads(Path(netlist).read_text(encoding="utf-8"))["modules"][top]
    taken = count_lut_sites(module)
    if taken > available["lut"]:
        raise BoardError(f"{board}: the design does not fit: it takes {taken:,} places of LUTs, "
                         f"with those of registers that other cells drive, but {device} has "
                         f"{available['lut']:,}")
    area = Path("area.json")
    area.write_text(json.dumps({**json.loads(area.read_text(encoding="utf-8")), "lut": taken}),
                    encoding="utf-8")
