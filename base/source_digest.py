"""A digest of modules and of everything of ours that they import: the key of a cache.

A list of sources kept by hand is wrong sooner or later, and then the cache is stale. Here the
sources follow from the imports, read statically: no module is run, and a caller need not be able
to import what it names. Included are

    the modules, and what they import at any depth, inside functions too
    the `__init__.py` of every package on the way, and what it imports at its top
    data files: a file or a folder beside a module that has its name in quotes

Imports for type checkers alone are left out. A module that is imported by a computed name
(`import_module`) is not seen: name it as another root. Whoever caches what it computes itself asks
for `source_digest(__name__)`.

Parsing takes a second, so the cache knows which files were found behind which modules. That list
holds as long as they have the same text and their folders the same names in them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .cache import Cache, cache_key

if TYPE_CHECKING:
    from .imports import Imports

PACKAGE = "microtron"
ROOT = Path(__file__).resolve().parents[1]
STARTED = time.time_ns()        # sources written later are not what this process runs
FOUND = Cache("sources", 16 << 20)
FINDERS = ("base/imports.py", "base/source_digest.py")      # what decides which files are found


def source_digest(*modules: str, root: Path = ROOT) -> str:
    """A digest that changes with the path or the text of any source of these modules. A process
    looks only once at its own."""
    return _tree(root).digest(modules)


def source_number(*modules: str) -> int:
    """The same as a number that a float holds exactly."""
    return int(source_digest(*modules)[:13], 16)


def source_files(*modules: str, root: Path = ROOT) -> list[Path]:
    """The sources and data files behind these modules, themselves included, in a fixed order."""
    return [root / each for each in _tree(root).files(modules)]


def external_packages(*modules: str, root: Path = ROOT) -> list[str]:
    """The other people's packages, by the first part of the name, that these modules import at any
    depth. Those of Python itself are left out."""
    names = {name.partition(".")[0] for name in _tree(root).imported_names(modules)}
    return sorted(names - {PACKAGE, "__future__"} - sys.stdlib_module_names)


class SourceTree:
    """Sources as they are when somebody first looks at them. Paths are relative to the root, with
    slashes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hashes: dict[str, bytes] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._imports: dict[str, Imports] = {}
        self._digests: dict[tuple[str, ...], str] = {}

    def digest(self, modules: tuple[str, ...]) -> str:
        found = self._digests.get(modules)
        if found is None:
            found = self._digests[modules] = self._digest_of(
                self._cached_files(modules) or self._find_files(modules))
        return found

    def _cached_files(self, modules: tuple[str, ...]) -> list[str] | None:
        """The files behind modules, if that is known from before and has not changed."""
        content = FOUND.get(self._key(modules))
        if content is None:
            return None
        known = json.loads(content)             # as we wrote it: its checksum is right
        try:
            return known["files"] if known["state"] == self._state(known["files"]) else None
        except OSError:                         # one of them is gone
            return None

    def _find_files(self, modules: tuple[str, ...]) -> list[str]:
        files = self.files(modules)
        FOUND.put(self._key(modules), json.dumps(
            {"files": files, "state": self._state(files)}).encode())
        return files

    def _key(self, modules: tuple[str, ...]) -> str:
        return cache_key("imports", str(self.root), *map(_ours._hash, FINDERS), *modules)

    def _state(self, files: Iterable[str]) -> str:
        """All that decides which files these are: their text, and names in their folders."""
        folders = sorted({each for path in files for each in _folders_above(path)})
        names = json.dumps([(folder, sorted(self._names_in(folder))) for folder in folders])
        return hashlib.sha256((self._digest_of(files) + names).encode()).hexdigest()

    def _digest_of(self, files: Iterable[str]) -> str:
        digest = hashlib.sha256()
        for path in files:
            digest.update(f"{path}\0".encode() + self._hash(path))
        return digest.hexdigest()

    def _hash(self, path: str) -> bytes:
        if path not in self._hashes:
            with open(self.root / path, "rb") as file:
                text = file.read()
                if STARTED < os.fstat(file.fileno()).st_mtime_ns <= time.time_ns():
                    text += os.urandom(16)          # a digest that nobody else will ask for
            self._hashes[path] = hashlib.sha256(text).digest()
        return self._hashes[path]

    def _names_in(self, folder: str) -> frozenset[str]:
        if folder not in self._names:
            try:
                names = os.listdir(self.root / folder)
            except OSError:
                names = []
            self._names[folder] = frozenset(names) - {"__pycache__"}
        return self._names[folder]

    def files(self, modules: tuple[str, ...]) -> list[str]:
        reach = self._reach(modules)
        return sorted({*reach, *(each for path in reach for each in self._data_files(path))})

    def imported_names(self, modules: tuple[str, ...]) -> set[str]:
        """The names of everything that is imported on the way."""
        return {name for path in self._reach(modules)
                for name in self._modules_to_follow(path, modules)}

    def _reach(self, modules: tuple[str, ...]) -> set[str]:
        """Every source that is read when these modules are imported and all their functions
        called."""
        for module in modules:
            if self._source_of(tuple(module.split("."))) is None:
                raise ValueError(f"there is no module {module!r} in {self.root}")
        found: set[str] = set()
        seen: set[str] = set()
        waiting = list(modules)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for path in self._sources_for(name):
                if path not in found:
                    found.add(path)
                    waiting += self._modules_to_follow(path, modules)
        return found

    def _modules_to_follow(self, path: str, modules: tuple[str, ...]) -> tuple[str, ...]:
        """A package that is only on the way to a module runs its top, and none of its functions."""
        if path not in self._imports:
            from .imports import imports_of  # most lists are known from before

            package = (PACKAGE, *path.split("/")[:-1])
            self._imports[path] = imports_of((self.root / path).read_bytes(), package)
        only_on_the_way = path.endswith("__init__.py") and path not in {
            self._source_of(tuple(module.split("."))) for module in modules}
        found = self._imports[path]
        return found.at_top if only_on_the_way else found.anywhere

    def _sources_for(self, name: str) -> Iterator[str]:
        """The source of a module, or of the module that has this member, and of its packages."""
        parts = tuple(name.split("."))
        for length in range(1, len(parts) + 1):
            path = self._source_of(parts[:length])
            if path is None:
                return              # a member of the module before
            yield path
            if not path.endswith("__init__.py"):
                return              # what follows is a member, whatever a folder holds

    def _source_of(self, module: tuple[str, ...]) -> str | None:
        first, *rest = module
        if first != PACKAGE:
            return None
        folder = "/".join(rest)
        if "__init__.py" in self._names_in(folder):
            return f"{folder}/__init__.py" if rest else "__init__.py"
        above = "/".join(rest[:-1])
        if rest and f"{rest[-1]}.py" in self._names_in(above):
            return f"{folder}.py"
        return None

    def _data_files(self, path: str) -> Iterator[str]:
        folder, text = path.rpartition("/")[0], (self.root / path).read_bytes()
        for name in self._names_in(folder):
            quoted = name.encode()
            if name.endswith(".py") or (
                    b'"%s"' % quoted not in text and b"'%s'" % quoted not in text):
                continue
            beside = self.root / folder / name
            if beside.is_file():
                yield f"{folder}/{name}" if folder else name
            elif not (beside / "__init__.py").exists():
                yield from (each.relative_to(self.root).as_posix() for each in beside.rglob("*")
                            if each.is_file() and each.suffix != ".pyc")


def _folders_above(path: str) -> Iterator[str]:
    """All folders on the way to a file, the root last."""
    while path:
        path = path.rpartition("/")[0]
        yield path or "."


_ours = SourceTree(ROOT)


def _tree(root: Path) -> SourceTree:
    return _ours if root == ROOT else SourceTree(root)
