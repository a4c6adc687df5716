"""`python -m microtron`: the command line."""

from .cli import main

main()
