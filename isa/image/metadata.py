"""What an image says about its program besides the bytes: canonical JSON, and its checks.

There is one text for one program, and a reader takes no other. Nothing in it is trusted.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import NoReturn

from ...base.checked_values import quote
from ...base.errors import ConfigError, ImageError
from ..config import Config
from ..program import SEGMENT_BYTES_LIMIT, Access, Program, Segment, Tensor
from ..stream import Stream
from .sections import Octets

TEXT_LIMIT = 8 << 20                # bytes; parsed, they take up to forty times as much
NAME_LIMIT = 1024                   # characters; converters join names, so they do grow long
SEGMENT_NAME_LIMIT = 64
PROVENANCE_LIMIT = 1 << 16          # characters of one entry
RANK_LIMIT = 64                     # extents of a tensor: NumPy's own
DIGITS_LIMIT = 19                   # of a number: what 64 bits can hold
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")   # all but tab and newline


def describe(program: Program) -> dict[str, object]:
    """The metadata of a program."""
    return {
        "config": program.config.explicit_fields(),
        "labels": {label: int(position) for label, position in program.labels.items()},
        "provenance": dict(program.provenance),
        "segments": [{"name": each.name, "size": each.size, "access": each.access.value}
                     for each in program.segments],
        "tensors": [{"name": each.name, "segment": each.segment, "offset": each.offset,
                     "shape": list(each.shape), "dtype": each.dtype}
                    for each in program.tensors],
    }


def text_of(metadata: object) -> bytes:
    """The one text that stands for it."""
    text = json.dumps(metadata, ensure_ascii=False, allow_nan=False, sort_keys=True,
                      separators=(",", ":")).encode()
    _check_size(len(text))
    return text


def parse(content: Octets) -> object:
    """The metadata in a text, which must be canonical: no key twice, no number but integers."""
    _check_size(len(content))
    text = content.tobytes()
    try:
        metadata = json.loads(text.decode(), parse_int=_number, parse_float=_no_number,
                              parse_constant=_no_number)
        canonical = text_of(metadata) == text
    except RecursionError:
        raise ImageError("section meta: nested too deeply") from None
    except ValueError as error:
        raise ImageError(f"section meta: {error}") from None
    if not canonical:
        raise ImageError("section meta: not in canonical form (keys sorted and unique, no spaces, "
                         "no escapes but the needed ones)")
    return metadata


def build(metadata: object, code: Stream, contents: Mapping[int, Octets]) -> Program:
    """The program that these make, `contents` being the data of segments by their index."""
    parts = _object(metadata, "meta", ("config", "labels", "provenance", "segments", "tensors"))
    segments = _list(parts["segments"], "segments")
    for index in contents:
        if index >= len(segments):
            raise ImageError(f"has data for segment {index}, but {len(segments)} segments")
    return Program(
        config=_config(parts["config"]),
        code=code,
        segments=tuple(_segment(each, f"segment {index}", contents.get(index))
                       for index, each in enumerate(segments)),
        tensors=tuple(_tensor(each, f"tensor {index}")
                      for index, each in enumerate(_list(parts["tensors"], "tensors"))),
        labels={_name(label, "a label"): _integer(position, f"label {label}")
                for label, position in _object(parts["labels"], "labels").items()},
        provenance={_name(key, "a key of provenance"): _text(value, f"provenance {key}")
                    for key, value in _object(parts["provenance"], "provenance").items()})


def _config(value: object) -> Config:
    known = dataclasses.fields(Config)
    omitted = tuple(each.name for each in known if each.metadata["omit_default"])
    fields = _object(value, "config", tuple(each.name for each in known), optional=omitted)
    try:
        config = Config(**{name: _integer(each, f"config: {name}")
                           for name, each in fields.items()})
    except ConfigError as error:
        raise ImageError(f"config: {error}") from None
    for name in fields:
        if name not in config.explicit_fields():
            raise ImageError(f"config: {name} is {fields[name]}, which is to be left out")
    return config


def _segment(value: object, place: str, data: Octets | None) -> Segment:
    fields = _object(value, place, ("access", "name", "size"))
    name = _name(fields["name"], f"{place}: name", SEGMENT_NAME_LIMIT)
    access = fields["access"]
    if access not in [each.value for each in Access]:
        raise ImageError(f"{place}: access is {quote(access)}, but must be "
                         f"{' or '.join(each.value for each in Access)}")
    return Segment(name, _integer(fields["size"], f"{place}: size"), Access(access), data)


def _tensor(value: object, place: str) -> Tensor:
    fields = _object(value, place, ("dtype", "name", "offset", "segment", "shape"))
    shape = _list(fields["shape"], f"{place}: shape")
    if len(shape) > RANK_LIMIT:
        raise ImageError(f"{place}: shape has {len(shape)} extents, but at most {RANK_LIMIT} are "
                         f"possible")
    return Tensor(name=_name(fields["name"], f"{place}: name"),
                  segment=_name(fields["segment"], f"{place}: segment"),
                  offset=_integer(fields["offset"], f"{place}: offset"),
                  shape=tuple(_integer(extent, f"{place}: shape") for extent in shape),
                  dtype=_name(fields["dtype"], f"{place}: dtype"))


def _object(value: object, place: str, keys: tuple[str, ...] | None = None, *,
            optional: tuple[str, ...] = ()) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ImageError(f"{place} is {quote(value)}, but must be an object")
    for key in keys or ():
        if key not in value and key not in optional:
            raise ImageError(f"{place} has no {key}")
    for key in value:
        if keys is not None and key not in keys:
            raise ImageError(f"{place} has {quote(key)}, but only {', '.join(keys)} are known")
    return value


def _list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise ImageError(f"{place} is {quote(value)}, but must be a list")
    return value


def _integer(value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or (
            not 0 <= value <= SEGMENT_BYTES_LIMIT):
        raise ImageError(f"{place} is {quote(value)}, but must be an integer from 0 to "
                         f"{SEGMENT_BYTES_LIMIT}")
    return value


def _name(value: object, place: str, limit: int = NAME_LIMIT) -> str:
    """What people and scripts call something. It is printed, so control characters are out."""
    if not isinstance(value, str) or not 1 <= len(value) <= limit or not value.isprintable():
        raise ImageError(f"{place} is {quote(value)}, but must have 1 to {limit} "
                         f"printable characters")
    return value


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or len(value) > PROVENANCE_LIMIT or CONTROL.search(value):
        raise ImageError(f"{place} is {quote(value)}, but must be a text of at most "
                         f"{PROVENANCE_LIMIT} characters, none a control character but tab and "
                         f"newline")
    return value


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= DIGITS_LIMIT else _no_number(digits)


def _no_number(digits: str) -> NoReturn:
    raise ValueError(f"{quote(digits)} is not an integer of at most {DIGITS_LIMIT} digits")


def _check_size(size: int) -> None:
    if size > TEXT_LIMIT:
        raise ImageError(f"section meta has {size} bytes, but at most {TEXT_LIMIT} are possible")
