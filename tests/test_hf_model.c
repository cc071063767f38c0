/* SPDX-License-Identifier: Apache-2.0 */
/* Hugging Face folders: sharded checkpoints, configs in the forms that their versions have, and hostile ones of both. */
#define _GNU_SOURCE
#include "unit.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/safetensors.h"
#include "runtime/config.h"
#include "runtime/hf_model.h"

#define INDEX "model.safetensors.index.json"

static char folder[] = "/tmp/fk-hf-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static float values[3][6] = {{0.5f, -1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, {-6, -7, -8, -9, -10, -11}};

/* One or two tensors [3, 2] of `values`. */
static void write_shard(const char *file, const char *first, int row, const char *second, int second_row)
{
    fk_safetensors_entry entries[2];
    const int64_t shape[2] = {3, 2};
    const fk_device cpu = {FK_CPU, 0};
    entries[0] = (fk_safetensors_entry){first, fk_tensor_wrap(values[row], FK_F32, cpu, 2, shape)};
    entries[1] = (fk_safetensors_entry){second, fk_tensor_wrap(values[second_row], FK_F32, cpu, 2, shape)};
    assert_ok(fk_safetensors_write(in_folder(file), entries, second ? 2 : 1, NULL, 0));
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return 1;
    write_shard("a.safetensors", "x", 0, "y", 1);
    write_shard("b.safetensors", "z", 2, NULL, 0);
    write_shard("again.safetensors", "z", 2, "x", 1);
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void test_shards(void **state)
{
    (void)state;
    fk_checkpoint *c;
    fk_tensor t;
    float rows[4];
    write_text(INDEX, "{\"metadata\":{\"total_size\":72},\"weight_map\":{\"z\":\"b.safetensors\",\"x\":\"a.safetensors\","
                      "\"y\":\"a.safetensors\"}}");
    assert_ok(fk_checkpoint_open(folder, &c));
    assert_int_equal(fk_checkpoint_shard_count(c), 2);
    assert_int_equal(fk_checkpoint_tensor_count(c), 3);
    static const char *const names[] = {"x", "y", "z"};
    for (int i = 0; i < 3; i++) {
        assert_ok(fk_checkpoint_find(c, names[i], &t));
        assert_memory_equal(t.data, values[i], sizeof values[i]);
    }
    assert_int_equal(fk_checkpoint_find(c, "w", &t), FK_ERROR_MISSING);
    fk_weight_source source = fk_hf_source(c);
    int ndim;
    int64_t shape[FK_MAX_NDIM];
    assert_true(source.find(source.self, "z", &ndim, shape) && ndim == 2 && shape[0] == 3 && shape[1] == 2);
    assert_false(source.find(source.self, "w", &ndim, shape));
    assert_ok(source.read_rows(source.self, "z", 1, 3, rows));
    assert_memory_equal(rows, values[2] + 2, sizeof rows);
    fk_checkpoint_close(c);
}

static void test_hostile_indexes(void **state)
{
    (void)state;
    static const struct {
        const char *map, *needle;
    } cases[] = {
        {"{\"weight_map\":{\"x\":\"../../etc/passwd\"}}", "'../../etc/passwd' is not a file name in the folder"},
        {"{\"weight_map\":{\"x\":\"/etc/passwd.safetensors\"}}", "not a file name in the folder"},
        {"{\"weight_map\":{\"x\":\"..\"}}", "not a file name in the folder"},
        {"{\"weight_map\":{\"x\":\"sub/a.safetensors\"}}", "not a file name in the folder"},
        {"{\"weight_map\":{\"x\":\"\"}}", "is not named *.safetensors"},
        {"{\"weight_map\":{\"x\":\"model.bin\"}}", "'model.bin' is not named *.safetensors"},
        {"{\"weight_map\":{\"x\":3}}", "the shard of tensor 'x' is no string"},
        {"{\"weight_map\":{\"x\":\"gone.safetensors\"}}", "gone.safetensors"},
        {"{\"weight_map\":{\"w\":\"a.safetensors\"}}", "tensor 'w' is not in shard 'a.safetensors'"},
        {"{\"weight_map\":{\"z\":\"a.safetensors\",\"x\":\"a.safetensors\"}}", "tensor 'z' is not in shard 'a.safetensors'"},
        {"{\"weight_map\":{\"x\":\"a.safetensors\",\"z\":\"again.safetensors\"}}",
         "tensor 'x' occurs in shards 'a.safetensors' and 'again.safetensors'"},
        {"{\"weight_map\":{\"x\":\"a.safetensors\",\"x\":\"b.safetensors\"}}", "duplicate"},
        {"{\"weight_map\":[]}", "no weight_map, or it is no object"},
        {"{\"weight_map\":{}}", "weight_map is empty"},
        {"{}", "no weight_map"},
        {"[1]", "no weight_map"},
        {"{\"weight_map\":", INDEX},
        {"", INDEX},
    };
    fk_checkpoint *c;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text(INDEX, cases[i].map);
        if (fk_checkpoint_open(folder, &c) == FK_OK) fail_msg("accepted %s", cases[i].map);
        assert_null(c);
        if (!strstr(fk_error_message(), cases[i].needle))
            fail_msg("%s: message \"%s\" lacks \"%s\"", cases[i].map, fk_error_message(), cases[i].needle);
    }
    assert_int_equal(unlink(in_folder(INDEX)), 0);
    assert_int_equal(fk_checkpoint_open(folder, &c), FK_ERROR_MISSING);
}

