/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that transformers' save_pretrained wrote, sharded, through the engine (tools/reference/hf_folder.py says what the
 * golden holds): logits of the prompt, the answer, its end by the ids of both files, sampling as the folder asks for it. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "core/safetensors.h"
#include "runtime/engine.h"
#include "runtime/generation.h"

#define FOLDER FK_SOURCE_DIR "/tests/goldens/hf_folder"
#define TOLERANCE 2e-5 /* of the RMS of the logits, as in test_llama_goldens */

typedef struct fixture {
    fk_safetensors *golden;
    fk_model *model;
    fk_engine *engine;
} fixture;

static fk_tensor golden(const fixture *f, const char *name)
{
    fk_tensor t;
    assert_ok(fk_safetensors_find(f->golden, name, &t));
    return t;
}

static int setup(void **state)
{
    static fixture f;
    assert_ok(fk_safetensors_open(FK_SOURCE_DIR "/tests/goldens/hf_folder.safetensors", &f.golden));
    assert_ok(fk_model_open(FOLDER, &(fk_model_options){.device = {FK_CPU, 0}}, &f.model));
    assert_ok(fk_engine_create(f.model, &(fk_engine_options){.threads = 1, .max_num_seqs = 2, .cache_bytes = 1 << 20}, &f.engine));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    fk_engine_destroy(f->engine);
    fk_model_close(f->model);
    fk_safetensors_close(f->golden);
    return 0;
}

/* Runs the prompt and compares the answer with the golden `name`; how it ended. */
static fk_finish answer(fixture *f, const fk_sampling *sampling, const char *name)
{
    fk_tensor prompt = golden(f, "prompt"), wanted = golden(f, name), logits = golden(f, "logits");
    int64_t request, count = 0, length = prompt.shape[0], vocab = logits.shape[1];
    fk_finish finish = FK_RUNNING;
    assert_ok(fk_engine_add(f->engine, prompt.data, length, sampling, &request));
    fk_engine_keep_logits(f->engine, true);
    while (!fk_engine_idle(f->engine)) {
        fk_step step;
        assert_ok(fk_engine_step(f->engine, &step));
        assert_int_equal(step.num_tokens, 1);
        assert_true(count < wanted.shape[0]);
        assert_int_equal(step.tokens[0].id, ((const int32_t *)wanted.data)[count]);
        if (count++ == 0) {
            const float *last = (const float *)logits.data + (length - 1) * vocab;
            double square = 0, worst = 0;
            for (int64_t i = 0; i < vocab; i++) {
                square += (double)last[i] * (double)last[i];
                worst = fmax(worst, fabs((double)step.logits[i] - (double)last[i]));
            }
            assert_true(worst <= TOLERANCE * sqrt(square / (double)vocab));
        }
        finish = step.tokens[0].finish;
    }
    assert_int_equal(count, wanted.shape[0]);
    return finish;
}

static void test_ends_by_either_file(void **state)
{
    fixture *f = *state;
    assert_int_equal(answer(f, &(fk_sampling){.max_tokens = 24}, "answer"), FK_FINISH_STOP);
}

static void test_ignores_ends(void **state)
{
    fixture *f = *state;
    assert_int_equal(answer(f, &(fk_sampling){.max_tokens = 24, .ignore_eos = true}, "endless"), FK_FINISH_LENGTH);
}

/* A request's own stop ids hold where the model's do not. */
static void test_stop_ids_with_ignored_ends(void **state)
{
    fixture *f = *state;
    fk_tensor wanted = golden(f, "answer");
    const int32_t end = ((const int32_t *)wanted.data)[wanted.shape[0] - 1];
    assert_int_equal(answer(f, &(fk_sampling){.max_tokens = 24, .ignore_eos = true, .stop_ids = &end, .num_stop_ids = 1}, "answer"),
                     FK_FINISH_STOP);
}

static void test_sampling_of_the_folder(void **state)
{
    fixture *f = *state;
    fk_sampling s;
    assert_ok(fk_generation_sampling(fk_model_config(f->model), &s));
    assert_true(fabsf(s.temperature - 0.6f) < 1e-6f && fabsf(s.top_p - 0.95f) < 1e-6f);
    assert_int_equal(s.top_k, 20);
    assert_int_equal(s.max_tokens, 0);
}

/* The yarn scaling of the folder doubles 32 positions. */
static void test_context(void **state)
{
    fixture *f = *state;
    assert_int_equal(fk_engine_max_model_len(f->engine), 64);
    int32_t prompt[64] = {0};
    int64_t request;
    assert_int_equal(fk_engine_add(f->engine, prompt, 64, &(fk_sampling){.max_tokens = 1}, &request), FK_ERROR_INVALID);
    assert_non_null(strstr(fk_error_message(), "a prompt of 64 tokens leaves no room for an answer in the context of 64"));
    fk_engine *engine;
    assert_int_equal(fk_engine_create(f->model, &(fk_engine_options){.max_model_len = 65}, &engine), FK_ERROR_INVALID);
    assert_non_null(strstr(fk_error_message(), "max_model_len 65"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_by_either_file),        cmocka_unit_test(test_ignores_ends),
        cmocka_unit_test(test_stop_ids_with_ignored_ends), cmocka_unit_test(test_sampling_of_the_folder),
        cmocka_unit_test(test_context),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
