/* The serial line. */
#ifndef SERIAL_H
#define SERIAL_H

#include <stdint.h>

void put_byte(uint8_t byte);
int get_byte(uint32_t patience);        /* -1 if none comes in so many cycles; 0: wait for ever */
void print(const char *text);
void print_number(uint32_t value);
uint32_t checksum(uint32_t crc, const uint8_t *bytes, uint32_t count);

#endif
