/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler without a model: random arrivals, ends and cancellations in caches of many sizes. After every step all
 * invariants of the cache and of the order are audited, and every request must come to its end with its own tokens. */
#include "unit.h"

#include "core/seeded.h"
#include "runtime/scheduler.h"

/* The token that follows a sequence: a function of what was computed, so that a lost or doubled token shows. */
static int32_t next_token(const fk_sequence *q)
{
    uint64_t h = (uint64_t)q->request + 1;
    for (int64_t i = 0; i < q->num_tokens; i++) h = fkp_mix64(h ^ (uint64_t)q->tokens[i]);
    return (int32_t)(h % 1000);
}

static void audit(const fk_scheduler *s)
{
    int64_t held = 0;
    char *seen = calloc((size_t)s->pool.num_blocks, 1);
    for (int64_t i = 0; i < s->num_running; i++) {
        const fk_sequence *q = s->running[i];
        if (i > 0) assert_true(s->running[i - 1]->request < q->request);
        assert_true(q->num_blocks * s->limits.block_size >= q->num_computed);
        assert_true(q->num_blocks <= (q->num_tokens + s->limits.block_size - 1) / s->limits.block_size); /* no reserve */
        if (q->answering) assert_int_equal(q->num_computed, q->num_tokens - 1);
        held += q->num_blocks;
        for (int64_t b = 0; b < q->num_blocks; b++) {
            assert_false(seen[q->blocks[b]]);
            seen[q->blocks[b]] = 1;
        }
    }
    free(seen);
    for (int64_t i = 0; i < s->num_waiting; i++) {
        assert_int_equal(s->waiting[i]->num_blocks, 0);
        assert_int_equal(s->waiting[i]->num_computed, 0);
        if (i > 0) assert_true(s->waiting[i - 1]->request < s->waiting[i]->request);
    }
    if (s->num_running > 0 && s->num_waiting > 0)
        assert_true(s->running[s->num_running - 1]->request < s->waiting[0]->request); /* first come, first served */
    assert_int_equal(held + s->pool.num_free, s->pool.num_blocks);
    assert_true(s->num_running <= s->limits.max_num_seqs);
}

static void check_step(const fk_scheduler *s, const fk_schedule *step)
{
    int64_t tokens = 0;
    for (int64_t i = 0; i < step->num_items; i++) {
        const fk_schedule_item *item = &step->items[i];
        assert_true(item->count > 0);
        assert_int_equal(item->start, item->sequence->num_computed);
        assert_int_equal(item->wants_token, item->start + item->count == item->sequence->num_tokens);
        assert_true(item->sequence->num_blocks * s->limits.block_size >= item->start + item->count);
        if (!step->prefill) assert_true(item->sequence->answering && item->count == 1 && item->wants_token);
        tokens += item->count;
    }
    assert_int_equal(tokens, step->num_tokens);
    if (step->prefill) assert_true(tokens <= s->limits.max_batched_tokens);
}

typedef struct totals {
    int64_t ended, cancelled, preempted, steps;
} totals;

/* Runs one step and ends what is complete. */
static bool run_step(fk_scheduler *s, totals *t, bool *was_prefill)
{
    const fk_schedule *step;
    assert_ok(fk_scheduler_next(s, &step));
    audit(s);
    check_step(s, step);
    if (step->num_items == 0) {
        assert_int_equal(s->num_running, 0);
        assert_int_equal(s->num_waiting, 0);
        return false;
    }
    bool any_answering = false;
    for (int64_t i = 0; i < s->num_running; i++) any_answering |= s->running[i]->answering;
    if (*was_prefill && any_answering) assert_false(step->prefill);
    *was_prefill = step->prefill;
    fk_scheduler_computed(s, step);
    for (int64_t i = 0; i < step->num_items; i++) {
        fk_sequence *q = step->items[i].sequence;
        if (!step->items[i].wants_token) continue;
        fk_scheduler_append(s, q, next_token(q));
        if (q->num_tokens < q->max_tokens) continue;
        fk_sequence replay = {.request = q->request, .tokens = q->tokens, .num_tokens = q->num_prompt};
        while (replay.num_tokens < q->num_tokens) {
            assert_int_equal(q->tokens[replay.num_tokens], next_token(&replay));
            replay.num_tokens++;
        }
        t->preempted += q->num_preempted > 0;
        t->ended++;
        fk_scheduler_end(s, q);
    }
    audit(s);
    t->steps++;
    return true;
}

