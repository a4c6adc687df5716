"""The memory of a system: LiteDRAM's interface to a board's chip, on its pins or with a model."""

from dataclasses import dataclass
from types import SimpleNamespace

from litedram import modules
from litedram.init import get_sdram_phy_init_sequence
from litedram.phy import ECP5DDRPHY, GENSDRPHY, HalfRateGENSDRPHY
from litedram.phy.model import SDRAMPHYModel
from migen import Signal

from ...facts.board import Board
from ...facts.errors import BoardError

INTERFACES = {("sdr", "1:1"): GENSDRPHY, ("sdr", "1:2"): HalfRateGENSDRPHY,
              ("ddr3", "1:2"): ECP5DDRPHY}

CONTROL = {"DFII_CONTROL_SEL": 1, "DFII_CONTROL_CKE": 2, "DFII_CONTROL_ODT": 4,
           "DFII_CONTROL_RESET_N": 8}
COMMAND = {"DFII_COMMAND_CS": 1, "DFII_COMMAND_WE": 2, "DFII_COMMAND_CAS": 4,
           "DFII_COMMAND_RAS": 8, "DFII_COMMAND_WRDATA": 16, "DFII_COMMAND_RDDATA": 32}


@dataclass(frozen=True)
class StartStep:
    """A command to the chip, or a level of its control lines, and the cycles until the next."""

    address: int
    bank: int
    command: int            # bits of COMMAND, or of CONTROL
    is_control: bool
    wait: int


def find_chip(board: Board):
    """LiteDRAM's facts of the memory chip, at the board's clock."""
    name = board.memory.chip
    found = getattr(modules, name, None)
    if not (isinstance(found, type) and issubclass(found, modules.SDRAMModule)):
        raise BoardError(f"{board.name}: memory.chip is {name!r}, which LiteDRAM does not have")
    return found(board.clock.system_hz, board.memory.rate)


def make_phy(board: Board, pads):
    """What drives the chip's pins."""
    kind, rate = board.memory.kind, board.memory.rate
    if (kind, rate) not in INTERFACES:
        right = ", ".join(f"{each} at {clock}" for each, clock in INTERFACES)
        raise BoardError(f"{board.name}: memory is {kind} at {rate}, but there is {right}")
    return INTERFACES[kind, rate](pads, board.clock.system_hz)


def startup_sequence(settings, timing) -> list[StartStep]:
    """How the chip is started, from LiteDRAM's settings of its interface and of itself."""
    steps, _ = get_sdram_phy_init_sequence(settings, timing)
    return [StartStep(address, bank, _flags(command), command.startswith("DFII_CONTROL"), wait)
            for _, address, bank, command, wait in steps]


def _flags(text: str) -> int:
    """LiteDRAM writes commands as C."""
    return sum({**CONTROL, **COMMAND}[word] for word in text.split("|"))


def make_model(board: Board):
    """The chip itself behind an interface with the same latencies, for simulation."""
    settings = make_phy(board, _dummy_pads(board)).settings
    return SDRAMPHYModel(find_chip(board), settings, clk_freq=board.clock.system_hz)


def _dummy_pads(board: Board):
    """As many pins as the board has, connected to nothing."""
    geometry = find_chip(board).geom_settings
    bits = data_bits(board)
    widths = {"a": geometry.addressbits, "ba": geometry.bankbits, "dq": bits, "dm": bits // 8,
              "dqs_p": bits // 8, "clk_p": 1,
              **dict.fromkeys(("ras_n", "cas_n", "we_n", "cke", "odt"), 1)}
    return SimpleNamespace(**{name: Signal(width) for name, width in widths.items()})


def data_bits(board: Board) -> int:
    """Wires of data. Memory in the FPGA's own package has no pins; Gowin's has 32."""
    for group in ("sdram", "ddram"):
        if group in board.pins:
            return len(board.pins[group]["dq"].places)
    return 32
