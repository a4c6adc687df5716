// The rules of AXI4 that a master must keep. What breaks one is noted, not repaired.
#pragma once

#include <cstdint>
#include <string>

#include "signals.h"

namespace microtron {

class Protocol {
public:
    explicit Protocol(unsigned bus_bytes) : bus_bytes(bus_bytes) {}

    // What was shown before this does not bind the master.
    void reset() { before = Master{}; taken = Slave{}; }

    // Look at one cycle. `beats` is how many beats the current burst of writes still wants.
    void check(std::uint64_t cycle, const Master& master, const Slave& slave, unsigned beats);

    // Note something that is wrong; the first one is kept in words.
    void complain(std::uint64_t cycle, const std::string& what);

    std::uint64_t complaints = 0;
    std::string first;

private:
    void check_address(std::uint64_t cycle, const AddressChannel& channel, const char* name);

    const unsigned bus_bytes;
    Master before;              // the cycle before this one
    Slave taken;
};

}  // namespace microtron
