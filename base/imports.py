"""What a module imports, read from its text without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .classes.dataclass import dataclass

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")   # of statements in a statement


@dataclass(frozen=True)
class Imports:
    """Absolute names, as `package.module` or `package.module.member`. Imports for type checkers
    alone are left out."""

    anywhere: tuple[str, ...]
    at_top: tuple[str, ...]         # outside of functions


def imports_of(text: bytes, package: tuple[str, ...]) -> Imports:
    """The imports of a module that is in this package."""
    tree = ast.parse(text)
    return Imports(tuple(_imports(tree, package, inside_functions=True)),
                   tuple(_imports(tree, package, inside_functions=False)))


def _imports(node: ast.AST, package: tuple[str, ...], *, inside_functions: bool) -> Iterator[str]:
    """Absolute names of what a module of `package` imports when it runs."""
    for child in _statements(node):
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


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for block in BLOCKS:
        yield from getattr(node, block, ())


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
