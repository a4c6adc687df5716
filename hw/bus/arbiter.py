"""A round-robin arbiter: no client starves."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from ..interfaces import bits_for


class RoundRobin(Component):
    """Grants one of several requests; a client that was served gets the lowest priority.

    Combinational from `requests` to `grant`. A request that stays is granted after at most `clients
    - 1` others have been served.

    Members
    -------
    requests : In(clients)
        One bit for each client.
    grant : Out(range(clients))
        The client that is granted; undefined while there is no request.
    served : In(1)
        The granted client is served in this cycle.
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
        first = Signal(bits_for(self.clients))      # the client with the highest priority
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
