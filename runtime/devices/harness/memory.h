// DRAM behind an AXI4 slave. How it behaves in time is defined in isa/memory_timing.py; this is that
// definition in C++. Each cycle, `decide` says what the slave shows, `clock` ends the cycle.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "declarations.h"   // generated: Timing, Channel and the constants of the stall hash
#include "protocol.h"
#include "signals.h"

namespace microtron {

bool stalled(const Timing& timing, std::uint64_t cycle, Channel channel);

// Memory that exists. Bytes of its last beat that lie beyond `size` can be read, as filler.
struct Window {
    std::uint64_t base, size;
    std::uint8_t* data;
    bool writable;
};

// Accesses to addresses where no window is, or none that may be written.
struct Strays {
    std::uint64_t count = 0;
    std::uint64_t address = 0;      // of the first
    bool write = false;
};

class Memory {
public:
    static constexpr std::uint8_t FILLER = 0xEE;

    Memory(const Timing& timing, unsigned bus_bytes);

    // A program begins, in a cycle that is number 0. Nothing may be under way.
    void begin();

    // Forget what is under way, whoever had the bus, and the time.
    void reset();

    // What the slave shows in this cycle. Only sharing of the bus depends on the master: whether
    // it has a beat to write (`wvalid`).
    const Slave& decide(bool wvalid);

    // The cycle ends with these signals of the master.
    void clock(const Master& master);

    std::uint64_t cycle() const { return now; }

    std::vector<Window> windows;
    std::uint64_t fail_from = 0, fail_to = 0;   // addresses that answer with an error of the slave
    Strays strays;
    Protocol protocol;

private:
    struct Burst {
        std::uint64_t address, ready;       // where its next beat is; the cycle it may be shown in
        unsigned id, beats;                 // beats that are left
        Response response;
    };

    bool stalls(Channel channel) const { return stalled(timing, now, channel); }
    bool read_wanted() const;
    bool write_wanted() const;
    void show_read();
    void show_answer();
    void take_write(const Master& master);
    const Window* window_of(std::uint64_t address);
    bool fails(std::uint64_t address) const;
    void note_stray(std::uint64_t address, bool write);
    Response read(std::uint64_t address, std::uint8_t* beat);
    Response write(std::uint64_t address, const std::uint8_t* beat, std::uint32_t strobes);

    const Timing timing;
    const unsigned bus_bytes;
    std::uint64_t now = 0;
    std::uint64_t read_bus_free = 0, write_bus_free = 0;    // equal where the bus is shared
    bool read_was_last = false;
    std::deque<Burst> reads;                // until the last beat is taken
    std::deque<Burst> writes;               // until the last beat is taken ...
    std::deque<Burst> answers;              // ... and then until the answer is
    std::size_t recent = 0;                 // the window that was used last
    Slave slave;
};

}  // namespace microtron
