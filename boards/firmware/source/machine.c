/* The system's own parts: timer, interrupts, start of the memory, reset of the accelerator. */
#include "machine.h"

#include "hardware.h"

#define ACCELERATOR_INTERRUPT (1u << INTERRUPT_MICROTRON)
#define QUIET_CYCLES 10000u             /* far more than memory owes at any time */

static volatile uint32_t interrupts;    /* that came */

void start_timer(void)
{
    write32(CSR_TIMER0_EN, 0);
    write32(CSR_TIMER0_LOAD, 0xFFFFFFFFu);
    write32(CSR_TIMER0_RELOAD, 0xFFFFFFFFu);
    write32(CSR_TIMER0_EN, 1);
}

uint32_t now(void)
{
    write32(CSR_TIMER0_UPDATE_VALUE, 1);
    return ~read32(CSR_TIMER0_VALUE);
}

void pause(uint32_t cycles)
{
    uint32_t start = now();
    while (now() - start < cycles)
        ;
}

/* Called by trap_entry. What is pending stays so until a driver clears it: it must not come again. */
void interrupted(void)
{
    interrupts |= pending_interrupts();
    allow_interrupts(0);
}

int wait_for_accelerator(uint32_t cycles)
{
    uint32_t start = now();
    interrupts = 0;
    write32(CSR_MICROTRON_EV_ENABLE, 1);
    allow_interrupts(ACCELERATOR_INTERRUPT);
    __asm__ volatile("csrsi mstatus, 8" ::: "memory");
    while (!interrupts && now() - start < cycles)
        ;
    __asm__ volatile("csrci mstatus, 8" ::: "memory");
    allow_interrupts(0);
    return interrupts != 0;
}

/* Memory must not answer an accelerator that no longer remembers the question. */
int reset_accelerator(void)
{
    uint32_t start = now();
    write32(CSR_MICROTRON_STOP, 1);
    while (!read32(CSR_MICROTRON_QUIET))
        if (now() - start > QUIET_CYCLES)
            return 0;
    write32(CSR_MICROTRON_RESET, 1);
    write32(CSR_MICROTRON_RESET, 0);
    write32(CSR_MICROTRON_STOP, 0);
    return 1;
}

/* The sequence is LiteDRAM's, for this chip. */
void start_memory(void)
{
    static const struct {
        uint16_t address;
        uint8_t bank, command, is_control;
        uint32_t wait;
    } steps[] = { DRAM_START };
    write32(CSR_SDRAM_DFII_CONTROL, 0xC);       /* software's turn; not in reset */
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        write32(CSR_SDRAM_DFII_PI0_ADDRESS, steps[i].address);
        write32(CSR_SDRAM_DFII_PI0_BADDRESS, steps[i].bank);
        if (steps[i].is_control) {
            write32(CSR_SDRAM_DFII_CONTROL, steps[i].command);
        } else {
            write32(CSR_SDRAM_DFII_PI0_COMMAND, steps[i].command);
            write32(CSR_SDRAM_DFII_PI0_COMMAND_ISSUE, 1);
        }
        pause(steps[i].wait);
    }
    write32(CSR_SDRAM_DFII_CONTROL, 1);         /* the controller's turn */
}
