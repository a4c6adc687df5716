// A waveform file of the kind the model was built for; nothing at all where it was built for none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "Vmicrotron.h"

#if VM_TRACE_FST
#include "verilated_fst_c.h"
#elif VM_TRACE_VCD
#include "verilated_vcd_c.h"
#endif

namespace microtron {

#if VM_TRACE
class Waveform {
#if VM_TRACE_FST
    using File = VerilatedFstC;
#else
    using File = VerilatedVcdC;
#endif

public:
    static constexpr bool AVAILABLE = true;

    bool open(Vmicrotron& top, const std::string& path) {
        file = std::make_unique<File>();
        top.trace(file.get(), LEVELS);
        file->open(path.c_str());
        return file->isOpen();
    }
    void dump(std::uint64_t time) {
        if (file)
            file->dump(time);
    }
    void close() {
        if (file)
            file->close();
        file.reset();
    }

private:
    static constexpr int LEVELS = 99;       // of the hierarchy: all
    std::unique_ptr<File> file;
};
#else
class Waveform {
public:
    static constexpr bool AVAILABLE = false;

    bool open(Vmicrotron&, const std::string&) { return false; }
    void dump(std::uint64_t) {}
    void close() {}
};
#endif

}  // namespace microtron
