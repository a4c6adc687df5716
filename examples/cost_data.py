"""Collects data for a cost model: a call of `microtron dataset` with layers and configurations of
its own.

    python examples/cost_data.py cost_data.csv
    python examples/cost_data.py cost_data.parquet --schedules 20 --workers 4

Every row has the layer, the configuration, the schedule and the memory, the work and the bounds of
the layer, features for a cost model, and what it costs: exact cycles and all counters.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

LAYERS = (
    {"operator": "conv2d", "height": 14, "width": 14, "channels_in": 64, "channels_out": 64,
     "pad": 1},
    {"operator": "conv2d", "height": 14, "width": 14, "channels_in": 64, "channels_out": 128,
     "kernel": 1},
    {"operator": "dense", "rows": 1, "inputs": 128, "outputs": 100})
CONFIGS = ("small", "base", "wide")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        layers = Path(folder) / "layers.json"
        layers.write_text(json.dumps(LAYERS), encoding="utf-8")
        return subprocess.run([
            sys.executable, "-m", "microtron", "dataset", "--layers", str(layers),
            *(f"--config={name}" for name in CONFIGS), "--schedules=6", "--memories=2",
            *sys.argv[1:]]).returncode          # what is given twice counts as it was given last


if __name__ == "__main__":
    sys.exit(main())
