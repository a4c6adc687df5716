#include "microtron_network.h"

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
