"""A tutorial as a list of blocks: prose, Python, commands, patches, and what is printed.

    ```python       runs; blocks of a page share their names
    ```text         what the block before it prints
    ```diff         a change to the sources, for `git apply -p0`
        $ command   runs; indented lines below it are what it prints
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FENCED = re.compile(r"^```(python|text|diff)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"(?:^    \$ .+\n(?:    (?!\$ ).+\n)*)+", re.MULTILINE)
COMMAND = re.compile(r"^    \$ (.+)\n((?:    (?!\$ ).+\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A part of a page. `printed` is None where the page does not say."""

    kind: str                   # prose, python, diff or command
    text: str
    printed: str | None = None


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    found: list[Block] = []
    position = 0
    for fence in FENCED.finditer(page):
        found += _plain(page[position:fence.start()])
        position = fence.end()
        if fence[1] == "text":
            index = max(number for number, each in enumerate(found) if each.kind != "prose")
            found[index] = Block(found[index].kind, found[index].text, fence[2])
        else:
            found.append(Block(fence[1], fence[2]))
    return found + _plain(page[position:])


def _plain(text: str) -> list[Block]:
    """Prose, and commands inside of it."""
    found: list[Block] = []
    position = 0
    for several in COMMANDS.finditer(text):
        found.append(Block("prose", text[position:several.start()]))
        position = several.end()
        for command, printed in COMMAND.findall(several[0]):
            shown = "".join(line[4:] for line in printed.splitlines(keepends=True))
            found.append(Block("command", command, shown or None))
    return [each for each in [*found, Block("prose", text[position:])]
            if each.kind != "prose" or each.text.strip()]
