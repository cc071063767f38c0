/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that transformers' save_pretrained wrote, sharded, through the engine (tools/reference/hf_folder.py says what the
 * golden holds): logits of the prompt, the answer, its end by the ids of both files, sampling as the folder asks for it. */
#define _GNU_SOURCE
#include "unit.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "core/safetensors.h"
#include "runtime/engine.h"
#include "runtime/generation.h"
#include "scratch_folder.h"

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
    if (scratch_make(state) != 0) return 1;
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
    return scratch_remove(state);
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

/* ---- edited copies of the folder */

/* Writes the JSON file with fields set (null deletes none of them: it is a value) and one taken out, NULL for none. */
static void edit(const char *name, const char *set, const char *without)
{
    char path[400];
    json_t *object, *changes;
    snprintf(path, sizeof path, FOLDER "/%s", name);
    assert_ok(fkp_json_load_file(path, (fkp_json_limits){16, 1000}, &object));
    assert_ok(fkp_json_parse(set, strlen(set), (fkp_json_limits){16, 1000}, &changes));
    assert_int_equal(json_object_update_recursive(object, changes), 0);
    if (without) {
        json_object_del(json_object_get(object, "weight_map"), without);
        json_object_del(object, without);
    }
    assert_int_equal(json_dump_file(object, scratch_path(name), 0), 0);
    json_decref(changes);
    json_decref(object);
}

static void link_shards(void)
{
    for (int i = 1; i <= 6; i++) {
        char name[64], path[400];
        snprintf(name, sizeof name, "model-0000%d-of-00006.safetensors", i);
        snprintf(path, sizeof path, FOLDER "/%s", name);
        if (access(scratch_path(name), F_OK) != 0) assert_int_equal(symlink(path, scratch_path(name)), 0);
    }
}

static fk_status open_edited(const char *set, const char *without, const char *set_index, const char *without_tensor, fk_model **model)
{
    link_shards();
    edit("config.json", set, without);
    edit("model.safetensors.index.json", set_index, without_tensor);
    return fk_model_open(scratch_folder, &(fk_model_options){.device = {FK_CPU, 0}}, model);
}

