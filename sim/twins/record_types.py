"""Types for the data of twins: NumPy records with named fields."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
MicroOps: TypeAlias = npt.NDArray[np.uint16]        # a row of fields for each tile
OneRecord: TypeAlias = Any      # an array of one record, which compiled code treats as a record


class Register(int):
    """A number or, if it is `storage`, a list of numbers. Only type checkers see this class."""

    def __getitem__(self, place: int) -> int:
        raise TypeError("a register of a record is meant")

    def __setitem__(self, place: int, number: int) -> None:
        raise TypeError("a register of a record is meant")


class Unit(Protocol):
    """The registers of one unit (see `registers.Registers`)."""

    def __getattr__(self, name: str) -> Register: ...
    def __setattr__(self, name: str, number: int) -> None: ...


class Machine(Protocol):
    """All units, by their names in `top.LAYOUT`."""

    def __getattr__(self, name: str) -> Unit: ...


class Machines(Protocol):
    """Several machines."""

    @overload
    def __getitem__(self, number: int) -> Machine: ...
    @overload
    def __getitem__(self, number: slice) -> Machines: ...


class Wires(Protocol):
    """The signals of one cycle, `top.WIRES`."""

    def __getattr__(self, name: str) -> int: ...
    def __setattr__(self, name: str, number: int) -> None: ...


class Settings(Protocol):
    """Constants of a run: `top.SETTINGS` of the accelerator, `top.TIMING` of memory, or
    `decode.ROW` of an instruction."""

    def __getattr__(self, name: str) -> int: ...


class Code(Protocol):
    """The instructions of a program, by position."""

    def __getitem__(self, position: int) -> Settings: ...


class Row(Protocol):
    """`decode.ROW` of an instruction, to be filled."""

    def __getattr__(self, name: str) -> int: ...
    def __setattr__(self, name: str, number: int) -> None: ...


class Rows(Protocol):
    """The same of a program, by position."""

    def __getitem__(self, position: int) -> Row: ...
    def __len__(self) -> int: ...
