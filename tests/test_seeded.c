/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded values against the Python definition: the first million elements of every role, and elements beyond 2^32, bit for
 * bit, through the backend's fill. */
#include "golden.h"

#include <jansson.h>

#include <fk/backend.h>

#include "core/json.h"
#include "core/seeded.h"

static json_t *about;
static fk_backend *backend;

static int open_golden(void **state)
{
    (void)state;
    golden_open("seeded.safetensors");
    const char *text = fk_safetensors_metadata(golden, "golden");
    if (!text || fkp_json_parse(text, strlen(text), (fkp_json_limits){16, 10000}, &about) != FK_OK) return 1;
    return fk_backend_get((fk_device){FK_CPU, 0}, &backend) != FK_OK;
}

static int close_golden(void **state)
{
    json_decref(about);
    return golden_close(state);
}

typedef struct seeded_case {
    uint64_t seed, high_index;
    const char *name;
    int ndim;
    int64_t shape[FK_MAX_NDIM];
} seeded_case;

static seeded_case read_case(const json_t *json)
{
    seeded_case c = {.seed = strtoull(json_string_value(json_object_get(json, "seed")), NULL, 10),
                     .high_index = (uint64_t)json_integer_value(json_object_get(json, "high_index")),
                     .name = json_string_value(json_object_get(json, "name"))};
    const json_t *shape = json_object_get(json, "shape");
    c.ndim = (int)json_array_size(shape);
    assert_true(c.name && c.ndim > 0 && c.ndim <= FK_MAX_NDIM);
    for (int i = 0; i < c.ndim; i++) c.shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
    return c;
}

static void fill(const seeded_case *c, fk_dtype dtype, uint64_t first, uint64_t count, void *dst)
{
    fkp_seeded_scale scale = fkp_seeded_scale_for(c->name, c->ndim, c->shape);
    assert_ok(backend->fill_seeded(backend, NULL, dst, dtype, fkp_seeded_key(c->seed, c->name), scale.offset, scale.exponent, first, count));
}

static void test_values(void **state)
{
    (void)state;
    static const fk_dtype dtypes[] = {FK_F32, FK_BF16, FK_F16};
    const json_t *cases = json_object_get(about, "cases");
    size_t num_cases = json_array_size(cases), hash_count = (size_t)json_integer_value(json_object_get(about, "hash_count"));
    assert_true(num_cases >= 10 && hash_count >= 1000000);
    unsigned char *values = malloc(hash_count * 4);
    assert_non_null(values);
    for (size_t i = 0; i < num_cases; i++) {
        seeded_case c = read_case(json_array_get(cases, i));
        for (int d = 0; d < 3; d++) {
            size_t size = (size_t)fk_dtype_bits(dtypes[d]) / 8;
            int64_t n;
            const char *first = golden_about("first", dtypes[d], &n), *high = golden_about("high", dtypes[d], &n);
            const int64_t *hash = golden_about("hash", dtypes[d], &n);
            assert_int_equal(n, num_cases);
            fill(&c, dtypes[d], 0, hash_count, values);
            assert_memory_equal(values, first + i * 64 * size, 64 * size);
            if ((int64_t)fkp_fnv1a64(values, hash_count * size) != hash[i])
                fail_msg("%s of seed %llu '%s'", fk_dtype_name(dtypes[d]), (unsigned long long)c.seed, c.name);
            assert_true(c.high_index + 64 > UINT32_MAX);
            fill(&c, dtypes[d], c.high_index, 64, values);
            assert_memory_equal(values, high + i * 64 * size, 64 * size);
        }
    }
    free(values);
}

/* A part filled alone equals the same part of the whole, whatever the threads do. */
static void test_parts(void **state)
{
    (void)state;
    enum { N = 300000 };
    seeded_case c = {.seed = 5, .name = "w", .ndim = 2, .shape = {N, 64}};
    float *whole = malloc(N * sizeof *whole), part[1000];
    assert_non_null(whole);
    fill(&c, FK_F32, 0, N, whole);
    fill(&c, FK_F32, 123457, 1000, part);
    assert_memory_equal(part, whole + 123457, sizeof part);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
