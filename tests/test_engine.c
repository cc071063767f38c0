/* SPDX-License-Identifier: Apache-2.0 */
/* The engine on a tiny Llama with seeded weights: what a request gets does not depend on who runs beside it, on the chunks
 * of its prefill, on the size of cache blocks, or on having given way; bad requests are refused with their numbers; no block
 * is lost. */
#include "unit.h"

#include <math.h>

#include <fk/door.h>
#include <fk/ops.h>

#include "core/seeded.h"
#include "runtime/engine.h"

static fk_model *model;
static int64_t vocab_size;

static int open_model(void **state)
{
    (void)state;
    assert_ok(fk_model_open("llama:tiny", &(fk_model_options){.device = {FK_CPU, 0}, .seed = 11}, &model));
    vocab_size = fk_model_get_info(model)->vocab_size;
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    fk_model_close(model);
    return 0;
}

enum { REQUESTS = 9, MAX_PROMPT = 70, MAX_ANSWER = 24 };

static int64_t prompt_of(int request, int32_t *ids)
{
    int64_t length = 1 + (int64_t)(fkp_mix64((uint64_t)request + 77) % MAX_PROMPT);
    if (request == 0) length = 1;
    for (int64_t i = 0; i < length; i++)
        ids[i] = (int32_t)(fkp_mix64((uint64_t)(request * 1000 + i)) % (uint64_t)vocab_size);
    return length;
}

static fk_sampling sampling_of(int request, bool random)
{
    bool penalized = random && request % 3; /* the others are greedy */
    return (fk_sampling){.max_tokens = 4 + request % 5 * 5, .ignore_eos = true, .seed = 100 + request,
                         .temperature = random && request % 3 ? 0.8f : 0, .top_k = request % 2 ? 40 : 0, .top_p = 0.95f,
                         .min_p = request % 4 == 2 ? 0.05f : 0, .repetition_penalty = penalized && request % 4 == 1 ? 1.3f : 0,
                         .presence_penalty = penalized && request % 4 == 3 ? 0.5f : 0, .frequency_penalty = penalized && request % 4 == 0 ? 0.4f : 0};
}

/* What a run gives, by request. */
typedef struct answers {
    int32_t ids[REQUESTS][MAX_ANSWER];
    int64_t count[REQUESTS];
    float *logits[REQUESTS]; /* [count, vocab] */
    int64_t preemptions, steps;
} answers;

static void free_answers(answers *a)
{
    for (int i = 0; i < REQUESTS; i++) free(a->logits[i]);
}

static answers run_all(const fk_engine_options *options, bool random)
{
    fk_engine *engine;
    answers a = {0};
    int64_t number[REQUESTS];
    assert_ok(fk_engine_create(model, options, &engine));
    fk_engine_keep_logits(engine, true);
    for (int i = 0; i < REQUESTS; i++) {
        int32_t prompt[MAX_PROMPT];
        int64_t length = prompt_of(i, prompt);
        fk_sampling sampling = sampling_of(i, random);
        assert_ok(fk_engine_add(engine, prompt, length, &sampling, &number[i]));
        a.logits[i] = calloc((size_t)(MAX_ANSWER * vocab_size), sizeof(float));
    }
    while (!fk_engine_idle(engine)) {
        fk_step step;
        assert_ok(fk_engine_step(engine, &step));
        assert_true(step.num_new > 0 && step.seconds > 0);
        a.steps++;
        for (int64_t t = 0; t < step.num_tokens; t++) {
            int i = 0;
            while (number[i] != step.tokens[t].request) i++;
            int64_t at = a.count[i]++;
            a.ids[i][at] = step.tokens[t].id;
            memcpy(a.logits[i] + at * vocab_size, step.logits + t * vocab_size, (size_t)vocab_size * sizeof(float));
            assert_int_equal(step.tokens[t].finish, a.count[i] == sampling_of(i, random).max_tokens ? FK_FINISH_LENGTH : FK_RUNNING);
        }
    }
    fk_engine_stats stats = fk_engine_get_stats(engine);
    assert_int_equal(stats.free_blocks, stats.num_blocks);
    a.preemptions = stats.num_preemptions;
    fk_step step;
    assert_ok(fk_engine_step(engine, &step)); /* nothing left */
    assert_int_equal(step.num_new, 0);
    fk_engine_destroy(engine);
    return a;
}

/* Everything is float32 here; sums in another order differ by a few units in the last place of the largest terms. */
#define TOLERANCE 2e-5 /* of the RMS of the logits */

