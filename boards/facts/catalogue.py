"""Boards by name, from the files that come with the kit, or from a user's own file."""

from __future__ import annotations

from pathlib import Path

from ...base.checked_values import quote
from ...base.near_misses import near
from .board import KIT, Board, load_board
from .checks import check_board
from .errors import BoardError

FILES = KIT


def board_names() -> list[str]:
    return sorted(path.stem for path in FILES.glob("*.toml"))


def find_board(name: str) -> Board:
    """One that comes with the kit, or the one that a .toml file describes."""
    if name in board_names():
        return _load_and_check(FILES / f"{name}.toml")
    if name.endswith(".toml"):
        return _load_and_check(Path(name))
    known = board_names()
    raise BoardError(f"there is no board {quote(name)}; there are {', '.join(known)}, or give a "
                     f".toml file of your own{near(name, known)}")


def _load_and_check(path: Path) -> Board:
    found = load_board(path)
    check_board(found, str(path))
    return found


def load_boards() -> list[Board]:
    return [find_board(name) for name in board_names()]
