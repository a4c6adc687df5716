// The whole system as a library: a clock, and a serial line that carries bytes.
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <deque>
#include <memory>

#include "Vsoc.h"

namespace {

class Simulation {
public:
    Simulation() {
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

    std::deque<std::uint8_t> told, said;    // to the system, by the system
    std::uint64_t cycles = 0;

private:
    void step() {
        top->serial_sink_valid = !told.empty();
        top->serial_sink_data = told.empty() ? 0 : told.front();
        top->serial_source_ready = 1;
        top->clock = 0;
        top->eval();
        const bool taken = top->serial_sink_valid && top->serial_sink_ready;
        if (top->serial_source_valid)
            said.push_back(top->serial_source_data);
        top->clock = 1;
        top->eval();
        if (taken)
            told.pop_front();
        cycles++;
    }

    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<Vsoc> top;
};

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// A system in reset; the files of its memories are in `folder`. Null if that cannot be entered.
EXPORTED void* soc_new(const char* folder) {
    char before[PATH_MAX];
    if (!getcwd(before, sizeof before) || chdir(folder))
        return nullptr;
    auto* simulation = new Simulation;
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

EXPORTED std::uint64_t soc_cycles(void* simulation) {
    return static_cast<Simulation*>(simulation)->cycles;
}
