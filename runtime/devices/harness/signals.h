// The signals of an AXI4 bus in one cycle, wide enough for every configuration.
#pragma once

#include <array>
#include <cstdint>

namespace microtron {

constexpr unsigned BEAT_BYTES_LIMIT = 32;

enum Response : unsigned { OKAY = 0, SLAVE_ERROR = 2, DECODE_ERROR = 3 };

struct AddressChannel {
    bool valid = false;
    std::uint64_t address = 0;
    unsigned id = 0, length = 0, size = 0, burst = 0;

    bool operator==(const AddressChannel& other) const {
        return valid == other.valid && address == other.address && id == other.id
            && length == other.length && size == other.size && burst == other.burst;
    }
};

struct WriteChannel {
    bool valid = false, last = false;
    std::uint32_t strobes = 0;
    std::array<std::uint8_t, BEAT_BYTES_LIMIT> data{};

    bool operator==(const WriteChannel& other) const {
        return valid == other.valid && last == other.last && strobes == other.strobes
            && data == other.data;
    }
};

// What the accelerator drives.
struct Master {
    AddressChannel ar, aw;
    WriteChannel w;
    bool rready = false, bready = false;
};

// What memory drives.
struct Slave {
    bool arready = false, awready = false, wready = false;
    bool rvalid = false, rlast = false;
    unsigned rid = 0;
    Response rresp = OKAY;
    std::array<std::uint8_t, BEAT_BYTES_LIMIT> rdata{};
    bool bvalid = false;
    unsigned bid = 0;
    Response bresp = OKAY;
};

}  // namespace microtron
