/* A network that was compiled ahead of time: what runs where, in which order, on which memory.

   The tables are written by `microtron compile --emit-objects`; nothing here needs an operating
   system or a C library. */

#ifndef MICROTRON_NETWORK_H
#define MICROTRON_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of the network, at `offset` of its memory. real = scale * (stored - zero_point) where
   scale is not 0. */
struct microtron_tensor {
    const char *name;
    const char *type;               /* int8, float32, ... */
    size_t offset;
    size_t bytes;
    unsigned rank;
    const unsigned *shape;
    double scale;
    int zero_point;
};

/* A window into the accelerator's memory. `content` is what it holds before the first run. */
struct microtron_segment {
    const char *name;
    size_t bytes;
    int writable;                   /* by the accelerator */
    const uint8_t *content;
    size_t content_bytes;
};

/* Tiles of a tensor: at `place` of a segment, and at `offset` of the network's memory. */
struct microtron_port {
    const char *name;
    unsigned segment;
    size_t place;
    size_t offset;
    size_t bytes;
};

/* What the accelerator runs. Before: copy the inputs to their places; after: the outputs back. */
struct microtron_program {
    const uint8_t *instructions;
    size_t instruction_bytes;
    const struct microtron_segment *segments;
    unsigned segment_count;
    const struct microtron_port *inputs;
    unsigned input_count;
    const struct microtron_port *outputs;
    unsigned output_count;
};

/* A stage of an inference: a function for the CPU, or a program for the accelerator. */
struct microtron_stage {
    const char *name;
    int (*compute)(uint8_t *memory);            /* or null; 0: all is well */
    const struct microtron_program *program;    /* or null */
};

struct microtron_network {
    const char *name;
    const char *configuration;      /* of the accelerator, as its fields and values */
    size_t memory_bytes;            /* aligned to 64 bytes */
    const struct microtron_tensor *inputs;
    unsigned input_count;
    const struct microtron_tensor *outputs;
    unsigned output_count;
    const struct microtron_stage *stages;
    unsigned stage_count;
    const struct microtron_tensor *states;      /* kept in memory from one inference to the next */
    const uint8_t *const *initials;             /* what each holds before the first */
    unsigned state_count;
};

/* Runs a program on the network's memory. Anything but 0 ends the inference. */
typedef int (*microtron_accelerator)(void *context, const struct microtron_program *program,
                                     uint8_t *memory);

/* States as they are before the first inference. To be called once before it, if the network has
   states, and whenever what was before is to be forgotten. */
void microtron_reset(const struct microtron_network *network, uint8_t *memory);

/* One inference: inputs are in `memory` before, outputs after. 0, or what a stage returned that
   failed; then `failed`, unless it is null, receives its number, and states are what they were. */
int microtron_run(const struct microtron_network *network, uint8_t *memory,
                  microtron_accelerator accelerator, void *context, unsigned *failed);

#ifdef __cplusplus
}
#endif

#endif
