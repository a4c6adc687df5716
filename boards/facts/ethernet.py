"""[ethernet] of a board's file: where the board answers, and the chip between it and the cable."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from .errors import BoardError
from .toml_table import TomlTable

FLOW = "ecp5"                   # the one whose systems have it
PHYS = ("rgmii",)
IP = re.compile(r"(\d{1,3}\.){3}\d{1,3}", re.ASCII)
MAC = re.compile(r"[0-9a-f][02468ace](:[0-9a-f]{2}){5}")
MOST_PS = 3_000                 # that the FPGA's delays reach


@dataclass(frozen=True, kw_only=True)
class Ethernet:
    phy: str                                # how the chip is wired to the FPGA
    ip: str = "192.168.1.50"
    port: int = 1234                        # of UDP
    mac: str = "02:4d:54:52:4e:32"          # of those that anybody may take: MTRN, and 50
    # What the FPGA adds, where neither the chip nor the wires keep clock and data apart.
    tx_delay_ps: int = 0                    # of the clock that is sent
    rx_delay_ps: int = 0                    # of the data that come

    @property
    def mac_number(self) -> int:
        return int(self.mac.replace(":", ""), 16)


def read_ethernet(facts: TomlTable) -> Ethernet | None:
    """What a board's file says; None if the board is not on the network."""
    if "ethernet" not in facts.table:
        return None
    flow = facts.text("flow")
    if flow != FLOW:
        raise BoardError(f"{facts.place}: there is [ethernet], but flow is {flow!r}, and only "
                         f"systems of {FLOW} have it")
    given = facts.inner("ethernet", [field.name for field in dataclasses.fields(Ethernet)])
    ip, mac = given.text("ip", Ethernet.ip), given.text("mac", Ethernet.mac)
    if not IP.fullmatch(ip) or any(int(each) > 255 for each in ip.split(".")):
        raise given.wrong("ip", f"must be as {Ethernet.ip}")
    if not MAC.fullmatch(mac):
        raise given.wrong("mac", f"must be of one board and in small letters, as {Ethernet.mac}")
    return Ethernet(phy=given.text("phy", choices=PHYS), ip=ip, mac=mac,
                    port=given.number("port", 1, 65535, Ethernet.port),
                    tx_delay_ps=given.number("tx_delay_ps", 0, MOST_PS, 0),
                    rx_delay_ps=given.number("rx_delay_ps", 0, MOST_PS, 0))