static void random_run(uint64_t seed, fk_scheduler_limits limits, totals *t)
{
    fk_scheduler s;
    assert_ok(fk_scheduler_init(&s, &limits));
    enum { REQUESTS = 60 };
    int32_t prompt[200];
    int64_t added = 0, refused = 0, ended = t->ended, cancelled = t->cancelled, most = limits.num_blocks * limits.block_size;
    bool was_prefill = false;
    for (uint64_t event = 0;; event++) {
        uint64_t random = fkp_mix64(seed * 1000003 + event);
        if (added < REQUESTS && random % 3 == 0) {
            int64_t length = 1 + (int64_t)(random >> 8) % (most < 100 ? most : 100), more = 1 + (int64_t)(random >> 24) % 60;
            for (int64_t i = 0; i < length; i++) prompt[i] = (int32_t)(fkp_mix64(random + (uint64_t)i) % 1000);
            fk_sequence *q;
            fk_status status = fk_scheduler_add(&s, prompt, length, length + more, &q);
            bool fits = (length + more - 1 + limits.block_size - 1) / limits.block_size <= limits.num_blocks;
            assert_int_equal(status, fits ? FK_OK : FK_ERROR_INVALID);
            refused += !fits;
            added++;
        } else if (random % 97 == 1 && s.num_running + s.num_waiting > 0) {
            int64_t pick = (int64_t)(random >> 8) % (s.num_running + s.num_waiting);
            fk_scheduler_end(&s, pick < s.num_running ? s.running[pick] : s.waiting[pick - s.num_running]);
            t->cancelled++;
        } else if (!run_step(&s, t, &was_prefill) && added == REQUESTS) {
            break;
        }
        if (event > 1000000) fail_msg("no end: %lld running, %lld waiting", (long long)s.num_running, (long long)s.num_waiting);
    }
    assert_int_equal(t->ended - ended + t->cancelled - cancelled + refused, REQUESTS);
    assert_int_equal(s.pool.num_free, limits.num_blocks); /* no leak */
    fk_scheduler_deinit(&s);
}

static void test_random_runs(void **state)
{
    (void)state;
    totals t = {0};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t r = fkp_mix64(seed);
        random_run(seed,
                   (fk_scheduler_limits){.max_num_seqs = 1 + (int64_t)(r % 9),
                                         .max_batched_tokens = 1 + (int64_t)(r >> 8) % 130,
                                         .block_size = 1 + (int64_t)(r >> 20) % 17,
                                         .num_blocks = 4 + (int64_t)(r >> 32) % 40},
                   &t);
    }
    print_message("%lld steps, %lld requests ended, %lld of them after giving way, %lld cancelled\n", (long long)t.steps,
                  (long long)t.ended, (long long)t.preempted, (long long)t.cancelled);
    assert_true(t.preempted > 20 && t.ended > 500 && t.cancelled > 20);
}

/* Twenty prompts at once in a cache that holds about two: order of completion is order of arrival. */
static void test_first_come_first_served(void **state)
{
    (void)state;
    fk_scheduler s;
    assert_ok(fk_scheduler_init(&s, &(fk_scheduler_limits){4, 32, 4, 12}));
    int32_t prompt[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    fk_sequence *q;
    for (int i = 0; i < 20; i++) assert_ok(fk_scheduler_add(&s, prompt, 10, 30, &q));
    int64_t last_ended = -1, ended = 0;
    for (int steps = 0; ended < 20; steps++) {
        assert_true(steps < 2000);
        const fk_schedule *step;
        assert_ok(fk_scheduler_next(&s, &step));
        fk_scheduler_computed(&s, step);
        for (int64_t i = 0; i < step->num_items; i++) {
            if (!step->items[i].wants_token) continue;
            q = step->items[i].sequence;
            fk_scheduler_append(&s, q, 7);
            if (q->num_tokens < q->max_tokens) continue;
            assert_int_equal(q->request, last_ended + 1);
            last_ended = q->request;
            fk_scheduler_end(&s, q);
            ended++;
        }
        audit(&s);
    }
    assert_true(s.num_preemptions > 0);
    /* Giving way must not turn into a treadmill: each request is computed anew a few times at most. */
    assert_true(s.num_preemptions < 3 * 20);
    fk_scheduler_deinit(&s);
}

static void test_never_fits(void **state)
{
    (void)state;
    fk_scheduler s;
    assert_ok(fk_scheduler_init(&s, &(fk_scheduler_limits){2, 8, 4, 3}));
    int32_t prompt[20] = {0};
    fk_sequence *q;
    assert_int_equal(fk_scheduler_add(&s, prompt, 10, 14, &q), FK_ERROR_INVALID);
    const char *message = fk_error_message();
    assert_non_null(strstr(message, "10 tokens"));
    assert_non_null(strstr(message, "4 cache blocks"));
    assert_non_null(strstr(message, "there are 3"));
    assert_ok(fk_scheduler_add(&s, prompt, 10, 13, &q)); /* the last token needs no place */
    assert_ptr_equal(fk_scheduler_find(&s, q->request), q);
    assert_null(fk_scheduler_find(&s, q->request + 1));
    fk_scheduler_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_runs), cmocka_unit_test(test_first_come_first_served),
                                       cmocka_unit_test(test_never_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
