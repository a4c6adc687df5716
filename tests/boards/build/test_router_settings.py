"""nextpnr's router gets its settings through the netlist."""

from __future__ import annotations

import json

from microtron.boards.build.router_settings import write_settings
from microtron.boards.ecp5.ecp5_flow import ROUTER


def test_the_top_module_gets_settings_and_nothing_else_changes(tmp_path):
    design = {"modules": {"top": {"attributes": {"top": "00000000000000000000000000000001"},
                                  "cells": {}},
                          "LUT4": {"attributes": {"blackbox": "1"}, "cells": {}},
                          "plain": {"cells": {}}}}
    source, to = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text(json.dumps(design))
    write_settings(source, to, {"estimateWeight": "1.5"})
    found = json.loads(to.read_text())
    assert found["modules"]["top"].pop("settings") == {"router2/estimateWeight": "1.5"}
    assert found == design


def test_settings_are_texts_that_nextpnr_does_not_take_for_bits():
    """A text of nothing but 0, 1, x and z is a number in binary there."""
    for value in ROUTER.values():
        assert float(value) > 0
        assert set(value) - set("01xz")
