#include "protocol.h"

#include <cinttypes>
#include <cstdio>

namespace microtron {

namespace {

constexpr unsigned PAGE_BYTES = 4096, INCREMENTING = 1;

// A channel that was valid and not taken must stay as it was.
template <class Channel>
bool withdrawn(const Channel& before, bool ready, const Channel& now) {
    return before.valid && !ready && !(before == now);
}

std::string hexadecimal(std::uint64_t address) {
    char text[24];
    std::snprintf(text, sizeof text, "%#" PRIx64, address);
    return text;
}

}  // namespace

void Protocol::complain(std::uint64_t cycle, const std::string& what) {
    if (complaints++ == 0)
        first = "in cycle " + std::to_string(cycle) + ", " + what;
}

void Protocol::check(std::uint64_t cycle, const Master& master, const Slave& slave,
                     unsigned beats) {
    if (withdrawn(before.ar, taken.arready, master.ar))
        complain(cycle, "ar changed before it was taken");
    if (withdrawn(before.aw, taken.awready, master.aw))
        complain(cycle, "aw changed before it was taken");
    if (withdrawn(before.w, taken.wready, master.w))
        complain(cycle, "w changed before it was taken");
    if (master.ar.valid && slave.arready)
        check_address(cycle, master.ar, "ar");
    if (master.aw.valid && slave.awready)
        check_address(cycle, master.aw, "aw");
    if (master.w.valid && slave.wready && master.w.last != (beats == 1))
        complain(cycle, "wlast is " + std::to_string(master.w.last) + " with "
                            + std::to_string(beats) + " beats left, this one included");
    before = master;
    taken = slave;
}

void Protocol::check_address(std::uint64_t cycle, const AddressChannel& channel,
                             const char* name) {
    const std::string place = std::string(name) + " at " + hexadecimal(channel.address);
    const std::uint64_t bytes = std::uint64_t(channel.length + 1) * bus_bytes;
    if (1u << channel.size != bus_bytes || channel.burst != INCREMENTING)
        complain(cycle, place + " is not an incrementing burst of whole beats");
    else if (channel.address % bus_bytes)
        complain(cycle, place + " is not a multiple of the bus");
    else if (channel.address % PAGE_BYTES + bytes > PAGE_BYTES)
        complain(cycle, place + " crosses 4096 with " + std::to_string(channel.length + 1)
                            + " beats");
}

}  // namespace microtron
