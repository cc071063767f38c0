/* SPDX-License-Identifier: Apache-2.0 */
/* A group of ranks over shared memory. Every rank has a slot: what it exchanges, a piece of its data, and two
 * counters. To exchange a piece a rank fills its slot and raises `posted`; when all have, it reads theirs and
 * raises `taken`; the next piece waits until all have taken this one. While a rank is in the group its thread
 * holds the robust mutex of its slot: the kernel lets go of it when the thread dies, however it dies, and
 * tells who tries it next. */
#define _GNU_SOURCE
#include "core/communicator.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MAX_RANKS 1024
#define PIECE_BYTES ((size_t)256 << 10)
#define YIELDS_BEFORE_SLEEP 2000 /* a rank that is only a little behind is there by then */
#define SLEEP_NS 50000

typedef struct slot {
    pthread_mutex_t present;
    atomic_bool claimed, joined;
    atomic_uint_fast64_t posted, taken;
    char what[160];
    size_t bytes;
    unsigned char piece[PIECE_BYTES];
} slot;

struct fk_shared_group {
    int size;
    atomic_int broken_by; /* the rank whose error `why` is, + 1; -1 while it writes; 0 for none */
    char why[512];
    slot slots[];
};

typedef struct shared_communicator {
    fk_communicator base; /* first: what callers hold */
    fk_shared_group *group;
    int64_t timeout_ms;
    uint64_t piece; /* exchanged so far */
} shared_communicator;

void fk_communicator_destroy(fk_communicator *communicator)
{
    if (!communicator) return;
    if (communicator->device_destroy) communicator->device_destroy(communicator->device);
    communicator->destroy(communicator);
}

static size_t group_bytes(int size)
{
    return sizeof(fk_shared_group) + (size_t)size * sizeof(slot);
}

fk_status fk_shared_group_create(int size, fk_shared_group **out)
{
    *out = NULL;
    if (size < 1 || size > MAX_RANKS)
        return fk_fail(FK_ERROR_INVALID, "a group of %d ranks: 1 to %d can be", size, MAX_RANKS);
    fk_shared_group *group =
        mmap(NULL, group_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (group == MAP_FAILED)
        return fk_fail(FK_ERROR_MEMORY, "shared memory for %d ranks: %s", size, strerror(errno));
    group->size = size; /* the rest is zero */
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    for (int r = 0; r < size; r++) pthread_mutex_init(&group->slots[r].present, &attributes);
    pthread_mutexattr_destroy(&attributes);
    *out = group;
    return FK_OK;
}

void fk_shared_group_destroy(fk_shared_group *group)
{
    if (group) munmap(group, group_bytes(group->size));
}

/* Records this rank's error (its thread's message) for the others, unless another rank was first. */
static fk_status give_up(shared_communicator *c, fk_status status)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&c->group->broken_by, &none, -1)) {
        snprintf(c->group->why, sizeof c->group->why, "%s", fk_error_message());
        atomic_store(&c->group->broken_by, c->base.rank + 1);
    }
    return status;
}

static fk_status check_broken(const shared_communicator *c)
{
    int by = atomic_load(&c->group->broken_by);
    if (by <= 0) return FK_OK;
    return fk_fail(FK_ERROR_DEVICE, "the group of %d ranks is broken: rank %d: %s", c->group->size, by - 1,
                   c->group->why);
}

