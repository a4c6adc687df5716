// The whole system as a library: a clock, and a serial line that carries bytes. With ETHERNET, also a
// cable that carries frames, at two bytes each way a cycle: about a gigabit a second at 60 MHz. With
// CROSSED, the accelerator has a clock of its own, of any period.
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "Vsoc.h"

namespace {

class Simulation {
public:
    // Half a period of the system's clock and of the accelerator's, in the same unit.
    Simulation(std::uint64_t system, std::uint64_t accelerator)
        : system_half(system), accelerator_half(accelerator), accelerator_edge(accelerator) {
        context.reset(new VerilatedContext);
        top.reset(new Vsoc(context.get(), "soc"));
        top->reset = 1;
        for (int cycle = 0; cycle < 16; cycle++)
            step();
        top->reset = 0;
        cycles = 0;
    }

    // Advance until so many bytes have come from the system, or for so many cycles.
    void run(std::uint64_t bytes, std::uint64_t limit) {
        for (; said.size() < bytes && limit; limit--)
            step();
    }

#ifdef ETHERNET
    // Advance until a frame has come from the system, or for so many cycles.
    void run_cable(std::uint64_t limit) {
        for (; frames.empty() && limit; limit--)
            step();
    }

    std::deque<int> cable;                              // to the system; -1 between frames
    std::deque<std::vector<std::uint8_t>> frames;       // from the system
#endif

    std::deque<std::uint8_t> told, said;    // to the system, by the system
    std::uint64_t cycles = 0;

private:
    void step() {
        top->serial_sink_valid = !told.empty();
        top->serial_sink_data = told.empty() ? 0 : told.front();
        top->serial_source_ready = 1;
        set_clock(0);
        const bool taken = top->serial_sink_valid && top->serial_sink_ready;
        if (top->serial_source_valid)
            said.push_back(top->serial_source_data);
        set_clock(1);
        if (taken)
            told.pop_front();
        cycles++;
    }

#ifdef ETHERNET
    // The other clock has risen by the time that this one changes again.
    void set_clock(int level) {
        const int byte = cable.empty() ? -1 : cable.front();
        if (!cable.empty())
            cable.pop_front();
        change_clock(level);
        top->ethernet_clock = 0;
        top->ethernet_sink_valid = byte >= 0;
        top->ethernet_sink_data = byte < 0 ? 0 : byte;
        top->eval();
        if (top->ethernet_source_valid)
            coming.push_back(top->ethernet_source_data);
        else if (!coming.empty()) {
            frames.push_back(coming);
            coming.clear();
        }
        top->ethernet_clock = 1;
        top->eval();
    }

    std::vector<std::uint8_t> coming;
#else
    void set_clock(int level) {
        change_clock(level);
        top->eval();
    }
#endif

    // The system's next edge, after all earlier ones of the other clock.
    void change_clock(int level) {
#ifdef CROSSED
        time += system_half;
        for (; accelerator_edge < time; accelerator_edge += accelerator_half) {
            top->accelerator_clock = !top->accelerator_clock;
            top->eval();
        }
        if (accelerator_edge == time) {
            top->accelerator_clock = !top->accelerator_clock;
            accelerator_edge += accelerator_half;
        }
#endif
        top->clock = level;
    }

    std::uint64_t time = 0, system_half, accelerator_half, accelerator_edge;

    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<Vsoc> top;
};

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// A system in reset; the files of its memories are in `folder`. Null if that cannot be entered.
EXPORTED void* soc_new(const char* folder, std::uint64_t system, std::uint64_t accelerator) {
    char before[PATH_MAX];
    if (!getcwd(before, sizeof before) || chdir(folder))
        return nullptr;
    auto* simulation = new Simulation(system, accelerator);
    return chdir(before) ? nullptr : simulation;
}

EXPORTED void soc_free(void* simulation) { delete static_cast<Simulation*>(simulation); }

EXPORTED void soc_send(void* simulation, const std::uint8_t* bytes, std::uint64_t count) {
    auto& told = static_cast<Simulation*>(simulation)->told;
    told.insert(told.end(), bytes, bytes + count);
}

EXPORTED std::uint64_t soc_run(void* simulation, std::uint64_t bytes, std::uint64_t limit) {
    auto* system = static_cast<Simulation*>(simulation);
    system->run(bytes, limit);
    return system->said.size();
}

EXPORTED void soc_take(void* simulation, std::uint8_t* bytes, std::uint64_t count) {
    auto& said = static_cast<Simulation*>(simulation)->said;
    for (; count-- && !said.empty(); said.pop_front())
        *bytes++ = said.front();
}

#ifdef ETHERNET
constexpr int GAP = 12;         // bytes after a frame

EXPORTED void soc_send_frame(void* simulation, const std::uint8_t* bytes, std::uint64_t count) {
    auto& cable = static_cast<Simulation*>(simulation)->cable;
    cable.insert(cable.end(), bytes, bytes + count);
    cable.insert(cable.end(), GAP, -1);
}

// How long the next frame is; zero if none has come.
EXPORTED std::uint64_t soc_run_cable(void* simulation, std::uint64_t limit) {
    auto* system = static_cast<Simulation*>(simulation);
    system->run_cable(limit);
    return system->frames.empty() ? 0 : system->frames.front().size();
}

EXPORTED void soc_take_frame(void* simulation, std::uint8_t* bytes) {
    auto& frames = static_cast<Simulation*>(simulation)->frames;
    for (const auto byte : frames.front())
        *bytes++ = byte;
    frames.pop_front();
}
#endif

EXPORTED std::uint64_t soc_cycles(void* simulation) {
    return static_cast<Simulation*>(simulation)->cycles;
}
