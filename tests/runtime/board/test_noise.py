"""Bits that flip on the way to a board and back: the right result or a LinkError, nothing else."""

import itertools
import random
import re

import numpy as np
import pytest

from microtron.isa.config import tiny
from microtron.isa.registers import Status, offset_of
from microtron.runtime.board.board_device import BoardDevice
from microtron.runtime.board.connection import connect
from microtron.runtime.board.etherbone import EtherboneLink
from microtron.runtime.board.link import LinkError
from microtron.runtime.board.places import LITEX_REGISTERS
from microtron.runtime.board.uart import UartLink
from microtron.runtime.devices.device import Address, run

from ..devices.test_device import plus_seven
from .fake_board import DirectLink, FakeBoard
from .peers import Noise, network_peer, serial_peer

MEMORY = range(0x4001_0000, 0x4003_0000)
PLACE = "board:ulx3s@/dev/null"
ROUNDS = 3


def serial(peer):
    return UartLink(peer.address, LITEX_REGISTERS, MEMORY, speed=115200, seconds=0.5, quiet=0.05)


def network(peer):
    return EtherboneLink(peer.address, LITEX_REGISTERS, MEMORY, seconds=0.1)


BRIDGES = pytest.mark.parametrize(("peer", "link"), [
    (serial_peer, serial), (network_peer, network)], ids=["serial", "network"])


def used(peer, link, noise, **options):
    """Use a board through such noise. Returns how many results there were; they must be right, also
    of whoever tries again after an error."""
    results, failures = 0, []
    with peer(FakeBoard(tiny, MEMORY, LITEX_REGISTERS), noise=noise, **options) as other:
        opened = link(other)
        try:
            device = BoardDevice(tiny, place=PLACE, link=opened)
            device.load(plus_seven())
            for value in range(2 * ROUNDS):
                try:
                    data = bytes([value + 1, value + 3, *[value] * 6])
                    device.write(Address("input"), data)
                    report = device.run()
                    found = device.read(Address("output"), 8).tobytes()
                except LinkError as error:
                    failures.append(error)
                    continue
                assert found == bytes(each + 7 for each in data)
                assert report.cycles == 1234567890123
                results += 1
                if results + len(failures) >= ROUNDS:
                    break
        except LinkError as error:
            failures.append(error)
        finally:
            opened.close()
    assert all("\n" not in str(error) for error in failures)
    return results


def bits_of(peer, link):
    """How many bits there are to flip, both ways together, when all goes well."""
    run(plus_seven(), {}, "functional")         # so that the board's simulator is compiled
    noise = Noise()
    assert used(peer, link, noise) == ROUNDS
    return noise.passed


def check(peer, link, seed, count):
    rng, total = random.Random(seed), bits_of(peer, link)
    outcomes = [used(peer, link, Noise(bit), **options)
                for bit in rng.sample(range(total), count)
                for options in [{"skips": rng.choice((0, 5))} if peer is serial_peer else {}]]
    assert sum(outcomes) > ROUNDS * count // 2      # most are put right


@BRIDGES
def test_no_flipped_bit_gives_a_wrong_result(peer, link):
    check(peer, link, 1, 60)


@pytest.mark.soak
@BRIDGES
def test_no_flipped_bit_of_many_gives_a_wrong_result(peer, link):
    check(peer, link, 2, 1000)


# Chosen bits of a write to memory, which a bridge takes as 01 count address:4 word:4 … .

WORDS = np.arange(1, 41, dtype="<u4").view(np.uint8)


def written(*bits, seconds=0.5, skips=0):
    """Write words over a serial line; of the command that does it, these bits are flipped. Returns
    the board, and why it failed."""
    fake, noise = FakeBoard(tiny, MEMORY, LITEX_REGISTERS), Noise()
    with serial_peer(fake, noise=noise, skips=skips) as other:
        opened = UartLink(other.address, LITEX_REGISTERS, MEMORY, speed=115200, seconds=seconds,
                          quiet=0.05)
        opened.read(MEMORY.start, 4)                # it has learned what is there to be learned
        noise.bits = {noise.passed + 8 * READING + bit for bit in bits}
        try:
            opened.write(MEMORY.start, WORDS)
            assert (opened.read(MEMORY.start, len(WORDS)) == WORDS).all()
            error = None
        except LinkError as raised:
            error = str(raised)
            with pytest.raises(LinkError, match="damaged on its way before, and may have changed "
                                                "its memory; open the board anew"):
                opened.read(MEMORY.start, 4)
            assert not opened.is_sound
        opened.close()
    return fake, error


READING = 6 + len(WORDS) + 6 + 4    # bytes both ways before: what is there, and the mark
DATA = 6                            # bytes of a command before its words


@pytest.mark.parametrize("bit", range(8 * DATA, 8 * (DATA + 16), 7))
def test_a_damaged_word_is_written_again(bit):
    fake, error = written(bit)
    assert error is None
    assert (fake.data[:len(WORDS)] == WORDS).all()


