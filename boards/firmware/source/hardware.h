/* Registers of the system, of 32 bits each. system.h is generated: it says where they are. */
#ifndef HARDWARE_H
#define HARDWARE_H

#include <stdint.h>

#include "system.h"

static inline uint32_t read32(uintptr_t address)
{
    return *(volatile uint32_t *)address;
}

static inline void write32(uintptr_t address, uint32_t value)
{
    *(volatile uint32_t *)address = value;
}

/* VexRiscv's own instructions: forget what is cached of code, and of data. */
static inline void forget_code(void)
{
    __asm__ volatile(".word 0x100F\nnop\nnop\nnop\nnop\nnop" ::: "memory");
}

static inline void forget_data(void)
{
#if DATA_CACHE                          /* or the instruction is none at all */
    __asm__ volatile(".word 0x500F\nnop\nnop\nnop\nnop\nnop" ::: "memory");
#endif
}

/* LiteX's interrupt controller: a mask, and what is pending. */
static inline void allow_interrupts(uint32_t mask)
{
    __asm__ volatile("csrw 0xBC0, %0" :: "r"(mask) : "memory");
}

static inline uint32_t pending_interrupts(void)
{
    uint32_t pending;
    __asm__ volatile("csrr %0, 0xFC0" : "=r"(pending));
    return pending;
}

#endif
