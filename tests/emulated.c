/* Runs functions of shared objects on buffers, as asked on stdin, until that ends.

   A request: lengths of a path and of a name, both texts, bytes of scratch memory, the number of
   buffers, then for each its kind, the size of an element and of the whole, and its content if it
   is given; the number of calls, and two numbers for each. The answer: what the calls returned,
   or-ed; the number of a buffer around which something was written, or -1; and the buffers that
   were not given. Every buffer begins at an odd multiple of its element, as a view may. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 128
#define UNWRITTEN 0xA5

enum { UNKNOWN, GIVEN, SCRATCH };

struct buffer {
    uint64_t kind, element, size;
    uint8_t *memory, *start;
};

static void take(void *to, size_t size)
{
    if (size && fread(to, size, 1, stdin) != 1)
        exit(0);
}

static uint64_t number(void)
{
    uint64_t value;
    take(&value, sizeof value);
    return value;
}

static void give(const void *from, size_t size)
{
    if (size && fwrite(from, size, 1, stdout) != 1)
        exit(1);
}

static uint8_t *aligned(size_t size, size_t offset, uint8_t **start)
{
    uint8_t *memory = aligned_alloc(64, (size + 2 * GUARD + 128) / 64 * 64);
    memset(memory, UNWRITTEN, size + 2 * GUARD + 64);
    *start = memory + GUARD + offset;
    return memory;
}

static int damaged(const struct buffer *buffer)
{
    const uint8_t *each = buffer->memory, *end = buffer->start + buffer->size;
    for (; each < buffer->start; each++)
        if (*each != UNWRITTEN)
            return 1;
    for (each = end; each < end + GUARD / 2; each++)
        if (*each != UNWRITTEN)
            return 1;
    return 0;
}

int main(void)
{
    for (;;) {
        uint64_t lengths[2] = { number(), number() };
        char path[4096] = { 0 }, name[256] = { 0 };
        if (lengths[0] >= sizeof path || lengths[1] >= sizeof name)
            return 2;
        take(path, lengths[0]);
        take(name, lengths[1]);
        struct buffer scratch = { SCRATCH, 1, number(), 0, 0 };
        scratch.memory = aligned(scratch.size, 0, &scratch.start);
        uint64_t count = number();
        struct buffer *buffers = calloc(count + 1, sizeof *buffers);
        void **table = calloc(count + 1, sizeof *table);
        for (uint64_t i = 0; i < count; i++) {
            buffers[i].kind = number();
            buffers[i].element = number();
            buffers[i].size = number();
            if (buffers[i].kind == SCRATCH) {           /* its place in scratch memory */
                table[i] = scratch.start + buffers[i].size;
                continue;
            }
            buffers[i].memory = aligned(buffers[i].size, buffers[i].element, &buffers[i].start);
            if (buffers[i].kind == GIVEN)
                take(buffers[i].start, buffers[i].size);
            table[i] = buffers[i].start;
        }
        void *library = dlopen(path, RTLD_NOW);
        int32_t (*function)(void *const *, intptr_t, intptr_t) =
            library ? (int32_t (*)(void *const *, intptr_t, intptr_t))dlsym(library, name) : 0;
        if (!function) {
            fprintf(stderr, "%s\n", dlerror());
            return 3;
        }
        int32_t status = 0, wrong = -1;
        for (uint64_t calls = number(); calls; calls--) {
            intptr_t first = number(), last = number();
            status |= function(table, first, last);
        }
        for (uint64_t i = 0; i < count; i++)
            if (buffers[i].kind != SCRATCH && damaged(&buffers[i]))
                wrong = i;
        if (damaged(&scratch))
            wrong = count;
        give(&status, sizeof status);
        give(&wrong, sizeof wrong);
        for (uint64_t i = 0; i < count; i++) {
            if (buffers[i].kind == UNKNOWN)
                give(buffers[i].start, buffers[i].size);
            free(buffers[i].memory);
        }
        fflush(stdout);
        free(scratch.memory);
        free(buffers);
        free(table);
        dlclose(library);
    }
}
