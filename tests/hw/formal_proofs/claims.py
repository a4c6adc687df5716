"""What is claimed of the token counters, the queues and the arbiter, for test_formal.py.

What users may rely on is asserted; an `invariant` ties the unit's registers to the claim's own,
which makes the claim inductive.
"""

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.utils import ceil_log2

from microtron.hw.interfaces import bits_for
from microtron.hw.layouts import COMMAND
from microtron.isa.config import Config
from microtron.isa.instructions import Engine

from .formal import Claim

PAIRS = [(giver, taker) for giver in Engine for taker in Engine if giver != taker]


class TokensAreCounted(Claim):
    """Each counter is the posts minus the takes, and only a post too many is refused. What an
    engine waits for has come from a queue, which told it a cycle ahead."""

    def __init__(self, config: Config, unit: type):
        self.config, self.unit = config, unit
        masks = {f"{name}_{engine.name.lower()}": len(Engine)
                 for name in ("coming", "post") for engine in Engine}
        super().__init__(
            {**masks, **{f"{name}_{engine.name.lower()}": 1
                         for name in ("take", "arrives", "bars") for engine in Engine}},
            {**{pair_name(*pair): (f"unit.{pair_name(*pair)}", config.token_bits)
                for pair in PAIRS},
             **{f"{pair_name(*pair)}_{part}": (f"unit.{pair_name(*pair)}_{part}", 1)
                for pair in PAIRS for part in ("some", "many")}})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit(self.config)
        for engine in Engine:
            port = unit.port(engine)
            for name in ("post", "take", "bars"):
                m.d.comb += getattr(port, name).eq(
                    getattr(self, f"{name}_{engine.name.lower()}"))
        held = {engine: self._head(m, unit, engine) for engine in Engine}
        balances = {pair: self._balance(m, unit, *pair) for pair in PAIRS}

        for taker in Engine:
            port = unit.port(taker)
            missing = Cat(port.wait[giver] if giver == taker else   # none gives to itself
                          port.wait[giver] & (balances[giver, taker][0] == 0)
                          for giver in Engine)
            barred = Signal(name=f"barred_{taker.name.lower()}")
            m.d.sync += barred.eq(port.bars)
            m.d.comb += [Assert(port.missing == missing),
                         Assert(~held[taker] | (port.granted == (~missing.any() & ~barred)))]
        for giver in Engine:
            refused = Cat(balances[giver, taker][1] for taker in Engine if taker != giver)
            refused_before = Signal(name=f"refused_{giver.name.lower()}")
            m.d.sync += refused_before.eq(refused.any())
            m.d.comb += Assert(unit.overflow[giver] == refused_before)
        return m

    def _head(self, m, unit, engine):
        """What the engine waits for, from a queue. Returns whether there is an instruction."""
        port, name = unit.port(engine), engine.name.lower()
        held, wait = Signal(name=f"held_{name}"), Signal(len(Engine), name=f"wait_{name}")
        coming, renews = getattr(self, f"coming_{name}"), ~held | port.take
        with m.If(renews):
            m.d.sync += [held.eq(getattr(self, f"arrives_{name}")), wait.eq(coming)]
        m.d.comb += [port.wait.eq(Mux(held, wait, 0)), unit.coming[engine].eq(coming),
                     unit.renews[engine].eq(renews),
                     Assume(~port.take | port.granted)]     # the rule for engines
        return held

    def _balance(self, m, unit, giver, taker):
        """Posts minus takes in a register that would show a wrap, and the refusal of a post."""
        limit = self.config.token_limit
        balance = Signal(range(-2, limit + 3), name=f"balance_{pair_name(giver, taker)}")
        post = unit.port(giver).post[taker]
        take = unit.port(taker).take & unit.port(taker).wait[giver]
        refused = post & ~take & (balance == limit)
        m.d.sync += balance.eq(balance + (post & ~refused) - take)
        m.d.comb += [
            Assert(balance >= 0), Assert(balance <= limit),
            Cover(refused), Cover(post & take & (balance == limit)),
        ]
        name = pair_name(giver, taker)
        m.d.comb += self.invariant(getattr(self, name) == balance,
                                   getattr(self, f"{name}_some") == (balance != 0),
                                   getattr(self, f"{name}_many") == (balance > 1))
        return balance, refused


