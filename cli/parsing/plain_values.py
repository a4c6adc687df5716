"""Values of options that need no conversion: texts, paths and switches.

The parser converts every value with a validation library, which takes a tenth of a second to
import. Most values are of their type already, or become it by a call.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import typer

CONVERTED = "_runtime_param"        # of parsers that convert on demand; others do all at once


def convert_plainly(command: Any) -> None:
    """Let a command's parameters convert plain values on their own. What is not plain is left to
    the parser, complaints included."""
    for each in command.get_params(typer.Context(command)):
        if hasattr(each, CONVERTED) and getattr(each, CONVERTED) is None:
            setattr(each, CONVERTED, PlainValues(each))


class PlainValues:
    """Converts the values of one parameter."""

    def __init__(self, parameter: Any) -> None:
        self.parameter = parameter
        self.kind = _kind_of(parameter.type_descriptor.annotation)
        self.is_list = parameter.multiple or parameter.nargs == -1

    def coerce(self, value: Any, **place: Any) -> Any:
        """The value that the command gets, for the text that the user gave or a default."""
        if value is None or value == ():
            return () if self.is_list else None
        if not self.is_list and type(value) is self.kind:
            return value
        texts = value if self.is_list else [value]
        if self.kind not in (str, Path) or not all(map(self._is_plain, texts)):
            return self._parser_of_type().coerce(value, **place)
        found = [self.kind(each) for each in texts]
        return found if self.is_list else found[0]

    def _is_plain(self, text: object) -> bool:
        """Whether a text needs no check. Of a file that may not be read, the parser says so."""
        return type(text) is str and (self.kind is str or not os.path.exists(text)
                                      or os.access(text, os.R_OK))

    def _parser_of_type(self) -> Any:
        setattr(self.parameter, CONVERTED, None)
        try:
            return self.parameter.get_runtime_param()
        finally:
            setattr(self.parameter, CONVERTED, self)


def _kind_of(annotation: Any) -> Any:
    """The type of a value, or of the elements of a list of them, whether or not it may be left
    out."""
    if get_origin(annotation) is list:
        return _kind_of(get_args(annotation)[0])
    others = [each for each in get_args(annotation) if each is not NoneType]
    return _kind_of(others[0]) if len(others) == 1 else annotation
