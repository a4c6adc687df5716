"""`dataclass` as in the standard library, with methods that are made when they are first used.

The standard library compiles up to six methods of every class while it is imported. A command
imports some 350 classes and uses the methods of a third of them: that took a fifth of a second.
Classes are the same otherwise, and those of the two kinds may inherit from each other.

`unguarded` is for small things that a compiler builds by the hundred thousand. With `frozen`, types
say that nobody changes them, and the running program does not look: instances take half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
    from dataclasses import dataclass as unguarded
else:
    from .lazy_methods import dataclass, unguarded

__all__ = ["dataclass", "unguarded"]
