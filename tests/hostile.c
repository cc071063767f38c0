/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile files in memory, and the checks that every reader of foreign bytes goes through. */
#define _POSIX_C_SOURCE 200809L
#include "hostile.h"

#include "unit.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

const bool hostile_sanitized = SANITIZED;
static const double time_limit = SANITIZED ? 0.100 : 0.010; /* seconds */
static const size_t memory_limit = (size_t)256 << 20;

void bytes_put(bytes *b, const void *data, size_t size)
{
    if (size == 0) return;
    if (b->size + size > b->capacity) {
        b->capacity = (b->size + size) * 2;
        b->data = realloc(b->data, b->capacity);
        assert_non_null(b->data);
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

void bytes_put_uint(bytes *b, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        bytes_put(b, &byte, 1);
    }
}

void bytes_put_text(bytes *b, const char *text)
{
    bytes_put(b, text, strlen(text));
}

void bytes_put_fill(bytes *b, uint8_t value, size_t count)
{
    for (size_t i = 0; i < count; i++) bytes_put(b, &value, 1);
}

void bytes_set_uint(bytes *b, size_t at, uint64_t value, size_t size)
{
    assert_true(at + size <= b->size);
    for (size_t i = 0; i < size; i++) b->data[at + i] = (uint8_t)(value >> (8 * i));
}

bytes bytes_copy(const bytes *b)
{
    bytes copy = {0};
    bytes_put(&copy, b->data, b->size);
    return copy;
}

void bytes_free(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}

double hostile_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

fk_status hostile_try(hostile_open open, const bytes *b)
{
    uint8_t *exact = malloc(b->size ? b->size : 1);
    assert_non_null(exact);
    if (b->size) memcpy(exact, b->data, b->size);
    fk_status status = open(exact, b->size);
    free(exact);
    return status;
}

/* Caps the address space at what is mapped now plus `memory_limit`; returns the old limit. A sanitizer's
 * shadow memory does not live under a cap, so there it is left alone. */
static struct rlimit cap_memory(void)
{
    struct rlimit old, capped;
    unsigned long pages = 0;
    getrlimit(RLIMIT_AS, &old);
    if (SANITIZED) return old;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    capped = old;
    capped.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + memory_limit;
    setrlimit(RLIMIT_AS, &capped);
    return old;
}

void hostile_refused(hostile_open open, const bytes *b, const char *what, const char *needle)
{
    struct rlimit old = cap_memory();
    double start = hostile_seconds();
    fk_status status = hostile_try(open, b);
    double seconds = hostile_seconds() - start;
    setrlimit(RLIMIT_AS, &old);
    bool named = status != FK_OK && strstr(fk_error_message(), needle);
    if ((status != FK_ERROR_INVALID && status != FK_ERROR_UNSUPPORTED) || !named || seconds > time_limit)
        fail_msg("%s: status %s after %.1f ms, message \"%s\", expected a refusal with \"%s\" within %.0f ms",
                 what, fk_status_name(status), seconds * 1e3, status == FK_OK ? "" : fk_error_message(),
                 needle, time_limit * 1e3);
}

void hostile_truncations(hostile_open open, const bytes *good, size_t needed)
{
    assert_int_equal(hostile_try(open, good), FK_OK);
    for (size_t size = 0; size < good->size; size++) {
        bytes cut = {good->data, size, size};
        if (hostile_try(open, &cut) == FK_OK && size < needed)
            fail_msg("accepted after a cut to %zu of %zu bytes", size, good->size);
    }
}

size_t hostile_corruptions(hostile_open open, const bytes *good, size_t header)
{
    static const uint8_t flips[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff};
    size_t refused = 0;
    bytes bad = bytes_copy(good);
    for (size_t at = 0; at < header; at++) {
        for (size_t i = 0; i < sizeof flips + 2; i++) {
            uint8_t was = bad.data[at];
            bad.data[at] = i < sizeof flips ? was ^ flips[i] : i == sizeof flips ? 0 : 0xff;
            refused += hostile_try(open, &bad) != FK_OK;
            bad.data[at] = was;
        }
    }
    bytes_free(&bad);
    return refused;
}
