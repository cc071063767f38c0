/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of ranks, each a process of its own: what they exchange arrives, sums have the same bits everywhere,
 * and whatever goes wrong on one rank is an error, not a wait without end, on the others. */
#define _GNU_SOURCE
#include "unit.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/communicator.h"
#include "core/dtype.h"

#define LONG_MS 120000 /* never reached: whatever is awaited happens by itself */
#define MAX_RANKS 4

/* What a rank does; true when it was as it should be. It says why not on stderr. */
typedef bool (*rank_body)(fk_communicator *c);

/* Forks the ranks and waits for those that end by themselves; `stuck` (-1: none) waits for a signal and is
 * killed at the end. */
static void run_ranks(int size, int64_t timeout_ms, int stuck, rank_body body)
{
    fk_shared_group *group;
    assert_ok(fk_shared_group_create(size, &group));
    pid_t ranks[MAX_RANKS];
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        ranks[r] = fork();
        assert_true(ranks[r] >= 0);
        if (ranks[r] != 0) continue;
        fk_communicator *c;
        bool good = fk_shared_group_join(group, r, timeout_ms, &c) == FK_OK;
        good = good && body(c);
        if (good) fk_communicator_destroy(c);
        _exit(good ? 0 : 1);
    }
    int bad = 0;
    for (int r = 0; r < size; r++) {
        int state;
        if (r == stuck) continue;
        assert_int_equal(waitpid(ranks[r], &state, 0), ranks[r]);
        bool killed_itself = WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
        if (!killed_itself && !(WIFEXITED(state) && WEXITSTATUS(state) == 0)) bad++;
    }
    if (stuck >= 0) {
        kill(ranks[stuck], SIGKILL);
        waitpid(ranks[stuck], NULL, 0);
    }
    fk_shared_group_destroy(group);
    assert_int_equal(bad, 0);
}

/* The call fails, and says these words. */
static bool fails(fk_status status, fk_status expected, const char *words)
{
    if (status == expected && strstr(fk_error_message(), words)) return true;
    fprintf(stderr, "%s: '%s', expected %s: '%s'\n", fk_status_name(status), fk_error_message(),
            fk_status_name(expected), words);
    return false;
}

static bool gathers(fk_communicator *c)
{
    static const size_t sizes[] = {0, 1, 7, 4096, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 3 << 18};
    bool good = true;
    for (int round = 0; round < 20; round++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t n = sizes[s];
            unsigned char *part = malloc(n + 1), *whole = malloc(n * (size_t)c->size + 1);
            for (size_t i = 0; i < n; i++)
                part[i] = (unsigned char)(i * 31 + (size_t)c->rank * 7 + (size_t)round);
            if (c->all_gather(c, "bytes", part, n, whole) != FK_OK)
                return fails(FK_ERROR_INTERNAL, FK_OK, "");
            for (int r = 0; r < c->size; r++)
                for (size_t i = 0; i < n; i++)
                    good = good && whole[(size_t)r * n + i] ==
                                       (unsigned char)(i * 31 + (size_t)r * 7 + (size_t)round);
            free(part);
            free(whole);
        }
    return good;
}

static void test_all_gather(void **state)
{
    (void)state;
    for (int size = 1; size <= MAX_RANKS; size++) run_ranks(size, LONG_MS, -1, gathers);
}

static fk_ctx *context_of(fk_communicator *c)
{
    fk_ctx *ctx = NULL;
    fk_ctx_options options = {.device = {FK_CPU, 0}, .threads = 1};
    if (fk_ctx_create(&options, &ctx) != FK_OK) _exit(1);
    fk_ctx_set_communicator(ctx, c);
    return ctx;
}

/* 1e8, 1, -1e8, 1, ...: float32 sums in any order lose the ones that double keeps. */
static double summand(int rank, int64_t i)
{
    static const double values[MAX_RANKS] = {1e8, 1, -1e8, 0.5};
    return values[rank] * (double)(i % 5 + 1);
}

static bool sums(fk_communicator *c)
{
    static const fk_dtype dtypes[] = {FK_F32, FK_BF16, FK_F16};
    fk_ctx *ctx = context_of(c);
    bool good = true;
    for (int d = 0; d < 3; d++) {
        /* A column cut out of wider rows on odd ranks: strides are each rank's own business. */
        int64_t rows = 33, width = c->rank % 2 ? 9 : 5;
        double scale = dtypes[d] == FK_F16 ? 1e-5 : 1; /* within its range */
        fk_tensor x = fk_ctx_tensor(ctx, dtypes[d], 2, (int64_t[]){rows, width});
        x.shape[1] = 5;
        for (int64_t i = 0; i < rows * 5; i++)
            fk_store_element(fk_tensor_at(&x, i), dtypes[d], summand(c->rank, i) * scale);
        fk_tensor y = fk_allreduce(ctx, x).output;
        if (fk_ctx_status(ctx) != FK_OK) return fails(FK_ERROR_INTERNAL, FK_OK, fk_ctx_error(ctx));
        for (int64_t i = 0; i < rows * 5; i++) {
            double expected = 0;
            unsigned char stored[8];
            for (int r = 0; r < c->size; r++) { /* what each rank could store of its summand */
                fk_store_element(stored, dtypes[d], summand(r, i) * scale);
                expected += fk_load_element(stored, dtypes[d]);
            }
            fk_store_element(stored, dtypes[d], expected);
            good =
                good && fk_load_element(fk_tensor_at(&y, i), dtypes[d]) == fk_load_element(stored, dtypes[d]);
        }
        fk_tensor empty = fk_ctx_tensor(ctx, dtypes[d], 2, (int64_t[]){0, 5});
        fk_allreduce(ctx, empty);
        good = good && fk_ctx_status(ctx) == FK_OK;
    }
    fk_ctx_destroy(ctx);
    return good;
}

