"""A made-up database in the format of Project X-Ray: two tiles of logic, a RAM, an alias."""

import json

PART, DEVICE = "xc7z999clg1-1", "xc7z999"
GRID = {
    "CLB_X0Y0": {"type": "CLB", "bits": {
        "CLB_IO_CLK": {"baseaddr": "0x00000100", "frames": 4, "offset": 0, "words": 2}}},
    "CLB_X0Y1": {"type": "CLB", "bits": {
        "CLB_IO_CLK": {"baseaddr": "0x00000100", "frames": 4, "offset": 2, "words": 2}}},
    "BRAM_X1Y0": {"type": "BRAM", "bits": {
        "CLB_IO_CLK": {"baseaddr": "0x00000200", "frames": 2, "offset": 50, "words": 10},
        "BLOCK_RAM": {"baseaddr": "0x00800000", "frames": 3, "offset": 50, "words": 10}}},
    "HALF_X2Y0": {"type": "HALF", "bits": {
        "CLB_IO_CLK": {"baseaddr": "0x00000300", "frames": 1, "offset": 99, "words": 2,
                       "alias": {"type": "WHOLE", "sites": {"SITE_Y0": "SITE_Y1"},
                                 "start_offset": 2}}}},
    "WIRES_X3Y0": {"type": "WIRES", "bits": {}},
    "CENTER_X4Y0": {"type": "CENTER", "bits": {
        "CLB_IO_CLK": {"baseaddr": "0x00000400", "frames": 1, "offset": 0, "words": 1}}},
}
FILES = {
    "segbits_clb.db": "CLB.LUT.INIT[00] 00_00\nCLB.LUT.INIT[01] 00_01\nCLB.LUT.INIT[02] 03_63\n"
                      "CLB.MUX.A !01_05 01_06\nCLB.MUX.B 01_05 !01_06\nCLB.FF 02_31 02_32\n",
    "ppips_clb.db": "CLB.OUT.IN always\nCLB.OUT.OTHER hint\n",
    "segbits_bram.db": "BRAM.RAM_Y0.IN_USE 01_10\n",
    "segbits_bram.block_ram.db": "BRAM.RAM_Y0.INIT_00[000] 00_00\n"
                                 "BRAM.RAM_Y0.INIT_00[255] 02_319\n",
    "segbits_whole.db": "WHOLE.SITE_Y1.ON 00_70\nWHOLE.SITE_Y0.ON 00_71\n",
    "ppips_wires.db": "WIRES.A.B default\n",
    "segbits_center.db": "CENTER.ALWAYS 00_07\n",
    f"{DEVICE}/tilegrid.json": json.dumps(GRID),
    f"{PART}/part.yaml": "idcode: 1\n",
    f"{PART}/required_features.fasm": "CENTER_X4Y0.ALWAYS\n",
    f"{DEVICE}clg1-2/part.yaml": "idcode: 1\n",
}


def write_database(folder, **changes):
    """Make it in a folder; `None` as a change leaves a file out."""
    for name, text in {**FILES, **changes}.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder
