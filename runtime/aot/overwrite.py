"""Files of a network for another processor are written over only if they were written by us.

`.microtron_objects` in the folder has the SHA-256 of each file that was: a file that is not in it,
or has changed since, is somebody else's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from ...base.atomic_files import write_atomically
from ...base.checked_values import list_names, show_name
from ...base.errors import MicrotronError

LEDGER = ".microtron_objects"
MOST_BYTES = 1 << 24            # of the ledger


def check_overwrites(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Refuse to write over files that are not ours."""
    known, foreign = read_ledger(folder), []
    for name, content in contents.items():
        path = folder / name
        if path.is_symlink() or path.exists():
            try:
                there = path.read_bytes()
            except OSError as error:
                raise MicrotronError(f"{path}: cannot be read: {error.strerror or error}") from None
            if there != content and known.get(name) != sha256(there).hexdigest():
                foreign.append(show_name(name))
    if foreign:
        raise MicrotronError(f"{folder}: {list_names(foreign)} would be written over, though "
                             "written or changed by somebody else; name another folder, or give "
                             "--force")


def read_ledger(folder: Path) -> dict[str, str]:
    """The digests of the files that were written into a folder, by name. A ledger that cannot be
    read says nothing."""
    try:
        with (folder / LEDGER).open("rb") as file:
            found = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return {name: digest for name, digest in found.items()
            if isinstance(digest, str)} if isinstance(found, dict) else {}


def update_ledger(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Remember what was written."""
    found = read_ledger(folder) | {name: sha256(content).hexdigest()
                                   for name, content in contents.items()}
    text = json.dumps(found, indent=1, sort_keys=True)
    write_atomically(folder / LEDGER, f"{text}\n".encode())
