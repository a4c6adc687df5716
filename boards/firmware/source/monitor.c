/* The monitor: takes frames from the serial line, loads an image, runs it, and says how that went.
   Whatever comes, it goes on: a bad frame is refused, a trap ends the image and not the monitor.

   frame   A5 5A, kind, number, length (16 bits), payload, CRC-32 of all from the kind on
   answer  the same, with kind + 0x80; its payload begins with a status

   Between frames it also does what LiteX's bridge over a serial line does: 01 or 02, a count, the
   number of a word, words. */
#include "bytes.h"
#include "hardware.h"
#include "leveling.h"
#include "machine.h"
#include "protocol.h"
#include "serial.h"
#include "services.h"

#define WORDS(bytes) ((bytes) / 4)

extern const uint32_t trap_cause[3];
int guarded(int (*function)(void *), void *argument, uint32_t stack);

struct frame {
    uint8_t kind, number;
    uint16_t length;
    uint32_t payload[WORDS(MONITOR_PAYLOAD)];
};

static struct frame frame;
static struct outcome last;             /* run */
static struct {
    uint32_t bytes, needed, crc;        /* as announced */
    int is_checked;
} loading;

/* Memory ------------------------------------------------------------------------------------ */

static int lies_in(uint32_t base, uint32_t size, uint32_t address, uint32_t bytes)
{
    return address >= base && address - base <= size && bytes <= size - (address - base);
}

/* Where the other side may read and write: not in the monitor's own memory. */
static int is_allowed(uint32_t address, uint32_t bytes)
{
    return lies_in(MAIN_RAM_BASE, MAIN_RAM_SIZE, address, bytes)
        || lies_in(REGISTERS_BASE, REGISTERS_SIZE, address, bytes)
        || lies_in(CSR_BASE, CSR_SIZE, address, bytes);
}

struct copy {
    uint32_t to, from, bytes;
};

/* Whole words: registers have no smaller parts. */
static int copy_words(void *argument)
{
    const struct copy *copy = argument;
    for (uint32_t i = 0; i < copy->bytes; i += 4)
        write32(copy->to + i, read32(copy->from + i));
    return 0;
}

/* LiteX's bridge ---------------------------------------------------------------------------- */

/* Its tools expect high bytes first, and wait for no answer to a write. Without a checksum. */
static int get_big_word(uint32_t *word)
{
    *word = 0;
    for (unsigned i = 0; i < 4; i++) {
        int byte = get_byte(MONITOR_PATIENCE);
        if (byte < 0)
            return 0;
        *word = *word << 8 | byte;
    }
    return 1;
}

static void serve_bridge(int is_write)
{
    uint32_t address, word;
    int count = get_byte(MONITOR_PATIENCE);
    if (count < 0 || !get_big_word(&address))
        return;
    forget_data();
    for (address *= 4; count--; address += 4) {
        struct copy copy = { (uintptr_t)&word, address, 4 };
        if (is_write) {
            if (!get_big_word(&word))
                return;
            copy.to = address;
            copy.from = (uintptr_t)&word;
        }
        if (!is_allowed(address, 4) || guarded(copy_words, &copy, 0))
            word = 0;
        for (int shift = 24; !is_write && shift >= 0; shift -= 8)
            put_byte(word >> shift);
    }
}

/* Frames ------------------------------------------------------------------------------------ */

static uint32_t frame_bytes(void)
{
    return 4u + frame.length;
}

/* 1: a frame is there; 0: something came that is none. */
static int receive(void)
{
    uint8_t *bytes = (uint8_t *)&frame;
    for (int first = 0; first != MONITOR_FIRST || get_byte(MONITOR_PATIENCE) != MONITOR_SECOND;) {
        first = get_byte(0);
        if (first == MONITOR_BRIDGE_WRITE || first == MONITOR_BRIDGE_READ)
            serve_bridge(first == MONITOR_BRIDGE_WRITE);
    }
    frame.length = 0;
    for (uint32_t i = 0; i < frame_bytes(); i++) {
        int byte = get_byte(MONITOR_PATIENCE);
        if (byte < 0)
            return 0;
        bytes[i] = byte;
        if (i == 3 && frame.length > MONITOR_PAYLOAD)
            return 0;
    }
    uint32_t crc = 0;
    for (unsigned i = 0; i < 4; i++) {
        int byte = get_byte(MONITOR_PATIENCE);
        if (byte < 0)
            return 0;
        crc |= (uint32_t)byte << 8 * i;
    }
    return crc == checksum(0, bytes, frame_bytes());
}

/* Answer with the frame's payload, of so many bytes. */
static void answer(uint32_t bytes)
{
    const uint8_t *octets = (const uint8_t *)&frame;
    frame.kind |= MONITOR_ANSWER;
    frame.length = bytes;
    uint32_t crc = checksum(0, octets, frame_bytes());
    put_byte(MONITOR_FIRST);
    put_byte(MONITOR_SECOND);
    for (uint32_t i = 0; i < frame_bytes(); i++)
        put_byte(octets[i]);
    for (unsigned i = 0; i < 4; i++)
        put_byte(crc >> 8 * i);
}

static void answer_status(uint32_t status)
{
    frame.payload[0] = status;
    answer(4);
}

/* Requests ---------------------------------------------------------------------------------- */

