"""The list of commands in the help, by what people want to do."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

GROUPS = {
    "Networks": ("quantize", "compile", "inspect", "run", "profile", "report", "firmware"),
    "Operators and programs": ("kernel", "asm", "disasm", "verify"),
    "Accelerator": ("config", "isa", "verilog", "compare"),
    "Boards": ("boards", "build", "selftest"),
    "Exploration": ("tune", "explore", "dataset", "fit", "records"),
    "This machine": ("doctor", "completion"),
}


class GroupedCommands(TyperGroup):
    """Lists commands in groups; those of no group come last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rest = [name for name in self.list_commands(ctx)
                if not any(name in names for names in GROUPS.values())]
        width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        for title, names in {**GROUPS, "Other": tuple(rest)}.items():
            found = [(name, command) for name in names
                     if (command := self.get_command(ctx, name)) is not None and not command.hidden]
            if found:
                with formatter.section(title):
                    formatter.write_dl([(name, each.get_short_help_str(width))
                                        for name, each in found])
