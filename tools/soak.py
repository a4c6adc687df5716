"""Compares the hardware with its twin for as long as asked; `make soak` runs this.

    python tools/soak.py --programs 100000 --processes 2

Interrupted or run again with a larger number, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys

from microtron.base.processes import Signalled
from microtron.runtime.stopping import stopping_in_time
from microtron.testing.soak import Progress, progress_file, soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--programs", type=int, default=10_000, help="to have compared in all")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    try:
        with stopping_in_time():
            progress, difference = soak(options.programs, options.processes,
                                        lambda words: print(words, flush=True))
    except (KeyboardInterrupt, Signalled) as stop:
        print(f"interrupted; {summary(Progress(progress_file()))}")
        return int(stop.code or 0) if isinstance(stop, Signalled) else 130
    print(summary(progress))
    if difference:
        print(difference, file=sys.stderr)
    return 1 if difference else 0


def summary(progress: Progress) -> str:
    parts = ", ".join(f"{number} {name}" for name, number in progress.equal.items())
    return (f"rtl and cycle are equal in {progress.total} random programs, each with a memory of "
            f"its own: {parts}")


if __name__ == "__main__":
    sys.exit(main())