class ItemsPassInOrder(Claim):
    """Any item comes out unchanged, once, right after those that were in the queue before it.

    The solver picks an item with `choose` as it enters; `ahead` counts those in front of it. As
    the item is any item, none is lost, doubled, changed or overtaken. Nor can one starve: the
    queue refuses only when full and hides nothing. Where it is `buffered`, it hides what entered
    an empty queue for one cycle, and at depth 2 it refuses the next item in that cycle.
    """

    def __init__(self, unit, *, place: str, depth: int, width: int, buffered: bool):
        self.unit, self.depth, self.buffered = unit, depth, buffered
        self.words = depth - 1 if buffered else depth       # the last one is in a register
        pointer = ceil_log2(self.words)
        pointers = {name: (f"{place}.{name}", pointer) for name in ("produce", "consume")}
        super().__init__(
            {"put": 1, "item": width, "take": 1, "choose": 1},
            {**(pointers if pointer else {}), "level": (f"{place}.level", range(depth + 1)),
             **{f"word_{at}": (f"{place}.storage[{at}]", width) for at in range(self.words)}})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = self.unit
        accepts, shows, shown = self.attach(m)
        entered, left = self.put & accepts, self.take & shows

        count = Signal(range(self.depth + 2))
        followed = Signal()
        ahead = Signal(range(self.depth + 1))
        value = Signal.like(self.item)
        fresh = Signal()                            # all that is inside has just entered
        m.d.sync += count.eq(count + entered - left)
        with m.If(followed & left):
            m.d.sync += [ahead.eq(ahead - 1), followed.eq(ahead != 0)]
        with m.Elif(entered & self.choose & ~followed):
            m.d.sync += [followed.eq(1), ahead.eq(count - left), value.eq(self.item)]
        m.d.sync += fresh.eq(count == left)
        on_its_way = fresh & ~shows if self.buffered else 0

        m.d.comb += [
            Assert(count <= self.depth), Assert(~shows | (count != 0)),
            Assert(self.holds_nothing() == (count == 0)),
            Assert(~followed | (ahead != 0) | ~shows | (shown == value)),
            Assert(accepts | (count == self.depth) | ((count == self.depth - 1) & on_its_way)),
            Assert(shows | (count == 0) | on_its_way),
            Cover(count == self.depth),
            Cover(followed & left & (ahead == 0) & (count == self.depth)),
        ]
        self._add_invariants(m, count, followed, ahead, value, shows, shown)
        return m

    def _add_invariants(self, m, count, followed, ahead, value, shows, shown):
        """The item is where its place in the line says, and the pointers agree with the count."""
        register = shows if self.buffered else 0
        stored = Signal(range(self.depth + 2))
        m.d.comb += stored.eq(count - register)
        words = Array(getattr(self, f"word_{at}") for at in range(self.words))
        produce, consume = getattr(self, "produce", 0), getattr(self, "consume", 0)
        m.d.comb += self.invariant(
            self.level == count, stored <= self.words, ~followed | (ahead < count),
            produce == around(consume + stored, self.words))
        if self.words > 1:
            m.d.comb += self.invariant(produce < self.words, consume < self.words)
        behind = (ahead - register)[:len(ahead)]    # the head of the stored items is 0
        held = words[around(consume + behind, self.words)]
        in_register = register & (ahead == 0)
        m.d.comb += self.invariant(~followed | (Mux(in_register, shown, held) == value))


class FifoPassesInOrder(ItemsPassInOrder):
    """The claim for a queue with the members of amaranth.lib.fifo."""

    def attach(self, m):
        fifo = self.unit
        m.d.comb += [fifo.w_en.eq(self.put), fifo.w_data.eq(self.item), fifo.r_en.eq(self.take)]
        return fifo.w_rdy, fifo.r_rdy, fifo.r_data

    def holds_nothing(self):
        return self.unit.level == 0


