"""Names for objects of numba and LLVM, which come without types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Library: TypeAlias = Any                # a part of numba
Function: TypeAlias = Callable[..., Any]
Builder: TypeAlias = Any                # writes LLVM instructions
Word: TypeAlias = Any                   # a value of LLVM: a number, an address, a vector of lanes
Words: TypeAlias = Sequence[Word]
LlvmType: TypeAlias = Any
Kind: TypeAlias = Any                   # numba's type of an argument
Context: TypeAlias = Any                # numba's, while it compiles
Signature: TypeAlias = Any
Intrinsic: TypeAlias = tuple[Signature, Callable[..., Word]]
Kernel: TypeAlias = Any                 # a compiled function: numba's object, which can be called
