// The harness as plain functions, for ctypes.
#include <algorithm>
#include <cstdint>

#include "harness.h"

using microtron::Harness;

#define API extern "C" __attribute__((visibility("default")))

API Harness* microtron_create(const microtron::Timing* timing) {
    return new Harness(*timing);
}

API void microtron_destroy(Harness* harness) {
    delete harness;
}

API void microtron_reset(Harness* harness) {
    harness->reset();
}

API void microtron_clear_windows(Harness* harness) {
    harness->memory.windows.clear();
}

API void microtron_add_window(Harness* harness, std::uint64_t base, std::uint64_t size,
                              std::uint8_t* data, bool writable) {
    harness->memory.windows.push_back({base, size, data, writable});
}

// Addresses that answer with an error of the slave; none if both are equal.
API void microtron_fail(Harness* harness, std::uint64_t from, std::uint64_t to) {
    harness->memory.fail_from = from;
    harness->memory.fail_to = to;
}

API bool microtron_write(Harness* harness, std::uint32_t offset, std::uint32_t value) {
    return harness->write_register(offset, value);
}

API bool microtron_read(Harness* harness, std::uint32_t offset, std::uint32_t* value) {
    return harness->read_register(offset, *value);
}

API void microtron_trace(Harness* harness, std::int64_t* start, std::int64_t* end,
                         std::uint64_t count) {
    harness->trace = {start, end, count};
}

API bool microtron_run(Harness* harness, std::uint64_t limit) {
    return harness->run(limit);
}

API bool microtron_open_waveform(Harness* harness, const char* path) {
    return harness->open_waveform(path);
}

API void microtron_close_waveform(Harness* harness) {
    harness->close_waveform();
}

API void microtron_progress(Harness* harness, microtron::Progress* engines) {
    std::copy_n(harness->progress, microtron::ENGINES, engines);
}

// How many accesses went astray; where the first one was, and whether it was a write.
API std::uint64_t microtron_strays(Harness* harness, std::uint64_t* address, bool* write) {
    *address = harness->memory.strays.address;
    *write = harness->memory.strays.write;
    return harness->memory.strays.count;
}

// The first rule of the bus that was broken, in words; nothing if none was.
API const char* microtron_complaint(Harness* harness) {
    return harness->memory.protocol.first.c_str();
}

// What was noted about the bus so far is dealt with.
API void microtron_forgive(Harness* harness) {
    harness->memory.strays = {};
    harness->memory.protocol.complaints = 0;
    harness->memory.protocol.first.clear();
}
