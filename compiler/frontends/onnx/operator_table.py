"""The operators that can be read, each with the attributes that it may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ....base.classes.dataclass import dataclass

if TYPE_CHECKING:
    from .call import Call

MICROSOFT = "com.microsoft"
DOMAINS = {"": "", "ai.onnx": ""}       # the same by two names
Handler = Callable[["Call"], None]


@dataclass(frozen=True)
class Operator:
    """How an operator is read."""

    name: str
    domain: str
    handler: Handler
    attributes: frozenset[str]
    versions: tuple[int, int]           # opsets in which it means this

    @property
    def title(self) -> str:
        return f"{self.domain}.{self.name}" if self.domain else self.name


OPERATORS: dict[tuple[str, str], Operator] = {}        # by domain and name


def operator(names: str, attributes: str = "", *, domain: str = "", since: int = 1,
             until: int = 99) -> Callable[[Handler], Handler]:
    """Register how the operators of these names are read; attributes are names too."""
    def register(handler: Handler) -> Handler:
        for name in names.split():
            assert (domain, name) not in OPERATORS, name
            OPERATORS[domain, name] = Operator(name, domain, handler,
                                               frozenset(attributes.split()), (since, until))
        return handler
    return register


def supported_operators() -> Iterator[str]:
    """The titles of all operators, in order."""
    yield from (each.title for _, each in sorted(OPERATORS.items()))
