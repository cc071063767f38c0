/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: every index once, whatever count, grain and threads; many small jobs; jobs inside jobs; two callers at
 * once. More threads are asked for than this machine may have, so that the pool works anywhere. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/threads.h"

#define MOST 5000

typedef struct job {
    atomic_int visits[MOST];
    atomic_int parts;
} job;

static void visit(void *user, int64_t begin, int64_t end)
{
    job *j = user;
    atomic_fetch_add(&j->parts, 1);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&j->visits[i], 1);
}

static void check(job *j, int threads, int64_t count, int64_t grain)
{
    memset(j, 0, sizeof *j);
    fkp_parallel_for(threads, count, grain, visit, j);
    for (int64_t i = 0; i < count; i++)
        if (atomic_load(&j->visits[i]) != 1)
            fail_msg("%d threads, count %lld, grain %lld: index %lld visited %d times", threads, (long long)count, (long long)grain,
                     (long long)i, atomic_load(&j->visits[i]));
}

static void test_every_index_once(void **state)
{
    (void)state;
    static job j;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 65, 1000, MOST}, grains[] = {0, 1, 2, 64, 1000, 100000};
    for (int threads = 1; threads <= 5; threads++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
            for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) check(&j, threads, counts[c], grains[g]);
}

static void test_grain_limits_parts(void **state)
{
    (void)state;
    static job j;
    check(&j, 4, 100, 100);
    assert_int_equal(atomic_load(&j.parts), 1);
    check(&j, 4, 100, 50);
    assert_in_range(atomic_load(&j.parts), 1, 2);
    check(&j, 1, 100, 1);
    assert_int_equal(atomic_load(&j.parts), 1);
}

static void test_many_small_jobs(void **state)
{
    (void)state;
    static job j;
    for (int i = 0; i < 3000; i++) check(&j, 2 + i % 3, 3 + i % 5, 1);
}

static void outer(void *user, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        job *inner = calloc(1, sizeof *inner);
        if (!inner) return;
        fkp_parallel_for(4, 100, 1, visit, inner); /* in place: the pool is busy with us */
        for (int k = 0; k < 100; k++) atomic_fetch_add((atomic_int *)user, atomic_load(&inner->visits[k]));
        free(inner);
    }
}

static void test_nested(void **state)
{
    (void)state;
    atomic_int total = 0;
    fkp_parallel_for(3, 20, 1, outer, &total);
    assert_int_equal(atomic_load(&total), 2000);
}

static void *caller(void *arg)
{
    job *j = arg;
    for (int i = 0; i < 500; i++) {
        memset(j, 0, sizeof *j);
        fkp_parallel_for(3, 200, 1, visit, j);
        for (int k = 0; k < 200; k++)
            if (atomic_load(&j->visits[k]) != 1) return "an index was not visited once";
    }
    return NULL;
}

static void test_two_callers(void **state)
{
    (void)state;
    static job jobs[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, caller, &jobs[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *problem;
        pthread_join(threads[i], &problem);
        if (problem) fail_msg("%s", (const char *)problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_index_once), cmocka_unit_test(test_grain_limits_parts),
                                       cmocka_unit_test(test_many_small_jobs), cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_two_callers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
