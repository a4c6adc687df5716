#include "accelerator.h"

#include "bytes.h"
#include "microtron_isa.h"
#include "protocol.h"

#define PAGE 4096u
#define SEGMENT_STEP (MICROTRON_REGISTER_SEGMENT1_LOW - MICROTRON_REGISTER_SEGMENT0_LOW)
#define STATUS(name) MICROTRON_MONITOR_STATUS_##name

/* Where the segments of a program are: at the beginning of the arena, a list of them. */
struct placed {
    const struct microtron_program *program;
    uint8_t *bases[MICROTRON_SEGMENTS];
    uint8_t *instructions;
    struct placed *next;
};

static struct placed *all_placed;

static uint32_t get(const struct driver *driver, uint32_t offset)
{
    return *(volatile uint32_t *)(driver->services->accelerator + offset);
}

static void set(const struct driver *driver, uint32_t offset, uint32_t value)
{
    *(volatile uint32_t *)(driver->services->accelerator + offset) = value;
}

static int failed(struct driver *driver, uint32_t status, uint32_t first, uint32_t second,
                  uint32_t third)
{
    driver->outcome->status = status;
    driver->outcome->detail[0] = first;
    driver->outcome->detail[1] = second;
    driver->outcome->detail[2] = third;
    return status;
}

int check_accelerator(struct driver *driver, const struct expected *expected, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint32_t value = get(driver, expected[i].offset);
        if (value != expected[i].value)
            return failed(driver, expected[i].offset <= MICROTRON_REGISTER_ISA_VERSION
                                      ? STATUS(NOT_AN_ACCELERATOR) : STATUS(WRONG_CONFIGURATION),
                          expected[i].offset, value, expected[i].value);
    }
    return 0;
}

/* Placing ----------------------------------------------------------------------------------- */

static uint8_t *allocate(struct driver *driver, size_t bytes)
{
    size_t rounded = (bytes + PAGE - 1) / PAGE * PAGE;
    if (rounded > driver->arena_bytes)
        return 0;
    uint8_t *place = driver->arena;
    driver->arena += rounded;
    driver->arena_bytes -= rounded;
    return place;
}

/* Bytes that are whole and begin on a page stay where they are; others are copied to the arena. */
static uint8_t *place(struct driver *driver, const uint8_t *content, size_t content_bytes,
                      size_t bytes)
{
    if (content && content_bytes == bytes && (uintptr_t)content % PAGE == 0)
        return (uint8_t *)(uintptr_t)content;
    uint8_t *found = allocate(driver, bytes);
    if (found) {
        copy_bytes(found, content, content_bytes);
        clear_bytes(found + content_bytes, bytes - content_bytes);
    }
    return found;
}

static int place_program(struct driver *driver, const struct microtron_program *program)
{
    struct placed *placed = (struct placed *)allocate(driver, sizeof *placed);
    if (!placed)
        return failed(driver, STATUS(TOO_LARGE), 0, 0, 0);
    clear_bytes((uint8_t *)placed, sizeof *placed);
    placed->program = program;
    placed->instructions = place(driver, program->instructions, program->instruction_bytes,
                                 program->instruction_bytes);
    int is_complete = placed->instructions != 0;
    for (unsigned i = 0; i < program->segment_count; i++) {
        const struct microtron_segment *segment = &program->segments[i];
        placed->bases[i] = place(driver, segment->content, segment->content_bytes,
                                 segment->bytes);
        is_complete = is_complete && placed->bases[i];
    }
    if (!is_complete)
        return failed(driver, STATUS(TOO_LARGE), 0, 0, 0);
    placed->next = all_placed;
    all_placed = placed;
    return 0;
}

int place_segments(struct driver *driver, const struct microtron_network *network)
{
    if (driver->is_placed)
        return 0;
    for (unsigned i = 0; i < network->stage_count; i++) {
        const struct microtron_program *program = network->stages[i].program;
        if (program && place_program(driver, program))
            return driver->outcome->status;
    }
    driver->is_placed = 1;
    return 0;
}

/* Running ----------------------------------------------------------------------------------- */

static void set_up(const struct driver *driver, const struct placed *placed)
{
    const struct microtron_program *program = placed->program;
    set(driver, MICROTRON_REGISTER_PROGRAM_LOW, (uintptr_t)placed->instructions);
    set(driver, MICROTRON_REGISTER_PROGRAM_HIGH, 0);
    set(driver, MICROTRON_REGISTER_PROGRAM_COUNT,
        program->instruction_bytes / sizeof(union microtron_instruction));
    for (unsigned i = 0; i < MICROTRON_SEGMENTS; i++) {
        uint32_t step = i * SEGMENT_STEP;
        int is_used = i < program->segment_count;
        set(driver, MICROTRON_REGISTER_SEGMENT0_LOW + step, (uintptr_t)placed->bases[i]);
        set(driver, MICROTRON_REGISTER_SEGMENT0_HIGH + step, 0);
        set(driver, MICROTRON_REGISTER_SEGMENT0_SIZE + step,
            is_used ? program->segments[i].bytes : 0);
        set(driver, MICROTRON_REGISTER_SEGMENT0_ACCESS + step,
            is_used && program->segments[i].writable);
    }
}

static int start_and_wait(struct driver *driver)
{
    const struct services *services = driver->services;
    set(driver, MICROTRON_REGISTER_CONTROL,
        MICROTRON_CONTROL_START | MICROTRON_CONTROL_INTERRUPT_ENABLE);
    if (!services->wait(services->timeout)) {
        uint32_t status = get(driver, MICROTRON_REGISTER_STATUS);
        return failed(driver, services->reset() ? STATUS(HUNG) : STATUS(DEAD), status, 0, 0);
    }
    uint32_t status = get(driver, MICROTRON_REGISTER_STATUS);
    set(driver, MICROTRON_REGISTER_STATUS, MICROTRON_STATUS_INTERRUPT);
    driver->outcome->accelerator_cycles +=
        get(driver, MICROTRON_REGISTER_CYCLES_LOW)
        | (uint64_t)get(driver, MICROTRON_REGISTER_CYCLES_HIGH) << 32;
    if (status & MICROTRON_STATUS_DONE)
        return 0;
    return failed(driver, STATUS(FAULT), get(driver, MICROTRON_REGISTER_FAULT),
                  get(driver, MICROTRON_REGISTER_FAULT_POSITION), 0);
}

int accelerate(void *context, const struct microtron_program *program, uint8_t *memory)
{
    struct driver *driver = context;
    const struct placed *placed = all_placed;
    while (placed->program != program)
        placed = placed->next;
    for (unsigned i = 0; i < program->input_count; i++) {
        const struct microtron_port *port = &program->inputs[i];
        copy_bytes(placed->bases[port->segment] + port->place, memory + port->offset, port->bytes);
    }
    set_up(driver, placed);
    int status = start_and_wait(driver);
    if (status)
        return status;
    forget_cached_data();               /* what the accelerator wrote is in memory, not there */
    for (unsigned i = 0; i < program->output_count; i++) {
        const struct microtron_port *port = &program->outputs[i];
        copy_bytes(memory + port->offset, placed->bases[port->segment] + port->place, port->bytes);
    }
    return 0;
}
