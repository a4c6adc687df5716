"""Tools in processes of their own."""

import resource
import sys

from microtron.base.processes import STACK, run_tool


def test_a_tool_has_a_large_stack_and_we_keep_ours():
    before = resource.getrlimit(resource.RLIMIT_STACK)
    done = run_tool([sys.executable, "-c", "import resource\n"
                     "print(*resource.getrlimit(resource.RLIMIT_STACK))"])
    soft, hard = map(int, done.stdout.split())
    assert resource.getrlimit(resource.RLIMIT_STACK) == before
    assert hard == before[1]
    assert soft in (resource.RLIM_INFINITY, hard) or soft >= min(STACK, before[1] % (1 << 64))
