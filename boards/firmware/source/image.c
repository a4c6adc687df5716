/* A network's image: its header, and one inference. network.h is generated: which network, and what
   the accelerator must be. */
#include "accelerator.h"
#include "network.h"
#include "protocol.h"

#define STACK_BYTES 65536u

extern uint8_t image_end[], memory_end[], thread_variables[];

/* Behind the image: neither in its file nor cleared. */
#define BEHIND(bytes) __attribute__((section(".behind"), aligned(bytes)))

static uint8_t memory[NETWORK_MEMORY_BYTES] BEHIND(64);
static uint8_t arena[NETWORK_ARENA_BYTES] BEHIND(4096);
static uint8_t stack[STACK_BYTES] BEHIND(16);

static struct driver driver = { 0, 0, arena, sizeof arena, 0 };

static void tell(const struct outcome *outcome, const struct services *services)
{
    services->print("network: status ");
    services->print_number(outcome->status);
    services->print(", stage ");
    services->print_number(outcome->stage);
    for (unsigned i = 0; i < 3; i++) {
        services->print(i ? ", " : ", details ");
        services->print_number(outcome->detail[i]);
    }
    services->print("\r\n");
}

static int run(const struct services *services, struct outcome *outcome)
{
    static const struct expected expected[] = { NETWORK_EXPECTED };
    unsigned stage = 0;
    __asm__ volatile("mv tp, %0" :: "r"(thread_variables));     /* of the C library: errno */
    driver.services = services;
    driver.outcome = outcome;
    int status = check_accelerator(&driver, expected, sizeof expected / sizeof *expected);
    if (!status)
        status = place_segments(&driver, &NETWORK);
    if (!status)
        status = microtron_run(&NETWORK, memory, accelerate, &driver, &stage);
    outcome->stage = stage;
    if (status && !outcome->status) {   /* a stage on the processor says which kernel failed */
        outcome->status = MICROTRON_MONITOR_STATUS_KERNEL;
        outcome->detail[0] = status;
    }
    if (outcome->status)
        tell(outcome, services);
    return 0;
}

__attribute__((section(".header"), used)) const struct image header = {
    IMAGE_MAGIC, SERVICES_VERSION, (uintptr_t)image_end - IMAGE_BASE,
    (uintptr_t)memory_end - IMAGE_BASE, (uintptr_t)(stack + STACK_BYTES), run, &NETWORK, memory,
};
