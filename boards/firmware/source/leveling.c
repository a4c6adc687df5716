/* Where memory is read with a delay that nobody knows in advance: try all, and take the middle of the
   widest window in which what was written comes back. Writes need no delay (ECP5's DDR3). */
#include "leveling.h"

#include "hardware.h"

#define TRIED_BYTES 256u

static uint8_t pattern(uint32_t place)
{
    return (place * 0x9Du + 0x5Bu) ^ place >> 4;
}

/* Whether the bytes that one of so many chips holds are as they were written. */
static int is_right(unsigned module, unsigned modules)
{
    forget_data();
    for (uint32_t i = module; i < TRIED_BYTES; i += modules)
        if (*(volatile uint8_t *)(MAIN_RAM_BASE + i) != pattern(i))
            return 0;
    return 1;
}

static void write_pattern(void)
{
    for (uint32_t i = 0; i < TRIED_BYTES; i++)
        *(volatile uint8_t *)(MAIN_RAM_BASE + i) = pattern(i);
}

#ifdef CSR_DRAM_PHY_RDLY_DQ_INC

static void choose(unsigned module, unsigned slips, unsigned delay)
{
    write32(CSR_DRAM_PHY_DLY_SEL, 1u << module);
    write32(CSR_DRAM_PHY_RDLY_DQ_BITSLIP_RST, 1);
    while (slips--)
        write32(CSR_DRAM_PHY_RDLY_DQ_BITSLIP, 1);
    write32(CSR_DRAM_PHY_RDLY_DQ_RST, 1);
    while (delay--)
        write32(CSR_DRAM_PHY_RDLY_DQ_INC, 1);
    write32(CSR_DRAM_PHY_DLY_SEL, 0);
}

static void level(unsigned module)
{
    unsigned best_slips = 0, best_delay = 0, widest = 0;
    for (unsigned slips = 0; slips < DRAM_BITSLIPS; slips++) {
        unsigned width = 0;
        for (unsigned delay = 0; delay < DRAM_DELAYS; delay++) {
            choose(module, slips, delay);
            width = is_right(module, DRAM_MODULES) ? width + 1 : 0;
            if (width > widest) {
                widest = width;
                best_slips = slips;
                best_delay = delay - width / 2;
            }
        }
    }
    choose(module, best_slips, best_delay);
}

static void level_all(void)
{
    for (unsigned module = 0; module < DRAM_MODULES; module++)
        level(module);
}

#else

static void level_all(void) {}          /* this memory is read without delays */

#endif

int level_memory(void)
{
    write_pattern();
    level_all();
    return is_right(0, 1);
}
