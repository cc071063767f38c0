/* SPDX-License-Identifier: Apache-2.0 */
/* Configs of Hugging Face folders in the forms that their versions have, and hostile ones. */
#define _GNU_SOURCE
#include "unit.h"

#include <unistd.h>

#include "runtime/config.h"
#include "runtime/hf_model.h"
#include "scratch_folder.h"

static json_t *config_of(const char *config, const char *generation)
{
    json_t *object;
    scratch_write("config.json", config);
    if (generation) scratch_write("generation_config.json", generation);
    else unlink(scratch_path("generation_config.json"));
    return fk_hf_config(scratch_folder, &object) == FK_OK ? object : NULL;
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
        cmocka_unit_test(test_config_forms),
        cmocka_unit_test(test_bad_configs),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
