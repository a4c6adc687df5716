"""Tests compute everything, whatever was kept: some of them change parts of the compiler."""

import os

os.environ["MICROTRON_ANEW"] = "1"          # also for the commands that they start
