/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: every index once, whatever count, grain and threads; many small jobs; jobs inside jobs; two callers at
 * once; operators give the same bits for any number of threads. More threads are asked for than this machine may have, so
 * that the pool works anywhere. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include <fk/ctx.h>
#include <fk/door.h>

#include "core/case.h"
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
    for (int64_t count = 0; count <= 200; count++) check(&j, 1 + (int)(count % 7), count, 1 + count % 3);
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

typedef struct inner_job {
    pthread_t thread;
    int64_t visited;
} inner_job;

static void visit_in_place(void *user, int64_t begin, int64_t end)
{
    inner_job *j = user;
    if (begin == 0 && end == 100 && pthread_equal(j->thread, pthread_self())) j->visited += end - begin;
}

static void outer(void *user, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        inner_job inner = {.thread = pthread_self()};
        fkp_parallel_for(4, 100, 1, visit_in_place, &inner); /* whole and by us: the pool is busy with us */
        atomic_fetch_add((atomic_int *)user, (int)inner.visited);
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

/* Bits of every tensor after a call. */
static void compare_with_one_thread(const fk_op *op, const char *text, fk_dtype dtype, fk_ctx *const ctx[], int num_ctx)
{
    fk_case expected, actual;
    assert_ok(fk_case_create(op, text, dtype, &expected));
    fk_case_fill(&expected, 3, FK_VALUES_NORMAL);
    fk_door_call(ctx[0], op, expected.args, FK_OUTPUTS_GIVEN, NULL);
    for (int i = 1; i < num_ctx; i++) {
        assert_ok(fk_case_create(op, text, dtype, &actual));
        fk_case_fill(&actual, 3, FK_VALUES_NORMAL);
        fk_door_call(ctx[i], op, actual.args, FK_OUTPUTS_GIVEN, NULL);
        for (int f = 0; f < op->num_fields; f++)
            if (fk_tensor_present(&expected.tensors[f]) &&
                memcmp(expected.tensors[f].data, actual.tensors[f].data, fk_tensor_nbytes(&expected.tensors[f])) != 0)
                fail_msg("%s '%s' in %s: %s with %d threads differs", op->name, text, fk_dtype_name(dtype), op->fields[f].name,
                         fk_ctx_threads(ctx[i]));
        fk_case_destroy(&actual);
    }
    fk_case_destroy(&expected);
}

static void test_operators(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 5};
    enum { NUM = sizeof threads / sizeof threads[0] };
    fk_ctx *ctx[NUM];
    for (int i = 0; i < NUM; i++) assert_ok(fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}, .threads = threads[i]}, &ctx[i]));
    for (int i = 0; i < fk_op_count(); i++) {
        const fk_op *op = fk_op_at(i);
        for (int k = 0; op->cases[k]; k++) {
            compare_with_one_thread(op, op->cases[k], FK_F32, ctx, NUM);
            compare_with_one_thread(op, op->cases[k], FK_BF16, ctx, NUM);
            for (int c = 0; c < NUM; c++) {
                if (fk_ctx_status(ctx[c]) != FK_OK) fail_msg("%s", fk_ctx_error(ctx[c]));
                fk_ctx_reset(ctx[c]);
            }
        }
    }
    for (int i = 0; i < NUM; i++) fk_ctx_destroy(ctx[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_index_once), cmocka_unit_test(test_grain_limits_parts),
                                       cmocka_unit_test(test_many_small_jobs), cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_two_callers), cmocka_unit_test(test_operators)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
