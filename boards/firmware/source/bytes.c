#include "bytes.h"

/* Words where both sides are aligned, else bytes. */
void *memcpy(void *to, const void *from, size_t count)
{
    uint8_t *target = to;
    const uint8_t *source = from;
    if (((uintptr_t)target | (uintptr_t)source) % 4 == 0)
        for (; count >= 4; count -= 4, target += 4, source += 4)
            *(uint32_t *)target = *(const uint32_t *)source;
    while (count--)
        *target++ = *source++;
    return to;
}

void *memset(void *to, int value, size_t count)
{
    uint8_t *target = to;
    uint32_t word = (uint8_t)value * 0x01010101u;
    if ((uintptr_t)target % 4 == 0)
        for (; count >= 4; count -= 4, target += 4)
            *(uint32_t *)target = word;
    while (count--)
        *target++ = value;
    return to;
}
