"""Runs inside nextpnr after routing (`--post-route`), whose Python has `ctx` and no module of ours.

It writes cells, their pins and every switch of every net to routing.txt, a line each, with tabs:

    cell  NAME  TYPE  BEL  PARAMETERS  PINS THAT A LUT READS
    net  NAME
    from  CELL  PORT  WIRE
    to  CELL  PORT  WIRE
    pip  NAME
"""

ctx = globals()["ctx"]        # nextpnr's, there before this runs
CONSTANTS = ("$PACKER_GND_NET", "$PACKER_VCC_NET")
LUT = "SLICE_LUTX"


def dump_cells(lines: list[str]) -> None:
    for name, cell in ctx.cells:
        kind = str(cell.type)
        parameters = "" if kind in (LUT, "PS7_PS7") else " ".join(
            f"{key}={value}" for key, value in cell.params)
        # Two LUTs may share a place and its pins: these are the ones that the function depends on.
        reads = " ".join(str(key)[-2:] for key, _ in cell.attrs
                         if str(key).startswith("X_ORIG_PORT_A")) if kind == LUT else ""
        lines.append(f"cell\t{name}\t{kind}\t{cell.bel}\t{parameters}\t{reads}\n")


def dump_nets(lines: list[str]) -> None:
    for name, net in ctx.nets:
        if name in CONSTANTS or net.driver.cell is None:
            continue
        lines.append(f"net\t{name}\n")
        for word, pin in (("from", net.driver), *(("to", user) for user in net.users)):
            wire = ctx.getBelPinWire(pin.cell.bel, pin.port)
            lines.append(f"{word}\t{pin.cell.name}\t{pin.port}\t{wire}\n")
        lines.extend(f"pip\t{each.pip}\n" for _, each in net.wires)


def main() -> None:
    lines: list[str] = []
    dump_cells(lines)
    dump_nets(lines)
    with open("routing.txt", "w", encoding="utf-8") as file:
        file.writelines(lines)


main()
