/* What the monitor does for a network's image, and what an image tells it. */
#ifndef SERVICES_H
#define SERVICES_H

#include <stdint.h>

#define SERVICES_VERSION 2
#define IMAGE_MAGIC 0x4D49544Du         /* "MTIM" */

/* How a run ended. Sent over the serial line as it lies here. */
struct outcome {
    uint32_t status;                    /* enum microtron_monitor_status */
    uint32_t stage;                     /* of the network that failed */
    uint32_t detail[4];                 /* what they mean depends on the status */
    uint64_t accelerator_cycles;        /* of all programs together, by the accelerator's count */
    uint64_t cycles;                    /* from beginning to end, by the system's timer */
};

struct services {
    uint32_t version;
    uint32_t clock_hz;
    uintptr_t accelerator;              /* its registers */
    uint32_t timeout;                   /* cycles after which an accelerator hangs */

    /* Sleep until the accelerator's interrupt: 1; or for so many cycles: 0. */
    int (*wait)(uint32_t cycles);
    /* Give the accelerator up, and begin anew with it: 1, unless memory does not become quiet. */
    int (*reset)(void);
    /* A number that goes up by one each cycle. */
    uint32_t (*now)(void);
    void (*print)(const char *text);
    void (*print_number)(uint32_t value);
};

/* The beginning of an image, at the beginning of memory. */
struct image {
    uint32_t magic;
    uint32_t version;                   /* of the services that it wants */
    uint32_t bytes;                     /* of the file */
    uint32_t needed;                    /* bytes of memory, from its beginning to its end */
    uint32_t stack;                     /* where its stack begins, and grows down from */
    int (*run)(const struct services *services, struct outcome *outcome);
    const void *network;                /* struct microtron_network: what goes in and out */
    uint8_t *memory;                    /* where its tensors are */
};

#endif
