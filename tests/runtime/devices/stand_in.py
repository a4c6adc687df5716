"""The stand-in for the accelerator as text, for a configuration."""

from pathlib import Path

from microtron.isa.faults import Fault
from microtron.isa.registers import identity_of, offset_of

# What the size of segment 7 makes it do wrong.
FLAWS = ("none", "unstable", "fixed", "stray", "crossing", "dependent", "endless", "deaf", "stuck")
REGISTERS = ("control", "status", "fault", "fault_position", "program_low", "program_high",
             "program_count", "segment0_low", "segment0_high", "segment0_size", "segment1_low",
             "segment1_high", "segment7_size", "cycles_low", "load_bytes_low", "store_bytes_low")


def stand_in(config):
    """Verilog with the accelerator's ports."""
    known = identity_of(config)
    defined = {
        "IDS": 1, "ADDRESS": config.address_bits, "BUS": config.bus_bits,
        **{name.upper(): offset_of(name) for name in REGISTERS},
        **{fault.name: fault.value for fault in (Fault.ILLEGAL, Fault.READ_ERROR,
                                                 Fault.WRITE_ERROR)},
        **{each.upper(): number for number, each in enumerate(FLAWS)},
        "KNOWN_REGISTERS": " ".join(f"{offset_of(name)}: read_data <= {value};"
                                    for name, value in known.items()),
    }
    constants = "\n".join(f"`define {name} {value}" for name, value in defined.items())
    text = Path(__file__).with_name("stand_in.v").read_text()
    return text.replace("`define CONSTANTS       // replaced", f"{constants}\n// Above")
