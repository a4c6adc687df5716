#include "memory.h"

#include <algorithm>
#include <cstring>

namespace microtron {

bool stalled(const Timing& timing, std::uint64_t cycle, Channel channel) {
    std::uint64_t value = std::uint64_t(timing.seed) + (cycle * CHANNELS + channel + 1) * HASH_STEP;
    value = (value ^ value >> 30) * HASH_MIX[0];
    value = (value ^ value >> 27) * HASH_MIX[1];
    return std::int64_t((value ^ value >> 31) & 255) < timing.stalls;
}

Memory::Memory(const Timing& timing, unsigned bus_bytes)
    : protocol(bus_bytes), timing(timing), bus_bytes(bus_bytes) {}

void Memory::begin() {
    if (!reads.empty() || !writes.empty() || !answers.empty())
        protocol.complain(now, "a program began while transactions were under way");
    reset();
}

void Memory::reset() {
    now = read_bus_free = write_bus_free = 0;
    read_was_last = false;
    reads.clear();
    writes.clear();
    answers.clear();
    slave = Slave{};
    protocol.reset();
}

const Slave& Memory::decide(bool wvalid) {
    const auto unanswered = std::int64_t(writes.size() + answers.size());
    slave.arready = std::int64_t(reads.size()) < timing.reads && !stalls(READ_ADDRESS);
    slave.awready = unanswered < timing.writes && !stalls(WRITE_ADDRESS);
    bool read = read_wanted(), write = wvalid && write_wanted();
    if (timing.shared && read && write)
        (read_was_last ? read : write) = false;
    if (read)
        show_read();
    slave.wready = write;
    const bool turns = timing.shared && (read_was_last ? write : read);
    const auto free = now + timing.cycles_per_beat + (turns ? timing.turn : 0);
    if (read || write)
        read_was_last = read;
    if (read || (write && timing.shared))
        read_bus_free = free;
    if (write || (read && timing.shared))
        write_bus_free = free;
    if (!slave.bvalid && !answers.empty() && now >= answers.front().ready
        && !stalls(WRITE_RESPONSE))
        show_answer();
    return slave;
}

bool Memory::read_wanted() const {
    return !slave.rvalid && !reads.empty() && now >= reads.front().ready
        && now >= read_bus_free && !stalls(READ_DATA);
}

bool Memory::write_wanted() const {
    return !writes.empty() && now >= write_bus_free && !stalls(WRITE_DATA);
}

void Memory::show_read() {
    Burst& burst = reads.front();
    slave.rvalid = true;
    slave.rid = burst.id;
    slave.rlast = burst.beats == 1;
    slave.rresp = read(burst.address, slave.rdata.data());
    burst.address += bus_bytes;
    burst.beats--;
}

void Memory::show_answer() {
    slave.bvalid = true;
    slave.bid = answers.front().id;
    slave.bresp = answers.front().response;
}

void Memory::clock(const Master& master) {
    protocol.check(now, master, slave, writes.empty() ? 0 : writes.front().beats);
    if (master.w.valid && slave.wready)
        take_write(master);
    if (slave.rvalid && master.rready) {
        slave.rvalid = false;
        if (slave.rlast)
            reads.pop_front();
    }
    if (slave.bvalid && master.bready) {
        slave.bvalid = false;
        answers.pop_front();
    }
    if (master.ar.valid && slave.arready)
        reads.push_back({master.ar.address, now + timing.read_latency, master.ar.id,
                         master.ar.length + 1, OKAY});
    if (master.aw.valid && slave.awready)
        writes.push_back({master.aw.address, 0, master.aw.id, master.aw.length + 1, OKAY});
    now++;
}

void Memory::take_write(const Master& master) {
    Burst& burst = writes.front();
    const Response response = write(burst.address, master.w.data.data(), master.w.strobes);
    burst.response = std::max(burst.response, response);
    burst.address += bus_bytes;
    if (--burst.beats == 0) {
        burst.ready = now + timing.write_latency;
        answers.push_back(burst);
        writes.pop_front();
    }
}

const Window* Memory::window_of(std::uint64_t address) {
    if (recent >= windows.size())
        recent = 0;                         // there were more of them before
    for (std::size_t tried = 0; tried < windows.size(); tried++) {
        const Window& window = windows[recent];
        if (address >= window.base && address - window.base < window.size)
            return &window;
        recent = (recent + 1) % windows.size();
    }
    return nullptr;
}

bool Memory::fails(std::uint64_t address) const {
    return address < fail_to && address + bus_bytes > fail_from;
}

void Memory::note_stray(std::uint64_t address, bool write) {
    if (strays.count++ == 0) {
        strays.address = address;
        strays.write = write;
    }
}

Response Memory::read(std::uint64_t address, std::uint8_t* beat) {
    std::memset(beat, FILLER, bus_bytes);
    if (fails(address))
        return SLAVE_ERROR;
    const Window* window = window_of(address);
    if (!window) {
        note_stray(address, false);
        return DECODE_ERROR;
    }
    const std::uint64_t offset = address - window->base;
    std::memcpy(beat, window->data + offset,
                std::min<std::uint64_t>(bus_bytes, window->size - offset));
    return OKAY;
}

// A beat is written as a whole or, when one of its bytes may not be, not at all.
Response Memory::write(std::uint64_t address, const std::uint8_t* beat, std::uint32_t strobes) {
    if (fails(address))
        return SLAVE_ERROR;
    const Window* window = window_of(address);
    const std::uint64_t offset = window ? address - window->base : 0;
    const std::uint64_t writable = window && window->writable ? window->size - offset : 0;
    const std::uint64_t inside = std::min<std::uint64_t>(bus_bytes, writable);
    if (!window || (std::uint64_t(strobes) >> inside) != 0) {
        note_stray(address, true);
        return DECODE_ERROR;
    }
    for (unsigned lane = 0; lane < inside; lane++)
        if (strobes >> lane & 1)
            window->data[offset + lane] = beat[lane];
    return OKAY;
}

}  // namespace microtron
