// The harness' memory on its own, driven cycle by cycle from Python.
#include <algorithm>
#include <cstdint>

#include "memory.h"

using namespace microtron;

// The same fields, in the same order, as in memory_probe.py.
struct Driven {
    std::int64_t arvalid, araddr, arid, arlen, arsize, arburst;
    std::int64_t awvalid, awaddr, awid, awlen, awsize, awburst;
    std::int64_t wvalid, wlast, wstrb, rready, bready;
    std::uint8_t wdata[BEAT_BYTES_LIMIT];
};

struct Shown {
    std::int64_t arready, awready, wready, rvalid, rid, rresp, rlast, bvalid, bid, bresp;
    std::uint8_t rdata[BEAT_BYTES_LIMIT];
};

extern "C" {

Memory* probe_create(const Timing* timing, unsigned bus_bytes) {
    return new Memory(*timing, bus_bytes);
}

void probe_destroy(Memory* memory) { delete memory; }

void probe_begin(Memory* memory) { memory->begin(); }

void probe_window(Memory* memory, std::uint64_t base, std::uint64_t size, std::uint8_t* data,
                  bool writable) {
    memory->windows.push_back({base, size, data, writable});
}

void probe_fail(Memory* memory, std::uint64_t from, std::uint64_t to) {
    memory->fail_from = from;
    memory->fail_to = to;
}

bool probe_stalled(const Timing* timing, std::uint64_t cycle, unsigned channel) {
    return stalled(*timing, cycle, Channel(channel));
}

void probe_decide(Memory* memory, bool wvalid, Shown* shown) {
    const Slave& slave = memory->decide(wvalid);
    *shown = {slave.arready, slave.awready, slave.wready, slave.rvalid, slave.rid, slave.rresp,
              slave.rlast, slave.bvalid, slave.bid, slave.bresp, {}};
    std::copy(slave.rdata.begin(), slave.rdata.end(), shown->rdata);
}

void probe_clock(Memory* memory, const Driven* driven) {
    Master master;
    master.ar = {driven->arvalid != 0, std::uint64_t(driven->araddr), unsigned(driven->arid),
                 unsigned(driven->arlen), unsigned(driven->arsize), unsigned(driven->arburst)};
    master.aw = {driven->awvalid != 0, std::uint64_t(driven->awaddr), unsigned(driven->awid),
                 unsigned(driven->awlen), unsigned(driven->awsize), unsigned(driven->awburst)};
    master.w.valid = driven->wvalid;
    master.w.last = driven->wlast;
    master.w.strobes = driven->wstrb;
    std::copy_n(driven->wdata, BEAT_BYTES_LIMIT, master.w.data.begin());
    master.rready = driven->rready;
    master.bready = driven->bready;
    memory->clock(master);
}

std::uint64_t probe_strays(Memory* memory) { return memory->strays.count; }

const char* probe_complaint(Memory* memory) { return memory->protocol.first.c_str(); }

}
