/* Memory, without a C library. */
#ifndef BYTES_H
#define BYTES_H

#include <stddef.h>
#include <stdint.h>

void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);

static inline void copy_bytes(uint8_t *to, const uint8_t *from, size_t count)
{
    memcpy(to, from, count);
}

static inline void clear_bytes(uint8_t *to, size_t count)
{
    memset(to, 0, count);
}

/* VexRiscv's own instruction: forget what is cached of data. Its cache writes through. */
static inline void forget_cached_data(void)
{
#if DATA_CACHE                          /* or the instruction is none at all */
    __asm__ volatile(".word 0x500F\nnop\nnop\nnop\nnop\nnop" ::: "memory");
#endif
}

#endif
