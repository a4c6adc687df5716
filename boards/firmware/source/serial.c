/* The serial line: bytes, text for people, and the checksum of frames. */
#include "serial.h"

#include "hardware.h"
#include "machine.h"

#define RECEIVED 2u                     /* of the UART's events */

void put_byte(uint8_t byte)
{
    while (read32(CSR_UART_TXFULL))
        ;
    write32(CSR_UART_RXTX, byte);
}

int get_byte(uint32_t patience)
{
    uint32_t start = now();
    while (read32(CSR_UART_RXEMPTY))
        if (patience && now() - start > patience)
            return -1;
    uint8_t byte = read32(CSR_UART_RXTX);
    write32(CSR_UART_EV_PENDING, RECEIVED);     /* takes it from the queue */
    return byte;
}

void print(const char *text)
{
    while (*text)
        put_byte(*text++);
}

void print_number(uint32_t value)
{
    char digits[11], *next = digits + sizeof digits;
    *--next = 0;
    do
        *--next = '0' + value % 10;
    while (value /= 10);
    print(next);
}

/* CRC-32 as everybody has it (reflected, 0xEDB88320), four bits at a time: the table is small. */
uint32_t checksum(uint32_t crc, const uint8_t *bytes, uint32_t count)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158,
        0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4,
        0xA00AE278, 0xBDBDF21C,
    };
    crc = ~crc;
    while (count--) {
        crc ^= *bytes++;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}