static json_t *config_of(const char *config, const char *generation)
{
    json_t *object;
    write_text("config.json", config);
    if (generation) write_text("generation_config.json", generation);
    else unlink(in_folder("generation_config.json"));
    return fk_hf_config(folder, &object) == FK_OK ? object : NULL;
}

static void test_config_forms(void **state)
{
    (void)state;
    json_t *c = config_of("{\"architectures\":[\"Other\",\"LlamaForCausalLM\"],\"eos_token_id\":128001,\"dtype\":\"bfloat16\","
                          "\"rope_parameters\":{\"rope_theta\":500000.0,\"rope_type\":\"default\"},\"head_dim\":null}",
                          "{\"eos_token_id\":[128001,128008,128009]}");
    assert_non_null(c);
    const fk_config *config = fk_config_from_json(c);
    double theta = 0;
    int64_t head_dim = 7;
    assert_string_equal(fk_config_string(config, "model_type"), "llama");
    assert_string_equal(fk_config_string(config, "torch_dtype"), "bfloat16");
    assert_ok(fk_config_float(config, "rope_theta", &theta));
    assert_true(theta == 500000);
    assert_ok(fk_config_int_optional(config, "head_dim", 1, &head_dim));
    assert_int_equal(head_dim, 7);
    const json_t *eos = json_object_get(c, "eos_token_id");
    assert_int_equal(json_array_size(eos), 3);
    static const int ids[] = {128001, 128008, 128009};
    for (size_t i = 0; i < 3; i++) assert_int_equal(json_integer_value(json_array_get(eos, i)), ids[i]);
    json_decref(c);
    c = config_of("{\"model_type\":\"llama\",\"eos_token_id\":null}", NULL);
    assert_int_equal(json_array_size(json_object_get(c, "eos_token_id")), 0);
    json_decref(c);
}

static void test_bad_configs(void **state)
{
    (void)state;
    static const struct {
        const char *config, *generation, *needle;
    } cases[] = {
        {"{\"architectures\":[\"FooForCausalLM\"]}", NULL, "[\"FooForCausalLM\"]'; supported: LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM"},
        {"{\"architectures\":\"LlamaForCausalLM\"}", NULL, "architectures"},
        {"{\"model_type\":\"llama\",\"eos_token_id\":\"2\"}", NULL, "config.json: eos_token_id"},
        {"{\"model_type\":\"llama\",\"eos_token_id\":[2,-1]}", NULL, "config.json: eos_token_id"},
        {"{\"model_type\":\"llama\",\"eos_token_id\":2}", "{\"eos_token_id\":[[2]]}", "generation_config.json: eos_token_id"},
        {"{\"model_type\":\"gpt2\"}", NULL, "config field model_type is '\"gpt2\"'; supported: llama, mistral, qwen2, qwen3"},
        {"{\"quantization_config\":{}}", NULL, "config field model_type is absent; supported: llama"},
        {"{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"gptq\"}}", NULL, "quant_method 'gptq'"},
        {"{}", "[]", "generation_config.json is no JSON object"},
        {"[]", NULL, "config.json is no JSON object"},
        {"{", NULL, "config.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (config_of(cases[i].config, cases[i].generation)) fail_msg("accepted %s", cases[i].config);
        if (!strstr(fk_error_message(), cases[i].needle))
            fail_msg("%s: message \"%s\" lacks \"%s\"", cases[i].config, fk_error_message(), cases[i].needle);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_hostile_indexes),
        cmocka_unit_test(test_config_forms),
        cmocka_unit_test(test_bad_configs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