class StreamPassesInOrder(ItemsPassInOrder):
    """The claim for a queue whose head is a register, with streams on both sides. It never hides
    anything, so it is not `buffered` in the sense above."""

    def __init__(self, unit, *, depth: int, width: int):
        self.unit, self.depth, self.buffered = unit, depth, False
        self.words = depth - 1
        pointer = ceil_log2(self.words)
        Claim.__init__(
            self, {"put": 1, "item": width, "take": 1, "choose": 1},
            {**({name: (f"unit.{name}", pointer) for name in ("produce", "consume")}
                if pointer else {}), "behind": ("unit.behind", range(depth)),
             **{name: (f"unit.{name}", 1) for name in ("some", "vacant", "room", "full")},
             **{f"word_{at}": (f"unit.storage[{at}]", width) for at in range(self.words)}})

    def attach(self, m):
        put, take = self.unit.put, self.unit.take
        m.d.comb += [put.valid.eq(self.put), put.payload.eq(self.item), take.ready.eq(self.take)]
        return put.ready, take.valid, take.payload

    def holds_nothing(self):
        return ~self.unit.take.valid

    def _add_invariants(self, m, count, followed, ahead, value, shows, shown):
        words = Array(getattr(self, f"word_{at}") for at in range(self.words))
        produce, consume = getattr(self, "produce", 0), getattr(self, "consume", 0)
        m.d.comb += self.invariant(
            count == self.behind + shows, shows | (self.behind == 0), ~followed | (ahead < count),
            self.some != (self.behind == 0), self.vacant != shows, *self._invariants_of_room(),
            produce == around(consume + self.behind, self.words))
        if self.words > 1:
            m.d.comb += self.invariant(produce < self.words, consume < self.words)
        held = words[around(consume + (ahead - 1)[:len(ahead)], self.words)]
        m.d.comb += self.invariant(~followed | (Mux(ahead == 0, shown, held) == value))

    def _invariants_of_room(self):
        return self.room == (self.behind != self.words), self.full != self.room


class ReservedPassesInOrder(StreamPassesInOrder):
    """The claim for a queue that refuses nothing, and is given no more than it has places for."""

    def __init__(self, unit, *, depth: int, width: int):
        self.unit, self.depth, self.buffered = unit, depth, False
        self.words = depth
        Claim.__init__(
            self, {"put": 1, "item": width, "take": 1, "choose": 1},
            {**{name: (f"unit.{name}", ceil_log2(depth)) for name in ("produce", "consume")},
             "behind": ("unit.behind", range(depth)), "some": ("unit.some", 1),
             "vacant": ("unit.vacant", 1),
             **{f"word_{at}": (f"unit.storage[{at}]", width) for at in range(depth)}})

    def attach(self, m):
        put, take = self.unit.put, self.unit.take
        has_room = self.behind + take.valid != self.depth
        m.d.comb += [put.valid.eq(self.put & has_room), put.payload.eq(self.item),
                     take.ready.eq(self.take), Assert(put.ready)]
        return has_room, take.valid, take.payload

    def _invariants_of_room(self):
        return ()


class SlicePassesInOrder(StreamPassesInOrder):
    """The claim for the two places of a register slice."""

    def __init__(self, unit, *, width: int):
        self.unit, self.depth, self.buffered = unit, 2, False
        Claim.__init__(self, {"put": 1, "item": width, "take": 1, "choose": 1},
                       {"waiting": ("unit.waiting", 1), "room": ("unit.room", 1),
                        "back": ("unit.back", width)})

    def _add_invariants(self, m, count, followed, ahead, value, shows, shown):
        m.d.comb += self.invariant(
            count == shows + self.waiting, self.room == ~self.waiting, shows | ~self.waiting,
            ~followed | (ahead < count),
            ~followed | (Mux(ahead == 0, shown, self.back) == value))


