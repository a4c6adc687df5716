"""AXI3 as the processing system of a Zynq-7000 speaks it. Names are the standard's."""

from amaranth.lib.wiring import In, Member, Out, Signature

from ..facts.zynq7000 import ADDRESS_BITS, MEMORY_BITS

LENGTH_BITS = 4             # one to 16 beats, sent as beats - 1
MOST_BEATS = 1 << LENGTH_BITS
SIZE_BITS = 2               # the standard has three bits; here no beat is wider than 8 bytes
FIXED, INCR, WRAP = range(3)
OKAY, EXOKAY, SLVERR, DECERR = range(4)

HP_ID_BITS = 6              # S_AXI_HP: from the fabric to memory
GP_DATA_BITS, GP_ID_BITS = 32, 12       # M_AXI_GP: from the processors to the fabric


def _address_channel(lead: str, id_bits: int) -> dict[str, Member]:
    """Members of AR or AW."""
    members = {"id": id_bits, "addr": ADDRESS_BITS, "len": LENGTH_BITS, "size": SIZE_BITS,
               "burst": 2, "lock": 2, "cache": 4, "prot": 3, "qos": 4, "valid": 1}
    return {**{f"{lead}{name}": Out(width) for name, width in members.items()},
            f"{lead}ready": In(1)}


def axi3(data_bits: int, id_bits: int) -> Signature:
    """An AXI3 master; a slave has `In(axi3(...))`."""
    return Signature({
        **_address_channel("ar", id_bits),
        "rid": In(id_bits), "rdata": In(data_bits), "rresp": In(2), "rlast": In(1),
        "rvalid": In(1), "rready": Out(1),
        **_address_channel("aw", id_bits),
        "wid": Out(id_bits), "wdata": Out(data_bits), "wstrb": Out(data_bits // 8),
        "wlast": Out(1), "wvalid": Out(1), "wready": In(1),
        "bid": In(id_bits), "bresp": In(2), "bvalid": In(1), "bready": Out(1),
    })


hp_port = axi3(MEMORY_BITS, HP_ID_BITS)
gp_port = axi3(GP_DATA_BITS, GP_ID_BITS)