/* The same tokens, and logits within the tolerance; sampled rows too, since the random numbers are the row's own. */
static void compare(const answers *want, const answers *got, const char *what)
{
    double worst = 0;
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(got->count[i], want->count[i]);
        for (int64_t t = 0; t < want->count[i]; t++) {
            double square = 0, error = 0;
            for (int64_t v = 0; v < vocab_size; v++) {
                double a = want->logits[i][t * vocab_size + v], b = got->logits[i][t * vocab_size + v];
                square += a * a;
                error = fmax(error, fabs(a - b));
                assert_true(isfinite(b));
            }
            error /= sqrt(square / (double)vocab_size);
            worst = fmax(worst, error);
            if (error > TOLERANCE || want->ids[i][t] != got->ids[i][t])
                fail_msg("%s: request %d, token %lld: id %d instead of %d, logits off by %.3g of their RMS", what, i,
                         (long long)t, got->ids[i][t], want->ids[i][t], error);
        }
    }
    print_message("%s: %lld steps, %lld preemptions, logits within %.2g of their RMS\n", what, (long long)got->steps,
                  (long long)got->preemptions, worst);
}

static void test_answers_are_independent(void **state)
{
    (void)state;
    for (int random = 0; random < 2; random++) {
        answers alone = run_all(&(fk_engine_options){.max_num_seqs = 1, .max_model_len = 128}, random);
        for (int i = 0; i < REQUESTS; i++) /* not trivial: more than one token */
            assert_true(alone.count[i] > 1);
        const struct {
            const char *what;
            fk_engine_options options;
        } runs[] = {
            {"all at once", {.max_model_len = 128}},
            {"four at a time", {.max_num_seqs = 4, .max_model_len = 128}},
            {"chunks of 7 tokens", {.max_model_len = 128, .max_batched_tokens = 7}},
            {"chunks of 1 token", {.max_num_seqs = 3, .max_model_len = 128, .max_batched_tokens = 1}},
            {"blocks of 3", {.max_model_len = 128, .block_size = 3}},
            {"one block a sequence", {.max_num_seqs = 2, .max_model_len = 128, .block_size = 128}},
            {"a cache too small for all", {.max_model_len = 96, .block_size = 4, .num_blocks = 27}},
            {"references only", {.max_model_len = 128, .references_only = true}},
        };
        for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
            answers got = run_all(&runs[r].options, random);
            compare(&alone, &got, runs[r].what);
            if (runs[r].options.num_blocks) assert_true(got.preemptions > 0);
            free_answers(&got);
        }
        free_answers(&alone);
    }
}

static void test_sampling_is_seeded(void **state)
{
    (void)state;
    answers greedy = run_all(&(fk_engine_options){.max_model_len = 128}, false);
    answers random = run_all(&(fk_engine_options){.max_model_len = 128}, true);
    int differing = 0;
    for (int i = 0; i < REQUESTS; i++) {
        bool same = memcmp(greedy.ids[i], random.ids[i], sizeof greedy.ids[i]) == 0;
        if (i % 3 == 0) assert_true(same); /* temperature 0 beside sampled rows */
        else differing += !same;
    }
    assert_true(differing > 2);
    free_answers(&greedy);
    free_answers(&random);
}

static void test_forced_tokens(void **state)
{
    (void)state;
    fk_engine *engine;
    assert_ok(fk_engine_create(model, &(fk_engine_options){.max_model_len = 64}, &engine));
    int32_t prompt[] = {5, 6, 7}, forced[] = {17, 1, 300};
    int64_t number;
    assert_ok(fk_engine_add(engine, prompt, 3, &(fk_sampling){.max_tokens = 6, .ignore_eos = true}, &number));
    assert_ok(fk_engine_force(engine, number, forced, 3));
    assert_int_equal(fk_engine_force(engine, number + 1, forced, 3), FK_ERROR_INVALID);
    assert_int_equal(fk_engine_force(engine, number, &(int32_t){-1}, 1), FK_ERROR_INVALID);
    int32_t sampled[6];
    for (int i = 0; i < 6; i++) {
        fk_step step;
        assert_ok(fk_engine_step(engine, &step));
        assert_int_equal(step.num_tokens, 1);
        if (i < 3) assert_int_equal(step.tokens[0].id, forced[i]);
        else assert_int_equal(step.tokens[0].id, step.tokens[0].sampled);
        sampled[i] = step.tokens[0].sampled;
    }
    assert_true(fk_engine_idle(engine));
    /* The same as a prompt that has them: the next choice agrees. */
    int32_t joined[] = {5, 6, 7, 17, 1, 300};
    assert_ok(fk_engine_add(engine, joined, 6, &(fk_sampling){.max_tokens = 1}, &number));
    fk_step step;
    assert_ok(fk_engine_step(engine, &step));
    assert_int_equal(step.tokens[0].id, sampled[3]);
    fk_engine_destroy(engine);
}

