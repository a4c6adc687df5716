#include "harness.h"

#include <cstring>

namespace microtron {

namespace {

constexpr unsigned RESET_CYCLES = 4;
constexpr unsigned ANSWER_LIMIT = 1000;     // cycles that a register access may take
constexpr std::uint64_t HALF_CYCLE = 5;     // in units of the waveform: 10 ns, as at 100 MHz

// Verilator has a type for each width; little-endian, all are bytes in order.
template <class Signal> void put(Signal& signal, const std::uint8_t* bytes) {
    std::memcpy(&signal, bytes, sizeof signal);
}
template <class Signal> void get(const Signal& signal, std::uint8_t* bytes) {
    static_assert(sizeof signal <= BEAT_BYTES_LIMIT);
    std::memcpy(bytes, &signal, sizeof signal);
}

// Verilator counts `interrupt` among the words of C++ and gives the port another name.
template <class Top> auto interrupt_of(const Top& top, int) -> decltype(bool(top.interrupt)) {
    return top.interrupt;
}
template <class Top> bool interrupt_of(const Top& top, long) {
    return top.__SYM__interrupt;
}

constexpr unsigned BUS_BYTES = sizeof(Vmicrotron::m_axi_rdata);

}  // namespace

Harness::Harness(const Timing& timing) : memory(timing, BUS_BYTES) {
    context.traceEverOn(Waveform::AVAILABLE);
    top = std::make_unique<Vmicrotron>(&context, "top");
    reset();
}

Harness::~Harness() {
    waveform.close();
    top->final();
}

void Harness::reset() {
    memory.reset();
    running = false;
    for (Progress& engine : progress)
        engine = Progress{};
    top->s_axi_awvalid = top->s_axi_wvalid = top->s_axi_bready = 0;
    top->s_axi_arvalid = top->s_axi_rready = 0;
    top->rst = 1;
    for (unsigned cycle = 0; cycle < RESET_CYCLES; cycle++) {
        begin_cycle();
        end_cycle();
    }
    top->rst = 0;
    memory.reset();         // whatever the accelerator seemed to say in reset
}

// From the rising edge to the middle of a cycle: everything settles. Whether there is a beat to
// write comes from registers only, so it is known before memory has decided anything.
void Harness::begin_cycle() {
    if (top->trace_running && !running) {
        memory.begin();
        for (Progress& engine : progress)
            engine = Progress{};
    }
    running = top->trace_running;
    const bool wvalid = top->m_axi_wvalid;
    drive(memory.decide(wvalid));
    if (Waveform::AVAILABLE) {
        top->eval();        // so that inputs, too, are seen to change at the edge
        waveform.dump(time);
    }
    top->clk = 0;
    top->eval();
    waveform.dump(time + HALF_CYCLE);
    master = sample();
    if (master.w.valid != wvalid && !top->rst)
        memory.protocol.complain(memory.cycle(), "wvalid depends on what memory shows");
    if (running)
        note_events();
}

void Harness::end_cycle() {
    if (!top->rst)
        memory.clock(master);
    time += 2 * HALF_CYCLE;
    top->clk = 1;
    top->eval();
}

void Harness::drive(const Slave& slave) {
    top->m_axi_arready = slave.arready;
    top->m_axi_rvalid = slave.rvalid;
    top->m_axi_rid = slave.rid;
    top->m_axi_rresp = slave.rresp;
    top->m_axi_rlast = slave.rlast;
    put(top->m_axi_rdata, slave.rdata.data());
    top->m_axi_awready = slave.awready;
    top->m_axi_wready = slave.wready;
    top->m_axi_bvalid = slave.bvalid;
    top->m_axi_bid = slave.bid;
    top->m_axi_bresp = slave.bresp;
}

Master Harness::sample() const {
    Master seen;
    seen.ar = {bool(top->m_axi_arvalid), top->m_axi_araddr, top->m_axi_arid, top->m_axi_arlen,
               top->m_axi_arsize, top->m_axi_arburst};
    seen.aw = {bool(top->m_axi_awvalid), top->m_axi_awaddr, top->m_axi_awid, top->m_axi_awlen,
               top->m_axi_awsize, top->m_axi_awburst};
    seen.w.valid = top->m_axi_wvalid;
    seen.w.last = top->m_axi_wlast;
    seen.w.strobes = top->m_axi_wstrb;
    get(top->m_axi_wdata, seen.w.data.data());
    seen.rready = top->m_axi_rready;
    seen.bready = top->m_axi_bready;
    return seen;
}

void Harness::note_events() {
#define NOTE(number, engine)                                                                \
    note(number, top->trace_##engine##_start, top->trace_##engine##_start_position,        \
         top->trace_##engine##_end, top->trace_##engine##_end_position);
    FOR_EACH_ENGINE(NOTE)
#undef NOTE
}

void Harness::note(unsigned engine, bool start, std::uint32_t start_position, bool end,
                   std::uint32_t end_position) {
    const auto cycle = std::int64_t(memory.cycle());
    Progress& place = progress[engine];
    if (start) {
        place.started++;
        place.start_position = start_position;
        if (start_position < trace.count)
            trace.start[start_position] = cycle;
    }
    if (end) {
        place.ended++;
        place.end_position = end_position;
        if (end_position < trace.count)
            trace.end[end_position] = cycle;
    }
}

bool Harness::write_register(std::uint32_t offset, std::uint32_t value) {
    top->s_axi_awaddr = offset;
    top->s_axi_awprot = 0;
    top->s_axi_wdata = value;
    top->s_axi_wstrb = 0xF;
    top->s_axi_awvalid = top->s_axi_wvalid = top->s_axi_bready = 1;
    for (unsigned cycle = 0; cycle < ANSWER_LIMIT; cycle++) {
        begin_cycle();
        const bool address_taken = top->s_axi_awready, data_taken = top->s_axi_wready;
        const bool answered = top->s_axi_bvalid, okay = top->s_axi_bresp == OKAY;
        end_cycle();
        if (address_taken)
            top->s_axi_awvalid = 0;
        if (data_taken)
            top->s_axi_wvalid = 0;
        if (answered) {
            top->s_axi_bready = 0;
            return okay;
        }
    }
    return false;
}

bool Harness::read_register(std::uint32_t offset, std::uint32_t& value) {
    top->s_axi_araddr = offset;
    top->s_axi_arprot = 0;
    top->s_axi_arvalid = top->s_axi_rready = 1;
    for (unsigned cycle = 0; cycle < ANSWER_LIMIT; cycle++) {
        begin_cycle();
        const bool address_taken = top->s_axi_arready;
        const bool answered = top->s_axi_rvalid, okay = top->s_axi_rresp == OKAY;
        value = top->s_axi_rdata;
        end_cycle();
        if (address_taken)
            top->s_axi_arvalid = 0;
        if (answered) {
            top->s_axi_rready = 0;
            return okay;
        }
    }
    return false;
}

bool Harness::run(std::uint64_t limit) {
    for (std::uint64_t cycle = 0; cycle < limit; cycle++) {
        if (interrupt_of(*top, 0))
            return true;
        begin_cycle();
        end_cycle();
    }
    return interrupt_of(*top, 0);
}

bool Harness::open_waveform(const std::string& path) {
    time = 0;
    return waveform.open(*top, path);
}

void Harness::close_waveform() {
    waveform.close();
}

}  // namespace microtron