class StagedPassesInOrder(ItemsPassInOrder):
    """The claim for a queue with a register in front. It hides what entered an empty queue for one
    cycle, but refuses nothing while it has a place."""

    def __init__(self, unit, *, depth: int, width: int):
        self.unit, self.depth, self.buffered = unit, depth, True
        queue = {"entering": ("unit.entering", width)} if depth == 2 else {
            **{name: (f"unit.line.{name}", ceil_log2(depth)) for name in ("produce", "consume")},
            "behind": ("unit.line.behind", range(depth)),
            "arriving": ("unit.arriving", range(depth)),
            **{name: (f"unit.line.{name}", 1) for name in ("some", "vacant")},
            **{f"word_{at}": (f"unit.places[{at}]", width) for at in range(depth)}}
        Claim.__init__(
            self, {"put": 1, "item": width, "take": 1, "choose": 1},
            {"counted": ("unit.count", range(depth + 1)), "room": ("unit.room", 1),
             "held": ("unit.held", 1), **queue})

    def attach(self, m):
        put, take = self.unit.put, self.unit.take
        m.d.comb += [put.valid.eq(self.put), Value.cast(put.payload).eq(self.item),
                     take.ready.eq(self.take)]
        return put.ready, take.valid, Value.cast(take.payload)

    def holds_nothing(self):
        return self.unit.empty

    def _add_invariants(self, m, count, followed, ahead, value, shows, shown):
        m.d.comb += Assert(self.unit.put.ready == (count != self.depth))
        m.d.comb += self.invariant(self.counted == count, self.room == (count != self.depth),
                                   ~followed | (ahead < count))
        if self.depth == 2:
            m.d.comb += self.invariant(count == shows + self.held)
            inside = Mux(self.held & (ahead + 1 == count), self.entering, shown)
        else:
            inside = self._lined_up(m, count, ahead, shows, shown)
        m.d.comb += self.invariant(~followed | (inside == value))

    def _lined_up(self, m, count, ahead, shows, shown):
        """The invariants of a line of items in memory. Returns the item that has so many ahead of
        it."""
        words = Array(getattr(self, f"word_{at}") for at in range(self.depth))
        m.d.comb += self.invariant(
            count == self.behind + shows + self.held, shows | (self.behind == 0),
            self.some != (self.behind == 0), self.vacant != shows,
            self.produce == around(self.consume + self.behind, self.depth),
            self.arriving == around(self.produce + self.held, self.depth),
            self.produce < self.depth, self.consume < self.depth, self.arriving < self.depth)
        stored = words[around(self.consume + (ahead - shows)[:len(ahead)], self.depth)]
        return Mux(shows & (ahead == 0), shown, stored)


class CommandsPassInOrder(StagedPassesInOrder):
    """The claim for the command queue, whole commands included."""

    def __init__(self, unit, *, depth: int):
        super().__init__(unit, depth=depth, width=COMMAND.size)


class NobodyStarves(Claim):
    """A client that requests is served before any other is served twice."""

    def __init__(self, clients: int, unit: type):
        self.clients, self.unit = clients, unit
        super().__init__({"requests": clients, "served": 1},
                         {"first": ("unit.first", bits_for(clients))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit(self.clients)
        m.d.comb += [unit.requests.eq(self.requests), unit.served.eq(self.served)]
        m.d.comb += Assert((self.requests == 0) | self.requests.bit_select(unit.grant, 1))
        m.d.comb += self.invariant(self.first < self.clients)
        for client in range(self.clients):
            waited = Signal(range(self.clients + 1), name=f"waited_{client}")
            with m.If(~self.requests[client] | (self.served & (unit.grant == client))):
                m.d.sync += waited.eq(0)
            with m.Elif(self.served):
                m.d.sync += waited.eq(waited + 1)
            m.d.comb += Assert(waited <= self.clients - 1)
            m.d.comb += Cover(waited == self.clients - 1)
            place = around(client + self.clients - self.first, self.clients)
            m.d.comb += self.invariant(waited + place <= self.clients - 1)  # and moves up
        return m


def pair_name(giver: Engine, taker: Engine) -> str:
    return f"{giver.name}_to_{taker.name}".lower()


def around(place, size):
    """A place below twice the size of a ring, as one in the ring. A division would cost minutes."""
    return Mux(place >= size, place - size, place)
