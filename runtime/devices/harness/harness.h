// The accelerator under Verilator with memory and a driver around it: what a board is elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "Vmicrotron.h"
#include "memory.h"
#include "verilated.h"
#include "waveform.h"

namespace microtron {

// How far an engine came; positions are those of the last instruction that started or ended.
struct Progress {
    std::int64_t started = 0, start_position = -1;
    std::int64_t ended = 0, end_position = -1;
};

// When each instruction started and ended, in cycles of the run; -1: it did not.
struct Trace {
    std::int64_t* start = nullptr;
    std::int64_t* end = nullptr;
    std::uint64_t count = 0;
};

class Harness {
public:
    explicit Harness(const Timing& timing);
    ~Harness();

    void reset();

    // One AXI4-Lite transaction. False if it is not answered or answered with an error.
    bool write_register(std::uint32_t offset, std::uint32_t value);
    bool read_register(std::uint32_t offset, std::uint32_t& value);

    // Let time pass until the interrupt line is raised. False if `limit` cycles were not enough.
    bool run(std::uint64_t limit);

    bool open_waveform(const std::string& path);
    void close_waveform();

    Memory memory;
    Trace trace;
    Progress progress[ENGINES];

private:
    void begin_cycle();
    void end_cycle();
    void drive(const Slave& slave);
    Master sample() const;
    void note_events();
    void note(unsigned engine, bool start, std::uint32_t start_position, bool end,
              std::uint32_t end_position);

    VerilatedContext context;
    std::unique_ptr<Vmicrotron> top;
    Waveform waveform;
    std::uint64_t time = 0;         // in half cycles, for the waveform
    bool running = false;
    Master master;
};

}  // namespace microtron
