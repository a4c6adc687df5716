"""`microtron` and `python -m microtron`: the command line."""

import sys

INTERRUPTED = 130           # what shells say of a process that was ended by Ctrl-C


def main() -> None:
    try:
        from .cli.main import main as run_command_line
    except KeyboardInterrupt:           # while modules are imported, nobody else answers it
        sys.stderr.write("microtron: interrupted\n")
        sys.exit(INTERRUPTED)
    run_command_line()


if __name__ == "__main__":
    main()