static void test_edited_folders(void **state)
{
    (void)state;
    static const struct {
        const char *config, *without, *index, *without_tensor, *needle; /* needle NULL: it loads */
    } cases[] = {
        {"{}", NULL, "{}", NULL, NULL},
        {"{\"tie_word_embeddings\":true}", NULL, "{}", NULL, NULL}, /* the head that is there too is not used */
        {"{\"rms_norm_eps\":null,\"max_position_embeddings\":null}", "dtype", "{}", NULL, NULL},
        {"{\"architectures\":[\"Qwen3ForCausalLM\",\"Foo\"]}", "model_type", "{}", NULL, NULL},
        {"{\"use_sliding_window\":true,\"sliding_window\":4,\"layer_types\":[\"full_attention\",\"sliding_attention\"]}", NULL, "{}", NULL, NULL},
        /* Another checkpoint than the config's. */
        {"{\"head_dim\":null}", NULL, "{}", NULL, "tensor model.layers.0.self_attn.q_proj.weight is"},
        {"{}", "head_dim", "{}", NULL, "tensor model.layers.0.self_attn.q_proj.weight is"}, /* Qwen3's default is 128 */
        {"{\"vocab_size\":97}", NULL, "{}", NULL, "tensor model.embed_tokens.weight is"},
        {"{\"num_hidden_layers\":3}", NULL, "{}", NULL, "the file has no tensor model.layers.2.input_layernorm.weight"},
        {"{\"attention_bias\":true}", NULL, "{}", NULL, "the file has no tensor model.layers.0.self_attn.q_proj.bias"},
        {"{}", NULL, "{\"metadata\":{\"total_size\":null}}", "model.norm.weight", "the file has no tensor model.norm.weight"},
        {"{}", NULL, "{\"metadata\":{\"total_size\":null}}", "lm_head.weight", "the file has no tensor lm_head.weight"},
        {"{}", NULL, "{}", "lm_head.weight", "metadata.total_size is 55744, but the listed tensors have 49600 bytes"},
        {"{}", NULL, "{\"weight_map\":{\"model.norm.weight\":\"model-00007-of-00006.safetensors\"}}", NULL, "model-00007-of-00006.safetensors"},
        {"{}", NULL, "{\"weight_map\":{\"model.norm.weight\":\"../model.safetensors\"}}", NULL, "is not a file name in the folder"},
        {"{}", NULL, "{\"weight_map\":{\"model.norm.weight\":\"model-00001-of-00006.safetensors\"}}", NULL,
         "tensor 'model.norm.weight' is not in shard 'model-00001-of-00006.safetensors'"},
        /* Configs that contradict themselves or ask for what there is not. */
        {"{\"num_key_value_heads\":3}", NULL, "{}", NULL, "num_attention_heads 4 is no multiple of num_key_value_heads 3"},
        {"{}", "num_key_value_heads", "{}", NULL, "num_attention_heads 4 is no multiple of num_key_value_heads 32"},
        {"{\"head_dim\":null,\"num_attention_heads\":6}", NULL, "{}", NULL, "no head_dim, and hidden_size 32 is no multiple of num_attention_heads 6"},
        {"{\"head_dim\":15}", NULL, "{}", NULL, "head_dim 15 is odd"},
        {"{\"head_dim\":\"16\"}", NULL, "{}", NULL, "config field head_dim is \"16\", expected an integer"},
        {"{\"hidden_size\":0}", NULL, "{}", NULL, "config field hidden_size is 0, below 1"},
        {"{}", "vocab_size", "{}", NULL, "config has no field vocab_size"},
        {"{\"hidden_act\":\"gelu\"}", NULL, "{}", NULL, "hidden_act 'gelu'"},
        {"{\"rope_parameters\":{\"rope_type\":\"foo\"}}", NULL, "{}", NULL, "rope_parameters rope_type 'foo'"},
        {"{\"layer_types\":[\"full_attention\",\"chunked_attention\"]}", NULL, "{}", NULL, "layer_types[1] is 'chunked_attention'"},
        {"{\"use_sliding_window\":1}", NULL, "{}", NULL, "config field use_sliding_window is 1, expected true or false"},
        {"{\"use_sliding_window\":true,\"sliding_window\":0}", NULL, "{}", NULL, "config field sliding_window is 0, below 1"},
        {"{\"architectures\":[\"FooForCausalLM\"]}", NULL, "{}", NULL, "config field architectures is '[\"FooForCausalLM\"]'; supported: LlamaForCausalLM"},
        {"{\"quantization_config\":{\"quant_method\":\"fp8\"}}", NULL, "{}", NULL, "quant_method 'fp8'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fk_model *model;
        fk_status status = open_edited(cases[i].config, cases[i].without, cases[i].index, cases[i].without_tensor, &model);
        if (status == FK_OK) {
            fk_model_close(model);
            if (cases[i].needle) fail_msg("case %zu, %s: accepted", i, cases[i].config);
        } else if (!cases[i].needle || !strstr(fk_error_message(), cases[i].needle))
            fail_msg("case %zu, %s: \"%s\"", i, cases[i].config, fk_error_message());
    }
}

/* generation_config.json as transformers reads it: greedy without do_sample, its own defaults with it. */
static void test_generation_configs(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        double temperature, top_p;
        int32_t top_k;
        const char *needle;
    } cases[] = {
        {"{}", 0, 1, 0, NULL},
        {"{\"do_sample\":true}", 1, 1, 50, NULL},
        {"{\"do_sample\":true,\"temperature\":0.25,\"top_k\":0,\"top_p\":0.5}", 0.25, 0.5, 0, NULL},
        {"{\"do_sample\":true,\"temperature\":null,\"top_k\":-1}", 1, 1, 0, NULL},
        {"{\"do_sample\":false,\"temperature\":0.25,\"top_k\":7}", 0, 1, 7, NULL},
        {"{\"temperature\":0.25}", 0, 1, 0, NULL},
        {"{\"do_sample\":1}", 0, 0, 0, "generation_config.json: config field do_sample is 1, expected true or false"},
        {"{\"temperature\":-1}", 0, 0, 0, "generation_config.json: temperature is -1, expected 0 to 100"},
        {"{\"top_p\":1.5}", 0, 0, 0, "generation_config.json: top_p is 1.5, expected 0 to 1"},
        {"{\"repetition_penalty\":0}", 0, 0, 0, "generation_config.json: repetition_penalty is 0, expected above 0, to 10"},
        {"{\"min_p\":2}", 0, 0, 0, "generation_config.json: min_p is 2, expected 0 to 1"},
        {"{\"top_k\":-2}", 0, 0, 0, "generation_config.json: config field top_k is -2, below -1"},
        {"{\"top_k\":1.5}", 0, 0, 0, "generation_config.json: config field top_k is 1.5, expected an integer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fk_model *model;
        fk_sampling s;
        scratch_write("generation_config.json", cases[i].file);
        assert_ok(open_edited("{}", NULL, "{}", NULL, &model));
        fk_status status = fk_generation_sampling(fk_model_config(model), &s);
        fk_model_close(model);
        if (cases[i].needle) {
            assert_int_equal(status, FK_ERROR_INVALID);
            if (!strstr(fk_error_message(), cases[i].needle)) fail_msg("%s: \"%s\"", cases[i].file, fk_error_message());
            continue;
        }
        assert_ok(status);
        if (fabs((double)s.temperature - cases[i].temperature) > 1e-6 || fabs((double)s.top_p - cases[i].top_p) > 1e-6 || s.top_k != cases[i].top_k)
            fail_msg("%s: temperature %g, top_p %g, top_k %d", cases[i].file, (double)s.temperature, (double)s.top_p, s.top_k);
    }
    assert_int_equal(unlink(scratch_path("generation_config.json")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_by_either_file),        cmocka_unit_test(test_ignores_ends),
        cmocka_unit_test(test_stop_ids_with_ignored_ends), cmocka_unit_test(test_sampling_of_the_folder),
        cmocka_unit_test(test_context),                    cmocka_unit_test(test_edited_folders),
        cmocka_unit_test(test_generation_configs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