static void test_allreduce(void **state)
{
    (void)state;
    for (int size = 1; size <= MAX_RANKS; size++) run_ranks(size, LONG_MS, -1, sums);
}

static bool differ_in_shape(fk_communicator *c)
{
    fk_ctx *ctx = context_of(c);
    fk_tensor x = fk_ctx_tensor(ctx, FK_F32, 2,
                                c->rank == 2 ? (int64_t[]){4, 6} : (int64_t[]){3, 8}); /* as many bytes */
    memset(x.data, 0, fk_tensor_nbytes(&x));
    fk_tensor y = fk_allreduce(ctx, x).output;
    /* Whether a rank saw it itself or was told by another first, the words are there. */
    bool good = fk_ctx_status(ctx) != FK_OK && !fk_tensor_present(&y) &&
                strstr(fk_ctx_error(ctx), "rank 2 exchanges allreduce of f32[4, 6]") &&
                strstr(fk_ctx_error(ctx), "rank 0 allreduce of f32[3, 8]");
    if (!good) fprintf(stderr, "rank %d: '%s'\n", c->rank, fk_ctx_error(ctx));
    fk_ctx_clear(ctx);
    fk_allreduce(ctx, x); /* broken for good */
    good = good && fk_ctx_status(ctx) == FK_ERROR_DEVICE && strstr(fk_ctx_error(ctx), "is broken");
    fk_ctx_destroy(ctx);
    return good;
}

static void test_shapes_that_differ(void **state)
{
    (void)state;
    run_ranks(3, LONG_MS, -1, differ_in_shape);
}

static bool one_dies(fk_communicator *c)
{
    int x = c->rank, all[MAX_RANKS];
    if (c->all_gather(c, "first", &x, sizeof x, all) != FK_OK) return fails(FK_ERROR_INTERNAL, FK_OK, "");
    if (c->rank == 1) raise(SIGKILL);
    return fails(c->all_gather(c, "second", &x, sizeof x, all), FK_ERROR_DEVICE, "second: rank 1 of 4 died");
}

static void test_rank_that_dies(void **state)
{
    (void)state;
    run_ranks(4, LONG_MS, -1, one_dies);
}

static bool one_leaves(fk_communicator *c)
{
    int x = c->rank, all[MAX_RANKS];
    if (c->all_gather(c, "first", &x, sizeof x, all) != FK_OK) return fails(FK_ERROR_INTERNAL, FK_OK, "");
    return c->rank == 0 ||
           fails(c->all_gather(c, "second", &x, sizeof x, all), FK_ERROR_DEVICE, "second: rank 0 of 3 left");
}

static void test_rank_that_leaves(void **state)
{
    (void)state;
    run_ranks(3, LONG_MS, -1, one_leaves);
}

static bool one_sleeps(fk_communicator *c)
{
    int x = c->rank, all[MAX_RANKS];
    while (c->rank == 1) pause();
    return fails(c->all_gather(c, "sizes", &x, sizeof x, all), FK_ERROR_DEVICE,
                 "sizes: rank 1 of 2 did not ");
}

static void test_rank_that_stays_away(void **state)
{
    (void)state;
    run_ranks(2, 200, 1, one_sleeps);
}

static void test_bad_groups(void **state)
{
    (void)state;
    fk_shared_group *group;
    fk_communicator *c, *again;
    assert_int_equal(fk_shared_group_create(0, &group), FK_ERROR_INVALID);
    assert_message("a group of 0 ranks");
    assert_null(group);
    assert_ok(fk_shared_group_create(2, &group));
    assert_int_equal(fk_shared_group_join(group, 2, LONG_MS, &c), FK_ERROR_INVALID);
    assert_message("rank 2 of a group of 2");
    assert_ok(fk_shared_group_join(group, 0, LONG_MS, &c));
    assert_int_equal(fk_shared_group_join(group, 0, LONG_MS, &again), FK_ERROR_INVALID);
    assert_message("rank 0 of 2 has joined already");
    fk_communicator_destroy(c);
    fk_communicator_destroy(NULL);
    fk_shared_group_destroy(group);
    fk_shared_group_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_gather),         cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_shapes_that_differ), cmocka_unit_test(test_rank_that_dies),
        cmocka_unit_test(test_rank_that_leaves),   cmocka_unit_test(test_rank_that_stays_away),
        cmocka_unit_test(test_bad_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
