"""Boards by name, from the files that come with the kit, or from a user's own file."""

from __future__ import annotations

from pathlib import Path

from ...isa.text import near
from ...isa.values import shown
from .board import Board, load_board
from .checks import check_board
from .errors import BoardError

FILES = Path(__file__).parent / "files"


def names() -> list[str]:
    return sorted(path.stem for path in FILES.glob("*.toml"))


def board(name: str) -> Board:
    """One that comes with the kit, or the one that a .toml file describes."""
    if name in names():
        return _checked(FILES / f"{name}.toml")
    if name.endswith(".toml"):
        return _checked(Path(name))
    known = names()
    raise BoardError(f"there is no board {shown(name)}; there are {', '.join(known)}, or give a "
                     f".toml file of your own{near(name, known)}")


def _checked(path: Path) -> Board:
    found = load_board(path)
    check_board(found, str(path))
    return found


def boards() -> list[Board]:
    return [board(name) for name in names()]
