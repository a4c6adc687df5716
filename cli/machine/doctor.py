"""The command that looks at the machine."""

from __future__ import annotations

import json

import typer

from ..files import AsJson, check_table, say, write_table
from ..options import TableFile

BROKEN = 1                  # exit code if something is missing that every command needs


def doctor(table: TableFile = None, as_json: AsJson = False) -> None:
    """Check what this machine has, and say how to get the rest.

    Tools, packages, cache and boards. Exit code 1 if something is missing that every command
    needs; what only some need is no error.

    Example: microtron doctor
    """
    from .checks import check_machine

    check_table(table)
    found = list(check_machine())
    facts = [{"name": each.name, "purpose": each.purpose, "ok": each.is_ok, "found": each.found,
              "fix": "" if each.is_ok else each.fix, "required": each.required} for each in found]
    write_table(table, facts, silent=as_json)
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        width = max(len(each.name) for each in found)
        for each in found:
            state = "ok" if each.is_ok else "MISSING" if each.required else "absent"
            said = each.found if each.is_ok else f"for {each.purpose}: {each.fix}"
            say(f"{state:<8}{each.name:<{width}}  {said}")
    if any(each.required and not each.is_ok for each in found):
        raise typer.Exit(BROKEN)
