/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint folders: sharded ones read and written, hostile indexes. */
#define _GNU_SOURCE
#include "unit.h"

#include <unistd.h>

#include "core/dtype.h"
#include "core/safetensors_index.h"
#include "runtime/hf_model.h"
#include "scratch_folder.h"

#define INDEX "model.safetensors.index.json"

static float values[3][6] = {{0.5f, -1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, {-6, -7, -8, -9, -10, -11}};

/* One or two tensors [3, 2] of `values`. */
static void write_shard(const char *file, const char *first, int row, const char *second, int second_row)
{
    fk_safetensors_entry entries[2];
    const int64_t shape[2] = {3, 2};
    const fk_device cpu = {FK_CPU, 0};
    entries[0] = (fk_safetensors_entry){first, fk_tensor_wrap(values[row], FK_F32, cpu, 2, shape)};
    entries[1] = (fk_safetensors_entry){second, fk_tensor_wrap(values[second_row], FK_F32, cpu, 2, shape)};
    assert_ok(fk_safetensors_write(scratch_path(file), entries, second ? 2 : 1, NULL, 0));
}

static int setup(void **state)
{
    if (scratch_make(state) != 0) return 1;
    write_shard("a.safetensors", "x", 0, "y", 1);
    write_shard("b.safetensors", "z", 2, NULL, 0);
    write_shard("again.safetensors", "z", 2, "x", 1);
    return 0;
}

static void test_shards(void **state)
{
    (void)state;
    fk_checkpoint *c;
    fk_tensor t;
    float rows[4];
    scratch_write(INDEX, "{\"metadata\":{\"total_size\":72},\"weight_map\":{\"z\":\"b.safetensors\",\"x\":\"a.safetensors\","
                      "\"y\":\"a.safetensors\"}}");
    assert_ok(fk_checkpoint_open(scratch_folder, &c));
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
        {"{\"metadata\":{\"total_size\":24},\"weight_map\":{\"x\":\"a.safetensors\",\"y\":\"a.safetensors\"}}",
         "metadata.total_size is 24, but the listed tensors have 48 bytes"},
        {"{\"metadata\":{\"total_size\":-48},\"weight_map\":{\"x\":\"a.safetensors\",\"y\":\"a.safetensors\"}}", "total_size is -48"},
        {"{\"metadata\":{\"total_size\":\"48\"},\"weight_map\":{\"x\":\"a.safetensors\"}}", "metadata.total_size is no number"},
        {"{\"weight_map\":[]}", "no weight_map, or it is no object"},
        {"{\"weight_map\":{}}", "weight_map is empty"},
        {"{}", "no weight_map"},
        {"[1]", "no weight_map"},
        {"{\"weight_map\":", INDEX},
        {"", INDEX},
    };
    fk_checkpoint *c;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scratch_write(INDEX, cases[i].map);
        if (fk_checkpoint_open(scratch_folder, &c) == FK_OK) fail_msg("accepted %s", cases[i].map);
        assert_null(c);
        if (!strstr(fk_error_message(), cases[i].needle))
            fail_msg("%s: message \"%s\" lacks \"%s\"", cases[i].map, fk_error_message(), cases[i].needle);
    }
    assert_int_equal(unlink(scratch_path(INDEX)), 0);
    assert_int_equal(fk_checkpoint_open(scratch_folder, &c), FK_ERROR_MISSING);
}

/* What stands in the index text. */
static bool index_has(const char *needle)
{
    char text[4096];
    FILE *file = fopen(scratch_path(INDEX), "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = 0;
    return strstr(text, needle) != NULL;
}

/* Five tensors of many dtypes, 4 to 48 bytes, in shards of 40 bytes: two, one that is too large for any, two. */
static void test_written_shards(void **state)
{
    (void)state;
    static uint64_t data[5][8];
    static const struct {
        const char *name;
        fk_dtype dtype;
        int64_t shape[2];
    } kinds[5] = {{"a", FK_F64, {1, 2}}, {"b", FK_I8, {3, 7}}, {"c", FK_BF16, {6, 4}}, {"d", FK_F8_E4M3, {5, 1}}, {"e", FK_F32, {1, 1}}};
    fk_safetensors_entry entries[5];
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 8; j++) data[i][j] = 0x0123456789abcdefu * (uint64_t)(8 * i + j + 1);
        entries[i] = (fk_safetensors_entry){kinds[i].name, fk_tensor_wrap(data[i], kinds[i].dtype, (fk_device){FK_CPU, 0}, 2, kinds[i].shape)};
    }
    scratch_write("model.safetensors", "of an earlier checkpoint");
    assert_ok(fk_checkpoint_write(scratch_folder, entries, 5, 40));
    assert_int_equal(access(scratch_path("model.safetensors"), F_OK), -1);
    assert_true(index_has("\"total_size\": 94") && index_has("\"c\": \"model-00002-of-00003.safetensors\""));
    for (int round = 0; round < 2; round++) {
        fk_checkpoint *c;
        assert_ok(fk_checkpoint_open(scratch_folder, &c));
        assert_int_equal(fk_checkpoint_shard_count(c), round == 0 ? 3 : 1);
        assert_int_equal(fk_checkpoint_tensor_count(c), 5);
        for (int i = 0; i < 5; i++) {
            fk_tensor t;
            assert_ok(fk_checkpoint_find(c, kinds[i].name, &t));
            assert_true(t.dtype == kinds[i].dtype && fk_tensor_same_shape(&t, &entries[i].tensor));
            assert_memory_equal(t.data, data[i], fk_tensor_nbytes(&t));
        }
        fk_checkpoint_close(c);
        assert_ok(fk_checkpoint_write(scratch_folder, entries, 5, 0)); /* one file now, and no index */
        assert_int_equal(access(scratch_path(INDEX), F_OK), -1);
    }
}

static void test_unwritable_shards(void **state)
{
    (void)state;
    static float data[2];
    const int64_t shape[1] = {1};
    fk_safetensors_entry entries[2];
    for (int i = 0; i < 2; i++) entries[i] = (fk_safetensors_entry){"x", fk_tensor_wrap(data + i, FK_F32, (fk_device){FK_CPU, 0}, 1, shape)};
    assert_int_equal(fk_checkpoint_write(scratch_folder, entries, 2, 4), FK_ERROR_INVALID);
    assert_non_null(strstr(fk_error_message(), "tensor 'x' occurs twice"));
    entries[1].name = "bad\xff";
    assert_int_equal(fk_checkpoint_write(scratch_folder, entries, 2, 4), FK_ERROR_INVALID);
    assert_non_null(strstr(fk_error_message(), "UTF-8"));
    entries[1].name = "y";
    assert_int_equal(fk_checkpoint_write(scratch_path("no-such-folder"), entries, 2, 4), FK_ERROR_MISSING);
    assert_non_null(strstr(fk_error_message(), "no-such-folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_hostile_indexes),
        cmocka_unit_test(test_written_shards),
        cmocka_unit_test(test_unwritable_shards),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