static const char *absence(slot *s)
{
    if (!atomic_load(&s->joined)) return NULL; /* it may still come */
    switch (pthread_mutex_trylock(&s->present)) {
    case EBUSY:
        return NULL;
    case 0:
        pthread_mutex_unlock(&s->present);
        return "left";
    case EOWNERDEAD:
        pthread_mutex_unlock(&s->present);
        return "died"; /* not made consistent: the others get the next case */
    default:
        return "died";
    }
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until rank r's counter has reached `piece`. */
static fk_status wait_for(shared_communicator *c, const char *what, int r, atomic_uint_fast64_t *counter)
{
    slot *s = &c->group->slots[r];
    int64_t start = 0;
    for (int64_t spins = 0; atomic_load(counter) < c->piece; spins++) {
        if (spins < YIELDS_BEFORE_SLEEP) {
            sched_yield();
            continue;
        }
        if (start == 0) start = now_ms();
        FK_TRY(check_broken(c));
        const char *gone = absence(s);
        if (gone && atomic_load(counter) < c->piece) /* it did not raise the counter before it went */
            return give_up(c,
                           fk_fail(FK_ERROR_DEVICE, "%s: rank %d of %d %s", what, r, c->group->size, gone));
        if (now_ms() - start > c->timeout_ms)
            return give_up(c,
                           fk_fail(FK_ERROR_DEVICE, "%s: rank %d of %d %s within %lld ms", what, r,
                                   c->group->size, atomic_load(&s->joined) ? "did not call" : "did not join",
                                   (long long)c->timeout_ms));
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
    return FK_OK;
}

static fk_status check_same(shared_communicator *c)
{
    const slot *first = &c->group->slots[0];
    for (int r = 1; r < c->group->size; r++) {
        const slot *s = &c->group->slots[r];
        if (s->bytes != first->bytes || strcmp(s->what, first->what) != 0)
            return give_up(c, fk_fail(FK_ERROR_INVALID,
                                      "rank %d exchanges %s (%zu bytes), rank 0 %s (%zu bytes)", r, s->what,
                                      s->bytes, first->what, first->bytes));
    }
    return FK_OK;
}

static fk_status exchange_piece(shared_communicator *c, const char *what, const void *part, size_t begin,
                                size_t n, size_t bytes, void *whole)
{
    slot *own = &c->group->slots[c->base.rank];
    for (int r = 0; r < c->group->size; r++) FK_TRY(wait_for(c, what, r, &c->group->slots[r].taken));
    snprintf(own->what, sizeof own->what, "%s", what);
    own->bytes = bytes;
    if (n) memcpy(own->piece, (const char *)part + begin, n);
    c->piece++;
    atomic_store(&own->posted, c->piece);
    for (int r = 0; r < c->group->size; r++) FK_TRY(wait_for(c, what, r, &c->group->slots[r].posted));
    FK_TRY(check_same(c));
    for (int r = 0; r < c->group->size && n; r++)
        memcpy((char *)whole + (size_t)r * bytes + begin, c->group->slots[r].piece, n);
    atomic_store(&own->taken, c->piece);
    return FK_OK;
}

static fk_status all_gather(fk_communicator *communicator, const char *what, const void *part, size_t bytes,
                            void *whole)
{
    shared_communicator *c = (shared_communicator *)communicator;
    FK_TRY(check_broken(c));
    size_t begin = 0;
    do { /* once also for no bytes: ranks that differ are found there, too */
        size_t n = bytes - begin < PIECE_BYTES ? bytes - begin : PIECE_BYTES;
        FK_TRY(exchange_piece(c, what, part, begin, n, bytes, whole));
        begin += n;
    } while (begin < bytes);
    return FK_OK;
}

static void destroy(fk_communicator *communicator)
{
    shared_communicator *c = (shared_communicator *)communicator;
    pthread_mutex_unlock(&c->group->slots[c->base.rank].present);
    free(c);
}

fk_status fk_shared_group_join(fk_shared_group *group, int rank, int64_t timeout_ms, fk_communicator **out)
{
    *out = NULL;
    if (rank < 0 || rank >= group->size)
        return fk_fail(FK_ERROR_INVALID, "rank %d of a group of %d", rank, group->size);
    if (atomic_exchange(&group->slots[rank].claimed, true))
        return fk_fail(FK_ERROR_INVALID, "rank %d of %d has joined already", rank, group->size);
    shared_communicator *c = calloc(1, sizeof *c);
    if (!c) return fk_fail(FK_ERROR_MEMORY, "out of memory for a communicator");
    *c = (shared_communicator){
        .base = {.rank = rank, .size = group->size, .all_gather = all_gather, .destroy = destroy},
        .group = group,
        .timeout_ms = timeout_ms};
    pthread_mutex_lock(&group->slots[rank].present);
    atomic_store(&group->slots[rank].joined, true);
    *out = &c->base;
    return FK_OK;
}
