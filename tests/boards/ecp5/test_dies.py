"""The places of multipliers and block RAMs: nextpnr knows the same."""

import json
import subprocess

import pytest

from microtron.boards.build.tools import NEXTPNR_ECP5, find_tool
from microtron.boards.ecp5.dies import DIES

BLOCKS = {"MULT18X18D": {"12": 28, "25": 28, "45": 72, "85": 156},
          "DP16KD": {"12": 56, "25": 56, "45": 108, "85": 208}}


def cell(kind, place):
    return {"type": kind, "parameters": {}, "attributes": {"BEL": place}, "connections": {},
            "port_directions": {}}


def placed(folder, die, cells):
    module = {"attributes": {"top": "1"}, "ports": {}, "cells": cells, "netnames": {}}
    (folder / "design.json").write_text(json.dumps({"modules": {"top": module}}))
    return subprocess.run([*find_tool(NEXTPNR_ECP5).command, f"--{die}k", "--json", "design.json",
                           "--no-route", "--lpf-allow-unconstrained"],
                          cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("kind", "die"), [(kind, die) for kind in BLOCKS for die in DIES])
def test_a_die_has_as_many_places_as_its_part(kind, die):
    sites = DIES[die].sites(kind)
    assert len({site.name for site in sites}) == len(sites) == BLOCKS[kind][die]


@pytest.mark.soak
@pytest.mark.parametrize("die", sorted(DIES))
def test_nextpnr_has_every_place(die, tmp_path):
    cells = {site.name: cell(kind, site.name) for kind in BLOCKS for site in DIES[die].sites(kind)}
    done = placed(tmp_path, die, cells)
    assert done.returncode == 0, done.stderr
    done = placed(tmp_path, die, {**cells, "other": cell("DP16KD", "X1/Y1/EBR0")})
    assert done.returncode, "there is no such place, and nextpnr says so"
