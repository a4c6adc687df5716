"""Whose turn it is: an arbiter under which no client waits for ever."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from ..interfaces import bits_for


class RoundRobin(Component):
    """Picks one of several requests; the client that was served goes to the end of the line.

    Combinational from `requests` to `grant`. A request that stays is picked after at most
    `clients - 1` others have been served.

    Members
    -------
    requests : In(clients)
        One bit for each client, high while it wants to be served.
    grant : Out(range(clients))
        The number of a client that requests; meaningless while none does.
    served : In(1)
        The client granted in this cycle is served.
    """

    def __init__(self, clients: int):
        self.clients = clients
        super().__init__({
            "requests": In(clients),
            "grant": Out(bits_for(clients)),
            "served": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        first = Signal(bits_for(self.clients))      # the client at the head of the line
        with m.Switch(first):
            for head in range(self.clients):
                with m.Case(head):
                    for place in reversed(range(self.clients)):
                        client = (head + place) % self.clients
                        with m.If(self.requests[client]):
                            m.d.comb += self.grant.eq(client)
        with m.If(self.served):
            m.d.sync += first.eq(Mux(self.grant == self.clients - 1, 0, self.grant + 1))
        return m
