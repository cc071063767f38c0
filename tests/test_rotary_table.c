/* SPDX-License-Identifier: Apache-2.0 */
/* models/rotary_table.c: the forms of rope fields that configs have, and what is refused. The values of linear, llama3 and
 * yarn are those of the goldens (test_llama_goldens). */
#include "unit.h"

#include <math.h>
#include <string.h>

#include <fk/backend.h>

#include "core/json.h"
#include "models/rotary_table.h"
#include "runtime/config.h"
#include "runtime/weights.h"

enum { HEAD_DIM = 8 };

typedef struct table {
    fk_weights *weights;
    fk_tensor tensor;
    int64_t positions;
    fk_status status;
} table;

static table make(const char *text, int64_t positions)
{
    table t = {.positions = positions};
    json_t *config;
    fk_backend *backend;
    assert_ok(fkp_json_parse(text, strlen(text), (fkp_json_limits){8, 100}, &config));
    assert_ok(fk_backend_get((fk_device){FK_CPU, 0}, &backend));
    assert_ok(fk_weights_create(backend, FK_BF16, NULL, 0, &t.weights));
    t.status = fk_rotary_table(t.weights, fk_config_from_json(config), HEAD_DIM, &t.positions, &t.tensor);
    json_decref(config);
    return t;
}

static void assert_same_table(const char *text, const char *other_text)
{
    table a = make(text, 64), b = make(other_text, 64);
    if (a.status != FK_OK) fail_msg("%s: %s", text, fk_error_message());
    assert_int_equal(b.status, FK_OK);
    assert_int_equal(a.tensor.dtype, FK_F32); /* whatever the model's dtype is */
    assert_int_equal(a.positions, b.positions);
    assert_memory_equal(a.tensor.data, b.tensor.data, fk_tensor_nbytes(&b.tensor));
    fk_weights_destroy(a.weights);
    fk_weights_destroy(b.weights);
}

static void test_plain(void **state)
{
    (void)state;
    table t = make("{\"rope_theta\":10000}", 64);
    assert_int_equal(t.status, FK_OK);
    assert_int_equal(t.positions, 64);
    const float *values = t.tensor.data;
    for (int p = 0; p < 64; p++)
        for (int i = 0; i < HEAD_DIM / 2; i++) {
            double angle = p * pow(10000, -2.0 * i / HEAD_DIM);
            assert_true(fabs((double)values[p * HEAD_DIM + i] - cos(angle)) < 1e-5);
            assert_true(fabs((double)values[p * HEAD_DIM + HEAD_DIM / 2 + i] - sin(angle)) < 1e-5);
        }
    fk_weights_destroy(t.weights);
}

static void test_forms(void **state)
{
    (void)state;
#define LLAMA3 "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":32"
#define YARN "\"factor\":2,\"original_max_position_embeddings\":32"
    static const char *const same[][2] = {
        {"{}", "{\"rope_theta\":10000.0}"},
        {"{\"rope_scaling\":null}", "{}"},
        {"{\"rope_parameters\":{\"rope_theta\":500,\"rope_type\":\"default\"}}", "{\"rope_theta\":500}"},
        {"{\"rope_theta\":3,\"rope_parameters\":{\"rope_theta\":500}}", "{\"rope_theta\":500}"},
        {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}", "{\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2.0}}"},
        {"{\"rope_parameters\":{\"rope_theta\":10000,\"rope_type\":\"linear\",\"factor\":2}}",
         "{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}"},
        {"{\"rope_scaling\":{\"rope_type\":\"llama3\",\"type\":\"foo\"," LLAMA3 "}}", "{\"rope_scaling\":{\"type\":\"llama3\"," LLAMA3 "}}"},
        {"{\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4}}", "{}"}, /* within max_position_embeddings */
        {"{\"rope_scaling\":{\"type\":\"yarn\"," YARN "}}",
         "{\"rope_scaling\":{\"type\":\"yarn\",\"beta_fast\":32,\"beta_slow\":1,\"truncate\":true," YARN "}}"},
        {"{\"original_max_position_embeddings\":32,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2}}", "{\"rope_scaling\":{\"type\":\"yarn\"," YARN "}}"},
        {"{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":null,\"original_max_position_embeddings\":32}}", "{\"rope_scaling\":{\"type\":\"yarn\"," YARN "}}"},
        {"{\"rope_scaling\":{\"type\":\"yarn\",\"mscale\":1,\"mscale_all_dim\":1," YARN "}}",
         "{\"rope_scaling\":{\"type\":\"yarn\",\"attention_factor\":1," YARN "}}"},
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) assert_same_table(same[i][0], same[i][1]);
}

static void test_contexts(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        int64_t positions;
    } cases[] = {
        {"{}", 64},
        {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}}", 160},
        {"{\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4}}", 64},
        {"{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":32}}", 128},
        {"{\"rope_scaling\":{\"type\":\"llama3\"," LLAMA3 "}}", 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        table t = make(cases[i].config, 64);
        assert_int_equal(t.status, FK_OK);
        assert_int_equal(t.positions, cases[i].positions);
        assert_int_equal(t.tensor.shape[0], cases[i].positions);
        fk_weights_destroy(t.weights);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *needle;
    } cases[] = {
        {"{\"rope_scaling\":{\"type\":\"foo\"}}", "rope_scaling rope_type 'foo' is none of default, linear, dynamic, llama3, yarn"},
        {"{\"rope_parameters\":{\"rope_type\":\"longrope\"}}", "rope_parameters rope_type 'longrope'"},
        {"{\"rope_scaling\":{\"factor\":2}}", "rope_scaling has neither rope_type nor type"},
        {"{\"rope_scaling\":{\"type\":\"linear\"}}", "no field factor"},
        {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}", "rope_scaling factor 0.5 is below 1"},
        {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"2\"}}", "factor is \"2\", expected a number"},
        {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":1e300}}", "a context of"},
        {"{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4}}", "low_freq_factor 4"},
        {"{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"beta_fast\":1,\"beta_slow\":32}}", "beta_slow 32"},
        {"{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"original_max_position_embeddings\":0}}", "original_max_position_embeddings 0"},
        {"{\"rope_theta\":0}", "rope_theta is 0"},
        {"{\"rope_theta\":-1e9}", "rope_theta is -1e+09"},
        {"{\"partial_rotary_factor\":0.5}", "partial_rotary_factor is 0.5"},
        {"{\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e6},\"sliding_attention\":{\"rope_theta\":1e4}}}",
         "rope_parameters differs by layer type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        table t = make(cases[i].config, 64);
        if (t.status == FK_OK) fail_msg("accepted %s", cases[i].config);
        if (!strstr(fk_error_message(), cases[i].needle))
            fail_msg("%s: message \"%s\" lacks \"%s\"", cases[i].config, fk_error_message(), cases[i].needle);
        fk_weights_destroy(t.weights);
    }
    table t = make("{}", INT32_MAX);
    assert_int_equal(t.status, FK_ERROR_UNSUPPORTED);
    fk_weights_destroy(t.weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_forms), cmocka_unit_test(test_contexts),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
