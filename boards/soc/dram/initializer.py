"""Starts the memory of a system without a processor: the same steps that the monitor would take."""

from litex.gen import LiteXModule
from migen import Case, If, Signal

from .litedram_chip import COMMAND, CONTROL, StartStep

MARGIN = 64         # cycles after every step: the steps' own are meant for slow software
LINES = {"cs_n": "DFII_COMMAND_CS", "we_n": "DFII_COMMAND_WE", "cas_n": "DFII_COMMAND_CAS",
         "ras_n": "DFII_COMMAND_RAS"}


class Starter(LiteXModule):
    """Has the interface's first phase after a reset, until all steps are done; then LiteDRAM's
    controller has it."""

    def __init__(self, steps: list[StartStep], injector):
        phase = injector.ext_dfi.phases[0]
        number, left = Signal(max=len(steps) + 1), Signal(max=MARGIN + 1 + max(
            step.wait for step in steps))
        command, is_control, wait = Signal(8), Signal(), Signal.like(left)
        issue, over, enabled = Signal(), Signal(), Signal()
        self.comb += [
            Case(number, {place: [
                phase.address.eq(step.address), phase.bank.eq(step.bank),
                command.eq(step.command), is_control.eq(step.is_control),
                wait.eq(step.wait + MARGIN)] for place, step in enumerate(steps)}),
            over.eq(number == len(steps)), issue.eq(~over & (left == 0)),
            injector.ext_dfi_sel.eq(~over | (left != 0)),
            phase.cke.eq(enabled),
            *(getattr(phase, line).eq(~(issue & ~is_control & _bit(command, COMMAND[name])))
              for line, name in LINES.items()),
        ]
        self.sync += If(
            issue, number.eq(number + 1), left.eq(wait),
            If(is_control, enabled.eq(_bit(command, CONTROL["DFII_CONTROL_CKE"])))
        ).Elif(left != 0, left.eq(left - 1))


def _bit(signal, mask: int):
    return signal[mask.bit_length() - 1]
