"""The container of an image: its layout, and that it takes no other."""

import hashlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microtron.base.errors import ImageError
from microtron.isa.image import sections
from microtron.isa.image.sections import ENTRY, HEADER, Section, pack, unpack


def octets(content):
    return np.frombuffer(content, np.uint8)


def resign(data):
    """What someone with bad intent hands us: any bytes, with the right size and checksum."""
    data = bytearray(data)
    data[16:24] = len(data).to_bytes(8, "little")
    data[32:64] = hashlib.sha256(data[:32] + data[64:]).digest()
    return bytes(data)


SAMPLE = pack([Section("meta", octets(b"{}"), alignment=1), Section("code", octets(bytes(64))),
               Section("notes", octets(b"hello"), alignment=16, required=False)])


def with_header(**changes):
    header = sections.Header(*HEADER.unpack(SAMPLE[:64]))._replace(**changes)
    return HEADER.pack(*header) + SAMPLE[64:]


def with_entry(index, **changes):
    """The sample with one entry of its table changed, size and checksum being right."""
    start = HEADER.size + index * ENTRY.size
    fields = dict(zip(("name", "flags", "alignment", "offset", "size"),
                      ENTRY.unpack(SAMPLE[start:start + ENTRY.size]), strict=True)) | changes
    return resign(SAMPLE[:start] + ENTRY.pack(*fields.values()) + SAMPLE[start + ENTRY.size:])


def refuses(message):
    return pytest.raises(ImageError, match=f"^{re.escape(message)}")


def sections_of(data):
    return unpack(octets(data))


def refusal(data):
    """The message for an image that is refused, nothing for a good one."""
    try:
        sections_of(data)
    except ImageError as error:
        return str(error)
    return ""


section_lists = st.lists(
    st.builds(lambda name, content, log, required: Section(name, octets(content), 1 << log,
                                                           required),
              st.from_regex(r"[a-z][a-z0-9._-]{0,23}", fullmatch=True), st.binary(max_size=100),
              st.integers(0, 16), st.booleans()),
    max_size=6, unique_by=lambda section: section.name)


@given(section_lists)
def test_sections_come_back_as_they_were(given_sections):
    data = pack(given_sections)
    assert [(each.name, each.content.tobytes(), each.alignment, each.required)
            for each in sections_of(data)] == [
        (each.name, each.content.tobytes(), each.alignment, each.required)
        for each in given_sections]


@given(section_lists)
def test_every_section_lies_on_its_alignment_without_a_copy(given_sections):
    data = octets(pack(given_sections))
    for section in unpack(data):
        if len(section.content):
            assert np.shares_memory(section.content, data)
            offset = section.content.ctypes.data - data.ctypes.data
            assert offset % section.alignment == 0


def test_a_change_of_any_single_byte_is_noticed():
    for position in range(len(SAMPLE)):
        changed = bytearray(SAMPLE)
        changed[position] ^= 1 << position % 8
        with pytest.raises(ImageError):
            sections_of(changed)


def test_a_file_cut_anywhere_is_refused():
    for size in range(len(SAMPLE)):
        with refuses("is empty, but a program image has 64" if size == 0 else "is truncated: it has"
                     f" {size} bytes, but its header {'says' if size >= 64 else 'takes 64'}"):
            sections_of(SAMPLE[:size])


@pytest.mark.parametrize(("data", "message"), [
    (SAMPLE + b"\0", "goes on after its end: it has 4166 bytes, but its header says 4165"),
    (b"\x7fELF" + bytes(60), "is not a program image: it starts with 7f 45 4c 46 00 00 00 00, "
                             "but must with 8f 4d 54 49 4d 47 0d 0a"),
    (SAMPLE.replace(b"\r\n", b"\n", 1), "is not a program image: it starts with"),
    (b"P", "is not a program image: it starts with 50"),
    (with_header(format_version=2), "has format version 2, but this program reads version 1"),
    (with_header(format_version=0), "has format version 0, but this program reads version 1"),
    (with_header(isa_version=7), "holds instructions of ISA version 7, but this program reads "
                                 "version 1"),
    (with_header(size=(1 << 64) - 1), "is truncated: it has"),
    (with_header(checksum=bytes(32)), "is damaged: its checksum is 0000000000000000…, but its "
                                      "content gives"),
    (resign(with_header(reserved=1)), "the reserved field of the header is 1, but must be 0"),
    (resign(with_header(sections=0)), "the sections end at byte 64, but the image has"),
    (resign(with_header(sections=65)), "the header says 65 sections, but"),
    (resign(with_header(sections=(1 << 32) - 1)), "the header says 4294967295 sections, but"),
    (resign(SAMPLE[:64]), "the header says 3 sections, but 64 bytes have room for 0"),
])
def test_a_wrong_header_is_refused_in_words(data, message):
    with refuses(message):
        sections_of(data)


@pytest.mark.parametrize(("data", "message"), [
    *((with_entry(1, name=name.ljust(24, b"\0")), f"section 1 has the name "
                                                  f"{name.ljust(24, bytes(1))!r}, but must have")
      for name in (b"", b"Code", b"1st", b"a b", b"a\0b", b"\xff", "é".encode(), b"a\n")),
    (with_entry(1, name=b"meta"), "section meta is there twice"),
    (with_entry(1, flags=2), "section code: flags is 0x2, but only 0x1 has a meaning"),
    (with_entry(1, alignment=0), "section code: alignment is 0, but must be a power of two"),
    (with_entry(1, alignment=24), "section code: alignment is 24, but must be a power of two"),
    (with_entry(1, alignment=1 << 31), "section code: alignment is 2147483648, but must be a"),
    (with_entry(1, offset=0), "section code: offset is 0, but must be 4096"),
    (with_entry(1, offset=(1 << 64) - 4096), "section code: offset is 18446744073709547520, but"),
    (with_entry(1, offset=8192), "section code: offset is 8192, but must be 4096"),
    (with_entry(1, size=1 << 63), "section code: ends at byte 9223372036854779904, but the image"),
    (with_entry(1, size=(1 << 64) - 1), "section code: ends at byte 18446744073709555711, but"),
    (with_entry(1, size=65), "section notes: offset is 4160, but must be 4176"),
    (with_entry(2, size=4), "the sections end at byte 4164, but the image has 4165"),
    (resign(SAMPLE[:2000] + b"x" + SAMPLE[2001:]), "section code: the bytes before it, from 210"),
    (resign(SAMPLE + b"more"), "the sections end at byte 4165, but the image has 4169"),
])
def test_a_wrong_table_is_refused_in_words_even_with_the_right_checksum(data, message):
    with refuses(message):
        sections_of(data)


@given(st.data())
def test_no_edit_of_header_and_table_raises_anything_else(data):
    changed = bytearray(SAMPLE)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(8, HEADER.size + 3 * ENTRY.size - 1))
        changed[position] = data.draw(st.sampled_from([0, 1, 2, 16, 127, 128, 255]))
    assert "\n" not in refusal(resign(changed))
