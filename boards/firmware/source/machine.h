/* The system's own parts. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

void start_timer(void);
void start_memory(void);
uint32_t now(void);                             /* cycles */
void pause(uint32_t cycles);
int wait_for_accelerator(uint32_t cycles);      /* 1: its interrupt came; 0: it did not */
int reset_accelerator(void);                    /* 1, unless memory does not become quiet */

#endif
