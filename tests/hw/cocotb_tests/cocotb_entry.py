"""Where the simulator enters Python: cocotb, which rewrites assertions in our tests alone.

By itself it has pytest rewrite every module that is imported afterwards, NumPy and numba included,
which takes seconds where bytecode is not cached.
"""

import cocotb
from cocotb import _filter_from_c, _log_from_c, _sim_event  # noqa: F401  # the simulator's
from cocotb.regression import RegressionManager


def start(arguments):
    """Start cocotb's regression."""
    RegressionManager._setup_pytest_assertion_rewriting = _rewrite_assertions
    cocotb._initialise_testbench(arguments)


def _rewrite_assertions(test_modules):
    from _pytest.assertion import install_importhook
    from _pytest.config import Config

    install_importhook(Config.fromdictargs({}, ["--capture=no", "-o", "python_files=cocotb_*.py"]))