@pytest.mark.parametrize("skips", [0, 5])
@pytest.mark.parametrize(("bit", "message"), [
    (1, "a command was damaged on its way|sent 0 of"),          # no command that is known
    (8 + 3, "a command was damaged on its way|sent 0 of"),      # a count of 32: 8 are commands
    (8 + 6, "the board sent 0 of 160 bytes, then nothing for 0.5 s"),       # 104: it waits for more
    (8 * 5 + 6, "0x00000001 was written to 0x40010000, but what was there, 0xaaaaaaaa, still is: a "
                "command was damaged on its way and may have changed other memory, or this one is "
                "broken; open the board anew"),                 # 256 bytes further on
    (8 * 2 + 5, "what was there, 0xaaaaaaaa, still is"),        # no memory at all
])
def test_a_damaged_command_is_noticed_and_the_link_given_up(bit, message, skips):
    _, error = written(bit, skips=skips)
    assert error is not None
    assert re.search(message, error)


def test_a_command_that_went_elsewhere_is_noticed_also_where_all_was_right_before():
    """What is there already is not written: a command can not go astray without a trace."""
    fake, noise = FakeBoard(tiny, MEMORY, LITEX_REGISTERS), Noise()
    with serial_peer(fake, noise=noise) as other:
        opened = serial(other)
        opened.write(MEMORY.start, WORDS)
        before = len(noise.log)
        opened.write(MEMORY.start, WORDS)
        assert not any(data == b"\x01" for way, _, data in noise.log[before:] if way == "to")
        opened.close()


@pytest.mark.parametrize(("wrong", "message"), [
    ((4, 4, 4), "0x00000003 was written to 0x40010008, but what was there, 0x00000007, still is"),
    ((4, 8, 4), "0x00000003 was written to 0x40010008 3 times, but 0x00000007 is there; is the"),
])
def test_memory_that_does_not_keep_what_is_written_is_named_with_both_values(wrong, message):
    fake, flips = FakeBoard(tiny, MEMORY, LITEX_REGISTERS), iter(wrong)
    keep = fake.write_word
    fake.write_word = lambda address, value: keep(
        address, value ^ (next(flips) if address == MEMORY.start + 8 else 0))
    with serial_peer(fake) as other:
        opened = serial(other)
        with pytest.raises(LinkError, match=message):
            opened.write(MEMORY.start, WORDS)
        opened.close()


@BRIDGES
def test_what_reads_otherwise_every_time_is_named_with_both_values(peer, link):
    fake, values = FakeBoard(tiny, MEMORY, LITEX_REGISTERS), itertools.count()
    read = fake.read_word
    fake.read_word = lambda address: next(values) if address == MEMORY.start + 4 else read(address)
    with peer(fake) as other:
        opened = link(other)
        with pytest.raises(LinkError, match="what is at 0x40010004 was read as 0x00000004 and as "
                                            "0x00000005, and 3 times two readings differed"):
            opened.read(MEMORY.start, 8)
        opened.close()


def test_answers_out_of_step_are_noticed():
    """A count that is damaged brings more words than were asked for: all the same as others."""
    fake, noise = FakeBoard(tiny, MEMORY, LITEX_REGISTERS), Noise()
    with serial_peer(fake, noise=noise) as other:
        opened = serial(other)
        opened.forget = lambda: None                # as if they came too late to be forgotten
        fake.data[:] = 0
        fake.data[64:68] = 1
        opened.read(MEMORY.start, 4)
        for _ in range(3):
            noise.bits = {noise.passed + 8 + 2}     # 8 words become 12
            assert not opened.read(MEMORY.start, 32).any()
            assert opened.read(MEMORY.start + 64, 4).tolist() == [1] * 4
        opened.close()


# Starts.

@pytest.mark.parametrize(("value", "starts"), [
    (0, 1), (2, 1), (1, 2)], ids=["nothing", "no start", "a start without an interrupt"])
def test_a_damaged_start_does_not_pass_for_the_run_before(value, starts):
    fake = FakeBoard(tiny, MEMORY, LITEX_REGISTERS)
    device = BoardDevice(tiny, place=PLACE, link=DirectLink(fake))
    device.load(plus_seven())
    device.run()
    write, damaged = fake.write_word, []

    def write_word(address, word):
        if address == LITEX_REGISTERS + offset_of("control") and not damaged:
            damaged.append(word)
            word = value
        write(address, word)

    fake.write_word = write_word
    with pytest.raises(LinkError, match="the program was not started, or not as it should have "
                                        "been: it does not run, but the status, 0x2, is without"):
        device.run()
    assert fake.starts == starts
    device.run()
    assert fake.starts == starts + 1


def test_an_interrupt_is_lowered_until_it_is_low():
    fake = FakeBoard(tiny, MEMORY, LITEX_REGISTERS)
    device = BoardDevice(tiny, place=PLACE, link=DirectLink(fake))
    device.load(plus_seven())
    write, lost = fake.write_word, []

    def write_word(address, word):
        if address == LITEX_REGISTERS + offset_of("status") and len(lost) < most:
            lost.append(word)
        else:
            write(address, word)

    fake.write_word = write_word
    most = 2
    device.run()
    assert fake.registers["status"] == Status.DONE
    most = 99
    with pytest.raises(LinkError, match="does not lower its interrupt: its status is 0xa; load"):
        device.run()


def test_who_opens_a_board_anew_gets_a_link_that_counts():
    links = []

    def opening():
        links.append(DirectLink(FakeBoard(tiny, MEMORY, LITEX_REGISTERS)))
        return links[-1]

    first = connect("here", opening)
    assert connect("here", opening) is first
    links[0].is_sound = False
    second = connect("here", opening)
    assert second is not first
    assert connect("here", opening) is second
    assert len(links) == 2
