"""A digest of modules and of everything of ours that they import: the key of a cache.

A list of sources kept by hand is wrong sooner or later, and then the cache is stale. Here the
sources follow from the imports, read statically: no module is run, so a key costs milliseconds and
a caller need not be able to import what it names. Included are

    the modules, and what they import at any depth, inside functions too
    the `__init__.py` of every package on the way, and what it imports at its top
    data files: a string in a module that names a file or a folder beside it

Imports for type checkers alone are left out. A module that is imported by a computed name
(`import_module`) is not seen: name it as another root.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PACKAGE = "microtron"
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Scan:
    """What one source says: names that it imports, as `package.module` or `package.module.member`,
    and its string constants."""

    imports: tuple[str, ...]
    imports_at_top: tuple[str, ...]
    strings: tuple[str, ...]


def source_digest(*modules: str, root: Path = ROOT) -> str:
    """A digest that changes with the path or the text of any source of these modules."""
    digest = hashlib.sha256()
    for path in source_files(*modules, root=root):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def source_files(*modules: str, root: Path = ROOT) -> list[Path]:
    """The sources and data files behind these modules, themselves included, in a fixed order."""
    files: set[Path] = set()
    for path, scan in _reach(modules, root).items():
        files |= {path, *_data_files(path, scan)}
    return sorted(files)


def external_packages(*modules: str, root: Path = ROOT) -> list[str]:
    """The other people's packages, by the first part of the name, that these modules import at any
    depth. Those of Python itself are left out."""
    names = {name.partition(".")[0] for path, scan in _reach(modules, root).items()
             for name in _followed(path, scan, modules, root)}
    return sorted(names - {PACKAGE, "__future__"} - sys.stdlib_module_names)


def _reach(modules: tuple[str, ...], root: Path) -> dict[Path, Scan]:
    """Every source that is read when these modules are imported and all their functions called."""
    found: dict[Path, Scan] = {}
    waiting = list(modules)
    for module in modules:
        if _source_of(module, root) is None:
            raise ValueError(f"there is no module {module!r} in {root}")
    while waiting:
        name = waiting.pop()
        for path in _sources_for(name, root):
            if path not in found:
                found[path] = scan = _scan(path, path.read_bytes(), root)
                waiting += _followed(path, scan, modules, root)
    return found


def _followed(path: Path, scan: Scan, modules: tuple[str, ...], root: Path) -> tuple[str, ...]:
    """A package that is only on the way to a module runs its top, and none of its functions."""
    only_on_the_way = path.name == "__init__.py" and path not in {
        _source_of(module, root) for module in modules}
    return scan.imports_at_top if only_on_the_way else scan.imports


def _sources_for(name: str, root: Path) -> Iterator[Path]:
    """The source of a module, or of the module that has this member, and of its packages."""
    parts = name.split(".")
    if parts[0] != PACKAGE:
        return
    for length in range(1, len(parts) + 1):
        path = _source_of(".".join(parts[:length]), root)
        if path is None:
            return              # a member of the module before
        yield path


def _source_of(module: str, root: Path) -> Path | None:
    first, *rest = module.split(".")
    place = root.joinpath(*rest)
    if first != PACKAGE:
        return None
    for path in (place / "__init__.py", place.with_name(f"{place.name}.py") if rest else place):
        if path.is_file():
            return path
    return None


def _data_files(path: Path, scan: Scan) -> Iterator[Path]:
    for text in scan.strings:
        beside = path.parent / text
        if beside.is_file() and beside.suffix != ".py":
            yield beside
        elif beside.is_dir() and not (beside / "__init__.py").exists():
            yield from (each for each in beside.rglob("*")
                        if each.is_file() and each.suffix != ".pyc")


@lru_cache(maxsize=1024)
def _scan(path: Path, text: bytes, root: Path) -> Scan:
    package = (PACKAGE, *path.parent.relative_to(root).parts)
    tree = ast.parse(text, filename=str(path))
    names = {node.value for node in ast.walk(tree)
             if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return Scan(tuple(_imports(tree, package, inside_functions=True)),
                tuple(_imports(tree, package, inside_functions=False)),
                tuple(sorted(name for name in names if _may_be_a_file(name))))


def _may_be_a_file(text: str) -> bool:
    return 0 < len(text) < 100 and text.isprintable() and "/" not in text and text.strip(".") != ""


def _imports(node: ast.AST, package: tuple[str, ...], *, inside_functions: bool) -> Iterator[str]:
    """Absolute names of what a module of `package` imports when it runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            above = package[:len(package) - child.level + 1] if child.level else ()
            base = ".".join((*above, *([child.module] if child.module else [])))
            yield from (f"{base}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            otherwise = ast.Module(child.orelse, [])
            yield from _imports(otherwise, package, inside_functions=inside_functions)
        elif inside_functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(child, package, inside_functions=inside_functions)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
