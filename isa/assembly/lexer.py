"""Words of the assembly text: splitting a line, numbers, quoted strings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ...base.checked_values import quote, show_name
from ...base.errors import AssemblyError
from ...base.near_misses import hint

QUOTED = r'"(?:[^"\\]|\\.)*"'
WORD = re.compile(rf'(?:[^\s";]|{QUOTED})+')
SPACE_OR_COMMENT = re.compile(r"\s+|;.*", re.DOTALL)
PLAIN_NAME = re.compile(r"[^\W\d][\w./-]*")        # names that need no quotes: layer1.conv-2/bias
NUMBER = re.compile(r"[+-]?(?:0x[0-9a-fA-F]+|[0-9]+)")
NUMBER_LENGTH_LIMIT = 60        # digits; far beyond any field, and cheap to convert and to print

ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
UNESCAPES = {"\\": "\\", '"': '"', "n": "\n", "t": "\t"}
ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)


def words_of(line: str) -> list[str]:
    """The words of a line up to its comment. Inside quotes, blanks and semicolons are text."""
    if '"' not in line:
        return line.partition(";")[0].split()
    words, position = [], 0
    while position < len(line):
        if match := WORD.match(line, position):
            words.append(match[0])
        elif not (match := SPACE_OR_COMMENT.match(line, position)):
            raise AssemblyError(f"the quote at column {position + 1} is never closed")
        position = match.end()
    return words


def number(word: str, subject: str) -> int:
    """A decimal or 0x hexadecimal number."""
    if not NUMBER.fullmatch(word):
        raise AssemblyError(f"{subject} is {quote(word)}, but must be a number: 12, -12 or 0x1f")
    if len(word) > NUMBER_LENGTH_LIMIT:
        raise AssemblyError(f"{subject} is {quote(word)}, a number of {len(word)} digits, but at "
                            f"most {NUMBER_LENGTH_LIMIT} are read")
    return int(word, 16 if "x" in word else 10)


def quote_string(text: str) -> str:
    """Text as a word, whatever it holds: what cannot be printed becomes \\u{…}."""
    return '"' + "".join(ESCAPES.get(each) or (each if each.isprintable()
                                               else f"\\u{{{ord(each):x}}}")
                         for each in text) + '"'


def unquote(word: str) -> str:
    if not re.fullmatch(QUOTED, word, re.DOTALL):
        raise AssemblyError(f'{quote(word)} is not a text in quotes; write "…"')
    return ESCAPE.sub(_unescape, word[1:-1])


def _unescape(match: re.Match[str]) -> str:
    if match[1] is not None and int(match[1], 16) <= 0x10FFFF:
        return chr(int(match[1], 16))
    if match[2] in UNESCAPES:
        return UNESCAPES[match[2]]
    raise AssemblyError(f"{show_name(match[0])} in quotes means nothing; write \\\\ for a "
                        f"backslash, "
                        f'\\" for a quote, \\n, \\t or \\u{{hexadecimal}}')


def quote_name(name: str) -> str:
    """A name as a word: as it is where that can be read back, otherwise in quotes."""
    return name if PLAIN_NAME.fullmatch(name) else quote_string(name)


def unquote_name(word: str, subject: str) -> str:
    if word.startswith('"'):
        return unquote(word)
    if not PLAIN_NAME.fullmatch(word):
        raise AssemblyError(f"{subject} {quote(word)} is not a plain name; write it in quotes")
    return word


def assignments(words: Iterable[str], place: str, known: Collection[str]) -> dict[str, str]:
    """The `name=value` words of a statement."""
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise AssemblyError(f"{place}: {quote(word)} is not name=value without spaces")
        if name not in known:
            raise AssemblyError(f"{place} has no {quote(name)}{hint(name, known)}")
        if name in values:
            raise AssemblyError(f"{place}: {name} is given twice")
        values[name] = value
    return values
