/* The driver: runs programs of a network on the accelerator, through the monitor's services. */
#ifndef ACCELERATOR_H
#define ACCELERATOR_H

#include "microtron_network.h"
#include "services.h"

/* What the accelerator must be: registers and their values, as generated for the network. */
struct expected {
    uint16_t offset;
    uint32_t value;
};

struct driver {
    const struct services *services;
    struct outcome *outcome;
    uint8_t *arena;                     /* memory for segments, aligned to pages */
    size_t arena_bytes;
    int is_placed;                      /* segments have their places since the first run */
};

/* Whether this is the accelerator that the network was compiled for; if not, the outcome says. */
int check_accelerator(struct driver *driver, const struct expected *expected, unsigned count);

/* Give every segment of every program its place, and its content. */
int place_segments(struct driver *driver, const struct microtron_network *network);

/* Run a program: a microtron_accelerator whose context is a driver. */
int accelerate(void *context, const struct microtron_program *program, uint8_t *memory);

#endif
