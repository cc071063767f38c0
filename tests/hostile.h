/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile files in memory: building them byte by byte, and checking that a reader refuses them quickly, says
 * why, and never reads outside. Each attempt gets its bytes in a heap block of the exact size, so that
 * AddressSanitizer sees one byte too many. */
#ifndef FK_TESTS_HOSTILE_H
#define FK_TESTS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fk/status.h>

typedef struct bytes {
    uint8_t *data;
    size_t size, capacity;
} bytes;

void bytes_put(bytes *b, const void *data, size_t size);
void bytes_put_uint(bytes *b, uint64_t value, size_t size); /* little-endian */
void bytes_put_text(bytes *b, const char *text);            /* without length or NUL */
void bytes_put_fill(bytes *b, uint8_t value, size_t count);
void bytes_set_uint(bytes *b, size_t at, uint64_t value, size_t size);
bytes bytes_copy(const bytes *b);
void bytes_free(bytes *b);

/* Opens, and when that succeeds reads everything that the reader gives out and closes. */
typedef fk_status (*hostile_open)(const uint8_t *data, size_t size);

fk_status hostile_try(hostile_open open, const bytes *b);
/* Refused as invalid or unsupported, message containing `needle`, within the time limit (10 ms of processor
 * time; ten times that under sanitizers) and with at most 256 MiB of address space to allocate from. */
void hostile_refused(hostile_open open, const bytes *b, const char *what, const char *needle);
/* Cut at every length: each shorter than `needed` must be refused. */
void hostile_truncations(hostile_open open, const bytes *good, size_t needed);
/* Every byte of the first `header` set to several other values: accepted or refused, never a crash. Returns
 * the number of refusals. */
size_t hostile_corruptions(hostile_open open, const bytes *good, size_t header);

extern const bool hostile_sanitized; /* built with AddressSanitizer: everything is slower */

double hostile_seconds(void); /* processor time of this process */

#endif
