/* SPDX-License-Identifier: Apache-2.0 */
/* A fork-join pool: one generation counter starts a job, one countdown ends it. Workers spin on the counter for a few
 * microseconds (decode steps follow each other closely) and then wait on a condition variable. Each thread stays on a processor of
 * its own: left alone, systems were seen to keep a worker on its waker's processor for as long as the process lived. */
#define _GNU_SOURCE
#include "core/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SPINS 2000 /* some 10 us */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_mutex_t one_job; /* contexts of several threads share the pool, one job at a time */
    int workers;             /* started so far, without the caller */
    cpu_set_t processors;    /* the process's, before threads were bound; set with the first worker */
    atomic_uint generation;
    atomic_int pending;
    int parts;
    int64_t count;
    fkp_range_fn fn;
    void *user;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .one_job = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool inside_job;

int fkp_threads_available(void)
{
    cpu_set_t set;
    int n = 1;
    if (__atomic_load_n(&pool.workers, __ATOMIC_ACQUIRE) > 0) n = CPU_COUNT(&pool.processors); /* this thread may be bound */
    else if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > FKP_MAX_THREADS ? FKP_MAX_THREADS : n;
}

static void run_part(int part)
{
    int64_t begin = pool.count * part / pool.parts, end = pool.count * (part + 1) / pool.parts;
    if (begin < end) pool.fn(pool.user, begin, end);
}

/* Binds this thread to the `index`-th processor of the process, counted around. */
static void bind_thread(int index)
{
    int n = CPU_COUNT(&pool.processors), left = n > 0 ? index % n : -1;
    for (int cpu = 0; cpu < CPU_SETSIZE && left >= 0; cpu++) {
        if (!CPU_ISSET(cpu, &pool.processors) || left-- > 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one); /* refused: the system places the thread */
    }
}

static void *worker(void *arg)
{
    int index = (int)(uintptr_t)arg & 0xff;
    bind_thread(index);
    unsigned seen = (unsigned)((uintptr_t)arg >> 8);
    inside_job = true;
    for (;;) {
        unsigned now = atomic_load_explicit(&pool.generation, memory_order_acquire);
        for (int i = 0; now == seen && i < SPINS; i++) {
            __builtin_ia32_pause();
            now = atomic_load_explicit(&pool.generation, memory_order_acquire);
        }
        if (now == seen) {
            pthread_mutex_lock(&pool.lock);
            while ((now = atomic_load(&pool.generation)) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
            pthread_mutex_unlock(&pool.lock);
        }
        seen = now;
        /* Every worker takes part in the countdown, so that none still reads a job when the next one is written. */
        if (index < pool.parts) run_part(index);
        atomic_fetch_sub_explicit(&pool.pending, 1, memory_order_acq_rel);
    }
    return NULL;
}

/* Under one_job: the counter does not move meanwhile; a worker is born having seen all jobs before its first. */
static void start_workers(int wanted)
{
    if (pool.workers == 0 && wanted > 0) {
        if (sched_getaffinity(0, sizeof pool.processors, &pool.processors) != 0) CPU_ZERO(&pool.processors);
        bind_thread(0); /* the first caller: a context belongs to one thread */
    }
    while (pool.workers < wanted) {
        uintptr_t seen = atomic_load(&pool.generation), index = (uintptr_t)pool.workers + 1;
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&thread, &attributes, worker, (void *)(seen << 8 | index));
        pthread_attr_destroy(&attributes);
        if (failed) return;
        __atomic_store_n(&pool.workers, pool.workers + 1, __ATOMIC_RELEASE);
    }
}

void fkp_parallel_for(int threads, int64_t count, int64_t grain, fkp_range_fn fn, void *user)
{
    if (count <= 0) return;
    int64_t most = grain > 0 ? (count + grain - 1) / grain : count;
    int parts = threads < most ? threads : (int)most;
    if (parts > FKP_MAX_THREADS) parts = FKP_MAX_THREADS;
    if (parts <= 1 || inside_job) {
        fn(user, 0, count);
        return;
    }
    pthread_mutex_lock(&pool.one_job);
    start_workers(parts - 1);
    if (parts > pool.workers + 1) parts = pool.workers + 1;
    pool.parts = parts;
    pool.count = count;
    pool.fn = fn;
    pool.user = user;
    atomic_store_explicit(&pool.pending, pool.workers, memory_order_relaxed);
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add_explicit(&pool.generation, 1, memory_order_release);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    inside_job = true;
    run_part(0);
    inside_job = false;
    /* With more runnable threads than processors the last worker may wait for this very processor: make room for it. */
    for (int i = 0; atomic_load_explicit(&pool.pending, memory_order_acquire) > 0; i++) {
        if (i < SPINS) __builtin_ia32_pause();
        else sched_yield();
    }
    pthread_mutex_unlock(&pool.one_job);
}
