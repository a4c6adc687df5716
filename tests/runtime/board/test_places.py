"""From the name of a board's device to its facts, its memory and its address."""

import pytest

from microtron.base.errors import MicrotronError
from microtron.boards.facts.board import load_board
from microtron.boards.facts.errors import BoardError
from microtron.isa.image.program_image import save
from microtron.runtime.board import places
from microtron.runtime.board.link import LinkError
from microtron.runtime.board.places import FILES, LITEX_MEMORY, link_to, place_of
from microtron.runtime.devices.device import open_device

from ...command import bad
from ..devices.test_device import plus_seven

ULX3S = (FILES / "ulx3s.toml").read_text(encoding="utf-8")


def replace(key, value):
    """The file of a board with another value of a key."""
    lines = [f"{key} = {value}" if line.split(" = ")[0] == key else line
             for line in ULX3S.splitlines()]
    assert lines != ULX3S.splitlines()
    return "\n".join(lines)


@pytest.mark.parametrize(("key", "value", "message"), [
    ("system_hz", "0", "clock: system_hz is 0, but must be an integer from 1,000,000 to 1,000,000"),
    ("system_hz", "-50", "clock: system_hz is -50, but must be an integer from 1,000,000 to"),
    ("system_hz", "999_999", "clock: system_hz is 999999, but must be"),
    ("system_hz", "50_000_000\naccelerator_hz = 9", "clock: accelerator_hz is 9, but must be"),
    ("system_hz", "50_000_000\naccelerator_hz = 90_000_000", ""),
    ("system_hz", "1_000_000", ""),
    ("system_hz", "1_000_000_000", ""),
    ("system_hz", "1_000_000_001", "clock: system_hz is 1000000001, but must be"),
    ("system_hz", "5e7", "clock: system_hz is 50000000.0, but must be an integer"),
    ("system_hz", "true", "clock: system_hz is True, but must be an integer"),
    ("system_hz", "'50'", "clock: system_hz is '50', but must be an integer"),
    ("bytes", "-1", "memory: bytes is -1, but must be an integer from 0 to"),
    ("bytes", "0", ""),
    ("bytes", f"{1 << 40}", ""),
    ("bytes", f"{(1 << 40) + 1}", "memory: bytes is 1099511627777, but must be"),
    ("cpu", "7", "cpu is 7, but must be a text"),
    ("cpu", "''", "cpu is '', but must be a text"),
    ("flow", "[]", r"flow is \[\], but must be a text"),
])
def test_facts_are_refused_as_they_are_when_a_board_is_built(tmp_path, key, value, message):
    path = tmp_path / "mine.toml"
    path.write_text(replace(key, value), encoding="utf-8")
    if message:
        with pytest.raises(BoardError):
            load_board(path)
        with pytest.raises(MicrotronError, match=message) as caught:
            open_device(f"board:{path}@/dev/ttyUSB0")
        assert "\n" not in str(caught.value)
    else:
        load_board(path)
        place_of(f"board:{path}@/dev/ttyUSB0")


@pytest.mark.parametrize(("text", "message"), [
    ("cpu = 'none'", "flow is missing, and must be a text"),
    ("flow = 'ecp5'\ncpu = 'none'", "memory is missing, and must be a table with bytes"),
    ("flow = 'ecp5'\ncpu = 'none'\nmemory = 5", "memory is 5, but must be a table with bytes"),
    ("flow = 'ecp5'\ncpu = 'none'\n[memory]\nbytes = 0\n[clock]", "clock: system_hz is missing"),
    ("flow = ", r"mine\.toml: not TOML"),
    ("flow = 'ecp5'\ncpu = 'none'\n[memory]\nbytes = 0\n[clock]\nsystem_hz = 1000000",
     "mine: its accelerator has no memory around it"),
])
def test_a_file_of_the_user_s_own_that_lacks_something_is_refused(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MicrotronError, match=message):
        open_device(f"board:{path}@/dev/ttyUSB0")


@pytest.mark.parametrize(("board", "first"), [
    ("tang_nano_20k", 0), ("ulx3s", 16 << 20), ("ecpix5", 256 << 20)])
def test_programs_have_all_memory_but_what_a_processor_has(board, first, monkeypatch):
    opened = []
    monkeypatch.setattr(places, "UartLink",
                        lambda address, registers, memory, speed: opened.append(memory))
    place = place_of(f"board:{board}@/dev/ttyUSB0")
    link_to(place)()
    assert opened == [range(LITEX_MEMORY + first, LITEX_MEMORY + place.memory_bytes)]


@pytest.mark.parametrize(("address", "message"), [
    ("192.168..50", "192.168..50: no host has such a name; it must be one as board.local, or a"),
    ("x" * 300, "no host has such a name"),
    ("." * 5, "no host has such a name"),
    ("\udcff.local", "no host has such a name"),
    ("no.such.host.invalid", "no.such.host.invalid: there is no way to the board"),
    ("localhost:", "there is no accelerator|not answered|the link is gone"),
    ("localhost:1234:", "there is no way to the board"),
    ("localhost:port", "the port is 'port', but must be a number to 65535"),
    ("localhost:0", "the port is '0', but must be"),
    ("localhost:65536", "the port is '65536', but must be"),
    ("localhost:²", "the port is '²', but must be"),
    ("localhost:" + "9" * 5000, "the port is '9+…', but must be"),
    ("localhost:-1", "the port is '-1', but must be"),
    (":1234", "there is no way to the board"),
    ("::1::2", "there is no way to the board"),
    ("[::1]x", r"an address in brackets ends with \] or with a port, as in \[::1\]:1234"),
    ("[::1", r"an address in brackets ends with"),
    ("[::1]:port", "the port is 'port', but must be"),
    ("[nobody]:7", "there is no way to the board"),
    ("a\0b", r"a\\x00b: there is no way to the board"),
    ("/dev/a\0b", "cannot be opened: embedded null byte"),
])
def test_an_odd_address_is_answered_in_one_line(address, message, monkeypatch):
    monkeypatch.setattr("microtron.runtime.board.etherbone.ATTEMPTS", 1)
    with pytest.raises(LinkError, match=message):
        open_device(f"board:ulx3s@{address}")


def test_a_zero_byte_in_the_name_of_a_device_file_is_refused():
    with pytest.raises(LinkError, match="cannot be opened: embedded null byte"):
        open_device("board:pynq_z2@/dev/a\0b")


@pytest.mark.parametrize("address", ["192.168..50", "x" * 300, "a\nb..c"])
def test_an_odd_host_is_one_line_on_the_command_line(tmp_path, address):
    save(plus_seven(), tmp_path / "p.mt")
    assert "no host has such a name" in bad("run", "p.mt", "--device", f"board:ulx3s@{address}",
                                            cwd=tmp_path)


@pytest.mark.parametrize(("address", "place"), [
    ("192.168.1.50", ("192.168.1.50", 1234)), ("board.local:77", ("board.local", 77)),
    ("::1", ("::1", 1234)), ("[::1]", ("::1", 1234)), ("[::1]:77", ("::1", 77)),
])
def test_a_host_and_its_port_are_found(address, place):
    from microtron.runtime.board.etherbone import _host_of
    assert _host_of(address) == place