static void test_stop_ids_and_cancel(void **state)
{
    (void)state;
    fk_engine *engine;
    int32_t prompt[] = {5, 6, 7, 8}, first;
    int64_t number, other;
    fk_step step;
    assert_ok(fk_engine_create(model, &(fk_engine_options){.max_model_len = 64}, &engine));
    assert_ok(fk_engine_add(engine, prompt, 4, &(fk_sampling){.max_tokens = 8, .ignore_eos = true}, &number));
    assert_ok(fk_engine_step(engine, &step));
    first = step.tokens[0].id;
    fk_engine_cancel(engine, number);
    fk_engine_cancel(engine, number); /* gone already: nothing happens */
    assert_true(fk_engine_idle(engine));
    assert_ok(fk_engine_add(engine, prompt, 4, &(fk_sampling){.max_tokens = 8, .ignore_eos = true, .stop_ids = &first, .num_stop_ids = 1}, &number));
    assert_ok(fk_engine_add(engine, prompt, 4, &(fk_sampling){.max_tokens = 2, .ignore_eos = true}, &other));
    assert_ok(fk_engine_step(engine, &step));
    assert_int_equal(step.num_tokens, 2);
    assert_int_equal(step.tokens[0].finish, FK_FINISH_STOP);
    assert_int_equal(step.tokens[1].finish, FK_RUNNING);
    assert_ok(fk_engine_step(engine, &step));
    assert_int_equal(step.tokens[0].request, other);
    assert_int_equal(step.tokens[0].finish, FK_FINISH_LENGTH);
    fk_engine_stats stats = fk_engine_get_stats(engine);
    assert_int_equal(stats.free_blocks, stats.num_blocks);
    fk_engine_destroy(engine);
}

static void refused(fk_status status, const char *first, const char *second)
{
    assert_int_equal(status, FK_ERROR_INVALID);
    if (!strstr(fk_error_message(), first) || !strstr(fk_error_message(), second))
        fail_msg("'%s' names neither %s nor %s", fk_error_message(), first, second);
}

static void test_refusals(void **state)
{
    (void)state;
    fk_engine *engine;
    int32_t prompt[200] = {0};
    int64_t number;
    fk_sampling plain = {.max_tokens = 4};
    refused(fk_engine_create(model, &(fk_engine_options){.max_model_len = 100000}, &engine), "100000", "512");
    assert_null(engine);
    assert_int_equal(fk_engine_create(model, &(fk_engine_options){.cache_bytes = 10}, &engine), FK_ERROR_MEMORY);
    assert_ok(fk_engine_create(model, &(fk_engine_options){.max_model_len = 128, .num_blocks = 4}, &engine));
    refused(fk_engine_add(engine, prompt, 0, &plain, &number), "empty", "token");
    refused(fk_engine_add(engine, prompt, 128, &plain, &number), "128 tokens", "context of 128");
    refused(fk_engine_add(engine, prompt, 90, &plain, &number), "needs 6 cache blocks", "there are 4");
    refused(fk_engine_add(engine, (int32_t[]){1, 512}, 2, &plain, &number), "512", "position 1");
    refused(fk_engine_add(engine, (int32_t[]){-3}, 1, &plain, &number), "-3", "position 0");
    refused(fk_engine_add(engine, prompt, 2, &(fk_sampling){.temperature = -1}, &number), "temperature", "-1");
    refused(fk_engine_add(engine, prompt, 2, &(fk_sampling){.temperature = NAN}, &number), "temperature", "nan");
    assert_true(fk_engine_idle(engine));
    assert_ok(fk_engine_add(engine, prompt, 60, &plain, &number)); /* the engine is as good as before */
    fk_step step;
    while (!fk_engine_idle(engine)) assert_ok(fk_engine_step(engine, &step));
    fk_engine_destroy(engine);
    /* Without a length given the cache decides. */
    assert_ok(fk_engine_create(model, &(fk_engine_options){.num_blocks = 4}, &engine));
    assert_int_equal(fk_engine_max_model_len(engine), 64);
    fk_engine_destroy(engine);
}

static fk_status fails(fk_ctx *ctx, const void *args, void *user)
{
    (void)ctx, (void)args;
    return *(int *)user > 0 && --*(int *)user > 0 ? FK_OK : fk_fail(FK_ERROR_CANDIDATE, "broken on purpose");
}

/* A kernel that fails in the middle: the step says so with operator and layer, and so does every later one. */
static void test_failing_operator(void **state)
{
    (void)state;
    fk_engine *engine;
    int32_t prompt[] = {5, 6, 7};
    int64_t number;
    int calls = 2;
    fk_impl impl = {.op = "silu_and_mul", .name = "candidate", .device = FK_CPU, .run = fails, .user = &calls};
    assert_ok(fk_engine_create(model, &(fk_engine_options){.max_model_len = 64}, &engine));
    assert_ok(fk_door_install(fk_engine_ctx(engine), &impl));
    assert_ok(fk_engine_add(engine, prompt, 3, &(fk_sampling){.max_tokens = 4}, &number));
    fk_step step;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fk_engine_step(engine, &step), FK_ERROR_CANDIDATE);
        assert_message("broken on purpose");
        assert_message("silu_and_mul");
        assert_message("model.layers.1");
        assert_int_equal(step.num_tokens, 0);
    }
    fk_engine_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_independent), cmocka_unit_test(test_sampling_is_seeded),
        cmocka_unit_test(test_forced_tokens),           cmocka_unit_test(test_stop_ids_and_cancel),
        cmocka_unit_test(test_refusals),                cmocka_unit_test(test_failing_operator)};
    return cmocka_run_group_tests(tests, open_model, close_model);
}
