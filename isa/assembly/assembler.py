"""The assembler: text to program. One statement a line, `;` opens a comment.

Directives begin with a dot. `.uops` and `.bytes` open the data of a segment, one micro-op or one
row of hexadecimal bytes a line; `.code` goes back to instructions. docs/isa.md shows the rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from ...base.argument_checks import check_type
from ...base.checked_values import quote, show_name
from ...base.errors import AssemblyError, MicrotronError
from ...base.keywords import check_keywords
from ...base.near_misses import hint
from ..config import PRESETS, Config, base
from ..config_files import from_dict
from ..instructions import INSTRUCTION_BYTES, ISA, Instruction, MicroOp, Sync
from ..program import TENSOR_TYPES, Access, Program, Segment, Tensor
from ..stream import Stream, as_bytes, encode, positions_of
from .lexer import assignments, number, unquote, unquote_name, words_of
from .operands import MICRO_OP, build_unchecked, parse_values
from .segment_text import Generated, SegmentText

RANK_LIMIT = 64                 # NumPy's
NO_CODE = encode(())

Instructions = Sequence[type[Instruction]]


@check_keywords
def assemble(text: str, *, place: str = "<text>", instructions: Instructions = ISA) -> Program:
    """Assemble a text into a Program. Errors say `place:line: what is wrong`."""
    check_type("text", text, str, "a string of assembly")
    assembler = _Assembler(instructions)
    try:
        for assembler.line, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
            if words := words_of(line):
                assembler.statement(words)
        return assembler.program()
    except MicrotronError as error:
        raise AssemblyError(f"{place}:{assembler.line}: {_one_line(error)}") from None


def parse_instruction(line: str, *, segments: Sequence[Segment] = (), place: str = "<text>",
                      number: int = 1, instructions: Instructions = ISA) -> Instruction:
    """The instruction of a line without labels; `number` is the line's in messages."""
    try:
        words = words_of(line)
        if not words:
            raise AssemblyError(f"no instruction{hint('', _by_mnemonic(instructions))}")
        kind = _kind(words[0], _by_mnemonic(instructions))
        return kind(**parse_values(kind, words, segments))
    except MicrotronError as error:
        raise AssemblyError(f"{place}:{number}: {_one_line(error)}") from None


def _one_line(error: MicrotronError) -> str:
    """A message that quotes a name with line breaks in it stays one line."""
    return " ".join(str(error).splitlines())


def _by_mnemonic(instructions: Instructions) -> dict[str, type[Instruction]]:
    return {kind.mnemonic(): kind for kind in instructions}


def _kind(word: str, known: dict[str, type[Instruction]]) -> type[Instruction]:
    mnemonic = word.partition(".")[0]
    if mnemonic not in known:
        raise AssemblyError(f"there is no instruction {quote(mnemonic)}{hint(mnemonic, known)}")
    return known[mnemonic]


