"""The command that prints what a shell needs to complete commands and options."""

from __future__ import annotations

from typing import Annotated

import typer

from ...base.errors import MicrotronError
from ..files import write_text

Words = dict[str, list[str]]            # of each command, as "kernel conv2d": what may follow

BASH = """\
_microtron() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" words=""
    if [ "$command" = kernel ] && [ "$COMP_CWORD" -gt 2 ]; then
        command="kernel ${{COMP_WORDS[2]}}"
    fi
    if [ "$COMP_CWORD" -eq 1 ]; then
        command=""
    fi
    case "$command" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [ "${{word#-}}" = "$word" ] && [ -n "$command" ]; then
        COMPREPLY+=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _microtron microtron
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def completion(context: typer.Context, shell: Annotated[str, typer.Argument(
        metavar="SHELL", help="bash, zsh or fish.")] = "bash") -> None:
    """Print a script with which a shell completes options.

    For bash, put its output into ~/.local/share/bash-completion/completions/microtron; for zsh,
    into a file that ~/.zshrc sources; for fish, into ~/.config/fish/completions/microtron.fish.

    Example: microtron completion bash
    """
    if shell not in SHELLS:
        raise MicrotronError(f"there is no completion for {shell!r}, only for {', '.join(SHELLS)}")
    write_text(SHELLS[shell](words_of_commands(context.find_root().command)))


def words_of_commands(whole: object) -> Words:
    """What may follow each command: the names below it, and its options."""
    found: Words = {}

    def visit(name: str, command: object) -> None:
        below = getattr(command, "commands", {})
        options = [option for each in getattr(command, "params", ())
                   for option in (*each.opts, *each.secondary_opts) if option.startswith("--")]
        found[name] = [*below, *options, "--help"]
        for each, child in below.items():
            visit(f"{name} {each}".strip(), child)
    visit("", whole)
    return found


def _bash(words: Words) -> str:
    cases = "\n".join(f"        {_quote(name)}) words={_quote(' '.join(each))} ;;"
                      for name, each in words.items())
    return BASH.format(cases=cases)


def _fish(words: Words) -> str:
    lines = []
    for name, each in words.items():
        first, _, second = name.partition(" ")
        when = "__fish_use_subcommand" if not name else f"__fish_seen_subcommand_from {first}"
        if second:
            when += f"; and __fish_seen_subcommand_from {second}"
        for word in each:
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c microtron -n {_quote(when)} {kind}")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    return f"'{text}'"


SHELLS = {"bash": _bash, "zsh": lambda words: ZSH + _bash(words), "fish": _fish}
