"""Writes the tutorials as notebooks: a cell for each block."""

from __future__ import annotations

import json
from pathlib import Path

from tutorial_blocks import Block, blocks_of

from microtron.base.atomic_files import write_atomically

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def write_notebooks(folder: Path) -> None:
    """A notebook for each tutorial."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in TUTORIALS:
        write_atomically(folder / f"{page.stem}.ipynb",
                         notebook(page.read_text(encoding="utf-8")).encode())


def notebook(page: str) -> str:
    """A page as a notebook, in Jupyter's format."""
    cells = [_cell(block, number) for number, block in enumerate(blocks_of(page))]
    return json.dumps({
        "nbformat": 4, "nbformat_minor": 5, "cells": cells,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3",
                                    "language": "python"},
                     "language_info": {"name": "python"}}}, indent=1, ensure_ascii=False) + "\n"


def _cell(block: Block, number: int) -> dict[str, object]:
    common: dict[str, object] = {"id": f"cell-{number}", "metadata": {}}
    if block.kind == "prose":
        return {"cell_type": "markdown", "source": block.text.strip(), **common}
    text = {"python": block.text.rstrip(), "command": f"!{block.text}",
            "diff": f"%%bash\ngit apply -p0 - <<'END'\n{block.text}END"}[block.kind]
    return {"cell_type": "code", "source": text, "execution_count": None, "outputs": [], **common}
