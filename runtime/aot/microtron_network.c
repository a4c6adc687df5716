#include "microtron_network.h"

void microtron_reset(const struct microtron_network *network, uint8_t *memory)
{
    for (unsigned number = 0; number < network->state_count; number++) {
        const struct microtron_tensor *state = &network->states[number];
        for (size_t place = 0; place < state->bytes; place++)
            memory[state->offset + place] = network->initials[number][place];
    }
}

int microtron_run(const struct microtron_network *network, uint8_t *memory,
                  microtron_accelerator accelerator, void *context, unsigned *failed)
{
    for (unsigned number = 0; number < network->stage_count; number++) {
        const struct microtron_stage *stage = &network->stages[number];
        int status = stage->compute ? stage->compute(memory)
                                    : accelerator(context, stage->program, memory);
        if (status) {
            if (failed)
                *failed = number;
            return status;
        }
    }
    return 0;
}