static void read_memory(void)
{
    uint32_t address = frame.payload[0], bytes = frame.payload[1];
    if (frame.length != 8 || bytes > MONITOR_PAYLOAD - 4 || (address | bytes) & 3)
        return answer_status(MICROTRON_MONITOR_STATUS_BAD_REQUEST);
    if (!is_allowed(address, bytes))
        return answer_status(MICROTRON_MONITOR_STATUS_BAD_ADDRESS);
    struct copy copy = { (uintptr_t)(frame.payload + 1), address, bytes };
    forget_data();
    if (guarded(copy_words, &copy, 0))
        return answer_status(MICROTRON_MONITOR_STATUS_BUS_ERROR);
    frame.payload[0] = MICROTRON_MONITOR_STATUS_DONE;
    answer(4 + bytes);
}

static void write_memory(void)
{
    uint32_t address = frame.payload[0], bytes = frame.length - 4u;
    if (frame.length < 4 || (address | bytes) & 3)
        return answer_status(MICROTRON_MONITOR_STATUS_BAD_REQUEST);
    if (!is_allowed(address, bytes))
        return answer_status(MICROTRON_MONITOR_STATUS_BAD_ADDRESS);
    struct copy copy = { address, (uintptr_t)(frame.payload + 1), bytes };
    answer_status(guarded(copy_words, &copy, 0) ? MICROTRON_MONITOR_STATUS_BUS_ERROR
                                                : MICROTRON_MONITOR_STATUS_DONE);
}

/* Images ------------------------------------------------------------------------------------ */

static void announce(void)
{
    if (frame.length != 12)
        return answer_status(MICROTRON_MONITOR_STATUS_BAD_REQUEST);
    if (frame.payload[0] > frame.payload[1] || frame.payload[1] > MAIN_RAM_SIZE) {
        print("image: too large\r\n");
        frame.payload[0] = MICROTRON_MONITOR_STATUS_TOO_LARGE;
        frame.payload[1] = MAIN_RAM_SIZE;
        return answer(8);
    }
    loading.is_checked = 0;
    loading.bytes = frame.payload[0];
    loading.needed = frame.payload[1];
    loading.crc = frame.payload[2];
    answer_status(MICROTRON_MONITOR_STATUS_DONE);
}

/* Whether what lies in memory is what was announced. */
static uint32_t image_status(void)
{
    const struct image *image = (const struct image *)MAIN_RAM_BASE;
    if (!loading.bytes)
        return MICROTRON_MONITOR_STATUS_NO_IMAGE;
    if (loading.is_checked)
        return MICROTRON_MONITOR_STATUS_DONE;
    forget_data();
    if (checksum(0, (const uint8_t *)image, loading.bytes) != loading.crc
        || image->magic != IMAGE_MAGIC || image->version != SERVICES_VERSION
        || image->bytes != loading.bytes || image->needed != loading.needed)
        return MICROTRON_MONITOR_STATUS_BAD_IMAGE;
    loading.is_checked = 1;
    forget_code();
    return MICROTRON_MONITOR_STATUS_DONE;
}

static void outcome(void)
{
    copy_bytes((uint8_t *)frame.payload, (const uint8_t *)&last, sizeof last);
    answer(sizeof last);
}

static int call_image(void *argument)
{
    const struct image *image = (const struct image *)MAIN_RAM_BASE;
    return image->run(argument, &last);
}

static void run(void)
{
    struct services services = {
        SERVICES_VERSION, CLOCK_HZ, REGISTERS_BASE, frame.payload[0],
        wait_for_accelerator, reset_accelerator, now, print, print_number,
    };
    if (frame.length != 4)
        return answer_status(MICROTRON_MONITOR_STATUS_BAD_REQUEST);
    clear_bytes((uint8_t *)&last, sizeof last);
    last.status = image_status();
    if (last.status == MICROTRON_MONITOR_STATUS_DONE) {
        const struct image *image = (const struct image *)MAIN_RAM_BASE;
        uint32_t start = now();
        if (guarded(call_image, &services, image->stack) < 0) {
            last.status = MICROTRON_MONITOR_STATUS_TRAP;
            for (unsigned i = 0; i < 3; i++)
                last.detail[i] = trap_cause[i];
            reset_accelerator();        /* it may still run */
        }
        last.cycles = now() - start;
        __asm__ volatile("csrci mstatus, 8" ::: "memory");
    }
    print("run: status ");
    print_number(last.status);
    print("\r\n");
    outcome();
}

/* Everything else --------------------------------------------------------------------------- */

static void hello(void)
{
    frame.payload[0] = MICROTRON_MONITOR_STATUS_DONE;
    frame.payload[1] = SERVICES_VERSION;
    frame.payload[2] = CLOCK_HZ;
    frame.payload[3] = MAIN_RAM_BASE;
    frame.payload[4] = MAIN_RAM_SIZE;
    frame.payload[5] = REGISTERS_BASE;
    answer(24);
}

void monitor(void)
{
    start_timer();
    start_memory();
    int is_right = level_memory();
    reset_accelerator();
    print("\r\nMicrotron monitor on " BOARD "\r\n");
    if (!is_right)
        print("its memory does not give back what is written to it\r\n");
    for (;;) {
        if (!receive()) {
            frame.kind = 0;
            answer_status(MICROTRON_MONITOR_STATUS_BAD_FRAME);
            continue;
        }
        switch (frame.kind) {
        case MICROTRON_MONITOR_KIND_HELLO:
            hello();
            break;
        case MICROTRON_MONITOR_KIND_READ:
            read_memory();
            break;
        case MICROTRON_MONITOR_KIND_WRITE:
            write_memory();
            break;
        case MICROTRON_MONITOR_KIND_LOAD:
            announce();
            break;
        case MICROTRON_MONITOR_KIND_RUN:
            run();
            break;
        case MICROTRON_MONITOR_KIND_OUTCOME:
            outcome();
            break;
        default:
            answer_status(MICROTRON_MONITOR_STATUS_BAD_REQUEST);
        }
    }
}