class _Assembler:
    """What the statements so far have described."""

    def __init__(self, instructions: Instructions) -> None:
        self.line = 0
        self.kinds = _by_mnemonic(instructions)
        self.config: Config | None = None
        self.segments: list[Segment] = []
        self.contents: dict[str, SegmentText] = {}
        self.generated = Generated()
        self.tensors: dict[str, Tensor] = {}
        self.labels: dict[str, int] = {}
        self.provenance: dict[str, str] = {}
        self.code: list[Instruction] = []
        self.lines: list[int] = []              # of each instruction
        self.raw: dict[int, bytes] = {}         # instructions given by .word
        self.section = self._instruction        # what a line that is no directive means
        self.directives: dict[str, Callable[[list[str]], None]] = {
            ".config": self._config, ".provenance": self._provenance,
            ".segment": self._segment, ".tensor": self._tensor, ".uops": self._uops,
            ".bytes": self._bytes, ".code": self._code, ".word": self._word}

    def statement(self, words: list[str]) -> None:
        while words and words[0].endswith(":"):
            self._label(words[0][:-1])
            words = words[1:]
        if not words:
            return
        if words[0].startswith("."):
            if words[0] not in self.directives:
                raise AssemblyError(f"there is no directive {quote(words[0])}"
                                    f"{hint(words[0], self.directives)}")
            self.directives[words[0]](words)
        else:
            self.section(words)

    def _label(self, word: str) -> None:
        name = unquote_name(word, "label")
        self._require_code(f"label {show_name(name)}")
        if name in self.labels:
            raise AssemblyError(f"label {show_name(name)} is set twice")
        self.labels[name] = len(self.code)

    def _require_code(self, subject: str) -> None:
        if self.section != self._instruction:
            raise AssemblyError(f"{subject} stands in the data of a segment; write .code before it")

    def _instruction(self, words: list[str]) -> None:
        kind = _kind(words[0], self.kinds)
        self.code.append(build_unchecked(kind, parse_values(kind, words, self.segments)))
        self.lines.append(self.line)

    def _word(self, words: list[str]) -> None:
        """`.word 0b00…`: a word as bytes, mostly one that is not a valid instruction."""
        self._require_code(".word")
        data = _hexadecimal(words[1:])
        if len(data) != INSTRUCTION_BYTES:
            raise AssemblyError(f".word has {len(data)} bytes, but an instruction has "
                                f"{INSTRUCTION_BYTES}")
        self.raw[len(self.code)] = data
        self.code.append(Sync())            # keeps the place
        self.lines.append(self.line)

    def _code(self, words: list[str]) -> None:
        _require_count(words, 1)
        self.section = self._instruction

    def _config(self, words: list[str]) -> None:
        """`.config base batch=2`: a preset and what differs from it."""
        if self.config is not None:
            raise AssemblyError(".config is given twice")
        if len(words) < 2 or words[1] not in PRESETS:
            wrong = f"{quote(words[1])} is no preset" if words[1:] else "names no preset"
            raise AssemblyError(f".config: {wrong}{hint(words[1] if words[1:] else '', PRESETS)}")
        changed = assignments(words[2:], ".config", base.to_dict())
        self.config = from_dict({name: number(value, name) for name, value in changed.items()},
                                preset=PRESETS[words[1]], place=".config")

    def _provenance(self, words: list[str]) -> None:
        """`.provenance key "value"`"""
        _require_count(words, 3)
        key = unquote_name(words[1], "key")
        if key in self.provenance:
            raise AssemblyError(f".provenance {show_name(key)} is given twice")
        self.provenance[key] = unquote(words[2])

    def _segment(self, words: list[str]) -> None:
        """`.segment weights size=0x1000 access=read`"""
        name = words[1] if words[1:] else ""
        if not name.isidentifier():
            raise AssemblyError(f".segment: its name is {quote(name)}, but must be a plain word")
        place = f".segment {show_name(name)}"
        given = assignments(words[2:], place, ("size", "access"))
        access = given.get("access", Access.READ.value)
        if access not in [each.value for each in Access]:
            raise AssemblyError(f"{place}: access is {quote(access)}, but must be "
                                f"{' or '.join(each.value for each in Access)}")
        if "size" not in given:
            raise AssemblyError(f"{place}: size is missing")
        segment = Segment(name, number(given["size"], f"{place}: size"), Access(access))
        Program(base, NO_CODE, (*self.segments, segment))       # refuses doubles and a ninth
        self.segments.append(segment)

    def _tensor(self, words: list[str]) -> None:
        """`.tensor x segment=data offset=0x40 shape=1,16 dtype=int8`"""
        name = unquote_name(words[1] if words[1:] else "", "tensor")
        place = f".tensor {show_name(name)}"
        given = assignments(words[2:], place, ("segment", "offset", "shape", "dtype"))
        if "segment" not in given:
            raise AssemblyError(f"{place}: segment is missing")
        shape = tuple(number(each, f"{place}: shape") for each in given["shape"].split(",")
                      ) if "shape" in given else ()
        if len(shape) > RANK_LIMIT:
            raise AssemblyError(f"{place}: shape has {len(shape)} extents, but at most "
                                f"{RANK_LIMIT} are possible")
        dtype = given.get("dtype", Tensor.dtype)
        if dtype not in TENSOR_TYPES:
            raise AssemblyError(f"{place}: dtype is {quote(dtype)}{hint(dtype, TENSOR_TYPES)}")
        offset = number(given.get("offset", "0"), f"{place}: offset")
        tensor = Tensor(name, given["segment"], offset, shape, dtype)
        Program(base, NO_CODE, tuple(self.segments), (tensor,))      # refuses one outside
        if name in self.tensors:
            raise AssemblyError(f"{place} is given twice")
        self.tensors[name] = tensor

    def _uops(self, words: list[str]) -> None:
        content = self._open(words)

        def section(words: list[str]) -> None:
            if words[0] != MICRO_OP:
                raise AssemblyError(f"{quote(words[0])} stands among micro-ops; write "
                                    f"{MICRO_OP} dst=…, or .code before an instruction")
            content.add_micro_op(MicroOp(**parse_values(MicroOp, words)))

        self.section = section

    def _bytes(self, words: list[str]) -> None:
        content = self._open(words)

        def section(words: list[str]) -> None:
            if not any("*" in word for word in words):
                return content.add(_hexadecimal(words))
            for word in words:
                pattern, star, count = word.partition("*")
                content.add(_hexadecimal([pattern]), number(count, word) if star else 1)

        self.section = section

    def _open(self, words: list[str]) -> SegmentText:
        """`.uops weights+0x40`: the content of a segment, moved forward to an offset."""
        _require_count(words, 2)
        name, plus, offset = words[1].partition("+")
        found = {segment.name: segment for segment in self.segments}
        if name not in found:
            raise AssemblyError(f"segment {quote(name)} is not declared above{hint(name, found)}")
        content = self.contents.setdefault(name, SegmentText(found[name], self.generated))
        if plus:
            content.move(number(offset, "the offset"))
        return content

    def program(self) -> Program:
        segments = []
        for segment in self.segments:
            if content := self.contents.get(segment.name):
                segment = dataclasses.replace(segment, data=content.data())
            segments.append(segment)
        return Program(self.config or base, self._stream(), tuple(segments),
                       tuple(self.tensors.values()), self.labels, self.provenance)

    def _stream(self) -> Stream:
        """The code, with the rules of its instructions checked in bulk."""
        stream = encode(self.code)
        broken = []
        for kind in self.kinds.values():
            positions, words = positions_of(stream, kind)
            broken += [(positions[each], kind, words[each])
                       for each in kind.find_invalid(words)[:1]]
        for position, kind, word in sorted(broken, key=lambda each: int(each[0])):
            self.line = self.lines[position]
            kind.of(word)                   # says what is wrong
        for position, data in self.raw.items():
            as_bytes(stream)[position] = np.frombuffer(data, np.uint8)
        return stream


def _require_count(words: list[str], count: int) -> None:
    if len(words) != count:
        raise AssemblyError(f"{words[0]} takes {count - 1} words, but {len(words) - 1} follow it")


def _hexadecimal(words: list[str]) -> bytes:
    try:
        return bytes.fromhex(" ".join(words))
    except ValueError:
        raise AssemblyError(f"{quote(' '.join(words))} is not a row of bytes; write two "
                            f"hexadecimal digits for each, or .code before an instruction"
                            ) from None
