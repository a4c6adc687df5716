"""Type aliases for objects of numba and LLVM, which have no type annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...base.numba_cache import Compiled

Library: TypeAlias = Compiled           # a part of numba, or one of its objects
Function: TypeAlias = Callable[..., Library]
Builder: TypeAlias = Library            # writes LLVM instructions
Word: TypeAlias = Library               # a value of LLVM: a number, an address, a vector of lanes
Words: TypeAlias = Sequence[Word]
LlvmType: TypeAlias = Library
Kind: TypeAlias = Library               # numba's type of an argument
Context: TypeAlias = Library            # numba's, while it compiles
Signature: TypeAlias = Library
Intrinsic: TypeAlias = tuple[Signature, Callable[..., Word]]
Kernel: TypeAlias = Library             # a compiled function: numba's object, which can be called
