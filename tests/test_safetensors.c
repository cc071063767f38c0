/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors reader and writer: round trips, the format's validation rules, hostile files, and writes that
 * fail. */
#define _GNU_SOURCE /* unshare */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file_map.h"
#include "core/safetensors.h"
#include "format_readers.h"
#include "hostile.h"

#ifndef FK_SOURCE_DIR
#define FK_SOURCE_DIR "."
#endif

static const fk_device cpu = {FK_CPU, 0};
static char folder[] = "/tmp/fk-safetensors-XXXXXX";

static const char *in_folder(char path[256], const char *name)
{
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static int count_files(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[512];
    DIR *dir = opendir(folder);
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (dir) closedir(dir);
    return rmdir(folder);
}

/* ---- reading ---- */

/* A file with that header (as it is, no padding) and so many bytes of data. */
static bytes make_file(const char *header, size_t data)
{
    bytes b = {0};
    bytes_put_uint(&b, strlen(header), 8);
    bytes_put_text(&b, header);
    bytes_put_fill(&b, 0x3c, data);
    return b;
}

static const char good_header[] = "{\"__metadata__\":{\"k\":\"v\"},"
                                  "\"b\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[3,19]},"
                                  "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                                  "\"c\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[19,21]}}  ";

static void test_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *what, *header;
        size_t data;
        size_t tensors;
    } cases[] = {
        {"three tensors, unsorted, unaligned", good_header, 21, 3},
        {"no tensor", "{}", 0, 0},
        {"metadata only", "{\"__metadata__\":{\"a\":\"b\"}}", 0, 0},
        {"metadata null", "{\"__metadata__\":null}", 0, 0},
        {"an empty tensor between two",
         "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"scaled_fp8\":{\"dtype\":\"F8_E4M3\",\"shape\":[0],\"data_offsets\":[8,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
         12, 3},
        {"empty tensors of equal place",
         "{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
         "\"b\":{\"dtype\":\"I64\",\"shape\":[3,0,5],\"data_offsets\":[0,0]}}",
         0, 2},
        {"two elements a byte", "{\"a\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}", 2, 1},
        {"a field of later versions",
         "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1],\"note\":[{}]}}", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = make_file(cases[i].header, cases[i].data);
        fk_safetensors *f;
        if (hostile_try(read_safetensors, &b) != FK_OK) fail_msg("%s: %s", cases[i].what, fk_error_message());
        assert_ok(fkp_safetensors_open_bytes(b.data, b.size, "good", &f));
        assert_int_equal(fk_safetensors_count(f), cases[i].tensors);
        fk_safetensors_close(f);
        bytes_free(&b);
    }
}

/* Tensors come in the order of the data; those off their alignment are copied, the others are views. */
static void test_views_and_copies(void **state)
{
    (void)state;
    bytes b = make_file(good_header, 21);
    fk_safetensors *f;
    fk_tensor t;
    size_t start = 8 + strlen(good_header);
    for (size_t i = 0; i < 21; i++) b.data[start + i] = (uint8_t)i;
    assert_ok(fkp_safetensors_open_bytes(b.data, b.size, "good", &f));
    assert_string_equal(fk_safetensors_at(f, 0)->name, "a");
    assert_string_equal(fk_safetensors_at(f, 1)->name, "b");
    assert_string_equal(fk_safetensors_at(f, 2)->name, "c");
    assert_string_equal(fk_safetensors_metadata(f, "k"), "v");
    assert_null(fk_safetensors_metadata(f, "v"));
    assert_int_equal(fk_safetensors_metadata_count(f), 1);
    assert_ok(fk_safetensors_find(f, "a", &t));
    assert_ptr_equal(t.data, b.data + start);
    assert_ok(fk_safetensors_find(f, "b", &t));
    assert_true(t.dtype == FK_F32 && t.ndim == 2 && t.shape[0] == 2 && t.shape[1] == 2);
    assert_int_equal((uintptr_t)t.data % 4, 0);
    assert_memory_equal(t.data, b.data + start + 3, 16);
    assert_ok(fk_safetensors_find(f, "c", &t));
    assert_true(t.dtype == FK_BF16 && t.ndim == 0);
    assert_memory_equal(t.data, b.data + start + 19, 2);
    assert_int_equal(fk_safetensors_find(f, "d", &t), FK_ERROR_MISSING);
    assert_message("good: no tensor 'd'");
    fk_safetensors_close(f);
    bytes_free(&b);
}

#define TENSOR(dtype, shape, offsets)                                                                        \
    "{\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void test_refused_headers(void **state)
{
    (void)state;
    static const struct {
        const char *what, *header;
        size_t data;
        const char *needle;
    } cases[] = {
        {"offsets in falling order", TENSOR("\"U8\"", "[4]", "[8,4]"), 8,
         "tensor 'x': data_offsets is '[8,4]'"},
        {"negative offset", TENSOR("\"U8\"", "[4]", "[-1,4]"), 8, "tensor 'x': data_offsets is '[-1,4]'"},
        {"one offset", TENSOR("\"U8\"", "[4]", "[0]"), 8, "tensor 'x': data_offsets is '[0]'"},
        {"three offsets", TENSOR("\"U8\"", "[4]", "[0,4,4]"), 8, "data_offsets is '[0,4,4]'"},
        {"offset 1e1", TENSOR("\"U8\"", "[10]", "[0,1e1]"), 10, "tensor 'x': data_offsets is '[0,10.0]'"},
        {"offset as text", TENSOR("\"U8\"", "[4]", "[0,\"4\"]"), 4, "tensor 'x': data_offsets"},
        {"offset 2^64", TENSOR("\"U8\"", "[4]", "[0,18446744073709551616]"), 4, "header: bad JSON"},
        {"offsets missing", "{\"x\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, "tensor 'x': no data_offsets"},
        {"dtype missing", "{\"x\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "tensor 'x': no dtype"},
        {"shape missing", "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, "tensor 'x': no shape"},
        {"entry is a number", "{\"x\":4}", 0, "tensor 'x': its entry is '4', not an object"},
        {"dtype is a number", TENSOR("4", "[4]", "[0,4]"), 4, "tensor 'x': dtype is '4'"},
        {"shape is an object", TENSOR("\"U8\"", "{}", "[0,4]"), 4, "tensor 'x': shape is '{}'"},
        {"negative dimension", TENSOR("\"U8\"", "[-4]", "[0,4]"), 4, "tensor 'x': shape is '[-4]'"},
        {"dimension as real", TENSOR("\"U8\"", "[4.0]", "[0,4]"), 4, "tensor 'x': shape is '[4.0]'"},
        {"7 dimensions", TENSOR("\"U8\"", "[1,1,1,1,1,1,1]", "[0,1]"), 1,
         "tensor 'x': shape has 7 dimensions"},
        {"size mismatch", TENSOR("\"F32\"", "[2,2]", "[0,8]"), 8,
         "tensor 'x': size mismatch: data_offsets [0, 8] hold 8 bytes, but dtype and shape need 16"},
        {"half a byte", TENSOR("\"F4\"", "[3]", "[0,1]"), 1, "tensor 'x': 3 elements of F4"},
        {"unknown dtype", TENSOR("\"F128\"", "[1]", "[0,16]"), 16, "tensor 'x': unknown dtype 'F128'"},
        {"dtype in lower case", TENSOR("\"f32\"", "[1]", "[0,4]"), 4, "tensor 'x': unknown dtype 'f32'"},
        {"dtype not implemented", TENSOR("\"C64\"", "[1]", "[0,8]"), 8,
         "tensor 'x': dtype 'C64' is not implemented"},
        {"dtype not implemented, six bits", TENSOR("\"F6_E2M3\"", "[4]", "[0,3]"), 3,
         "'F6_E2M3' is not implemented"},
        {"product wraps to 0", TENSOR("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0,
         "tensor 'x': shape is"},
        {"product wraps behind a 0", TENSOR("\"U8\"", "[0,4294967296,4294967296]", "[0,0]"), 0,
         "tensor 'x': shape is"},
        {"bits wrap to 0", TENSOR("\"F64\"", "[1152921504606846976]", "[0,0]"), 0, "tensor 'x': shape is"},
        {"one element in no byte", TENSOR("\"U8\"", "[1]", "[0,0]"), 0, "tensor 'x': size mismatch"},
        {"hole at the start", TENSOR("\"U8\"", "[4]", "[4,8]"), 8,
         "tensor 'x' begins at byte 4 of the data, after a hole"},
        {"hole between",
         "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[5,8]}}",
         8, "tensor 'y' begins at byte 5 of the data, after a hole: 4 was expected"},
        {"overlap",
         "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[3,8]}}",
         8, "tensor 'y' begins at byte 3 of the data, an overlap: 4 was expected"},
        {"the same bytes twice",
         "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
         4, "tensor 'y' begins at byte 0 of the data, an overlap"},
        {"empty tensor inside another",
         "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}",
         4, "tensor 'y' begins at byte 2 of the data, an overlap"},
        {"one byte short", TENSOR("\"U8\"", "[4]", "[0,4]"), 3,
         "truncated: by its header the file has 65 bytes, but it has 64"},
        {"one byte too long", TENSOR("\"U8\"", "[4]", "[0,4]"), 5,
         "surplus bytes: by its header the file has 65 bytes"},
        {"an end far out", TENSOR("\"U8\"", "[1152921504606846975]", "[0,1152921504606846975]"), 4,
         "truncated"},
        {"duplicate name",
         "{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
         4, "header: bad JSON at line 1"},
        {"NUL in a name", "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         "header: bad JSON"},
        {"lone surrogate", "{\"\\ud83d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         "header: bad JSON"},
        {"no UTF-8", "{\"\xc4\xe3\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         "header: bad JSON"},
        {"metadata is a number", "{\"__metadata__\":1}", 0, "__metadata__ is '1', not an object"},
        {"metadata value is a number", "{\"__metadata__\":{\"a\":1}}", 0,
         "__metadata__ 'a': value is '1', not a string"},
        {"empty header", "", 0, "the header does not begin with '{'"},
        {"an array", "[]", 0, "the header does not begin with '{'"},
        {"leading space", " {}", 0, "the header does not begin with '{'"},
        {"cut JSON", "{\"x\":", 0, "header: bad JSON at line 1"},
        {"text after the JSON", "{}{}", 0, "header: bad JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = make_file(cases[i].header, cases[i].data);
        hostile_refused(read_safetensors, &b, cases[i].what, cases[i].needle);
        bytes_free(&b);
    }
}

static void test_refused_files(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        const char *needle;
    } lengths[] = {
        {0xfffffffffffffff8u, "header too large: 18446744073709551608 bytes"},
        {UINT64_MAX, "header too large: 18446744073709551615"},
        {1ull << 63, "header too large: 9223372036854775808"},
        {100000001, "header too large: 100000001 bytes, at most 100000000"},
        {100000000, "truncated: a header of 100000000 bytes is announced, but the file has 66 bytes"},
        {59, "truncated: a header of 59 bytes is announced"}};
    bytes b = {0};
    hostile_refused(read_safetensors, &b, "empty file", "truncated: 0 bytes");
    bytes_put_fill(&b, 0, 7);
    hostile_refused(read_safetensors, &b, "7 bytes", "truncated: 7 bytes");
    bytes_free(&b);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        b = make_file(TENSOR("\"U8\"", "[9]", "[0,9]"), 5);
        bytes_set_uint(&b, 0, lengths[i].length, 8);
        hostile_refused(read_safetensors, &b, "header length", lengths[i].needle);
        bytes_free(&b);
    }

    const size_t depth = 10000;
    for (int closed = 0; closed < 2; closed++) { /* "{"x":[[[[ ...", then with as many "]" */
        bytes_put_uint(&b, 5 + depth * (size_t)(1 + closed) + (size_t)closed, 8);
        bytes_put_text(&b, "{\"x\":");
        bytes_put_fill(&b, '[', depth);
        if (closed) bytes_put_fill(&b, ']', depth);
        if (closed) bytes_put_text(&b, "}");
        hostile_refused(read_safetensors, &b, "depth 10,000", "header: JSON nested deeper than 16 levels");
        bytes_free(&b);
    }
}

/* A name of a megabyte is legal; where it stands in a message, the message stays short. */
static void test_long_name(void **state)
{
    (void)state;
    for (int good = 0; good < 2; good++) {
        const char *rest = good ? "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"
                                : "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}";
        bytes b = {0};
        bytes_put_uint(&b, 2 + 1000000 + strlen(rest), 8);
        bytes_put_text(&b, "{\"");
        bytes_put_fill(&b, 'n', 1000000);
        bytes_put_text(&b, rest);
        bytes_put_fill(&b, 0, 1);
        if (good)
            assert_ok(hostile_try(read_safetensors, &b));
        else
            assert_int_equal(hostile_try(read_safetensors, &b), FK_ERROR_INVALID);
        if (!good) assert_message("nnn...': size mismatch");
        if (!good) assert_true(strlen(fk_error_message()) < 300);
        bytes_free(&b);
    }
}

static void test_cut_and_corrupted(void **state)
{
    (void)state;
    bytes b = make_file(good_header, 21);
    hostile_truncations(read_safetensors, &b, b.size);
    assert_true(hostile_corruptions(read_safetensors, &b, b.size - 21) > b.size);
    bytes_free(&b);
}

static double time_many(int count)
{
    bytes b = {0};
    fk_safetensors *f;
    bytes_put_uint(&b, 0, 8);
    for (int i = 0; i < count; i++) {
        char entry[128];
        snprintf(entry, sizeof entry,
                 "%s\"layer.%d.weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                 i ? "," : "{", i, i, i + 1);
        bytes_put_text(&b, entry);
    }
    bytes_put_text(&b, "}");
    bytes_set_uint(&b, 0, b.size - 8, 8);
    bytes_put_fill(&b, 0, (size_t)count);
    double start = hostile_seconds();
    fk_status status = fkp_safetensors_open_bytes(b.data, b.size, "many", &f);
    double seconds = hostile_seconds() - start;
    assert_ok(status);
    assert_int_equal(fk_safetensors_count(f), count);
    fk_safetensors_close(f);
    bytes_free(&b);
    return seconds;
}

/* Ten times the tensors take about ten times as long: a quadratic step would take a hundred. */
static void test_many_tensors(void **state)
{
    (void)state;
    int count = hostile_sanitized ? 200000 : 1000000; /* sanitizers take too long for a million */
    double few = time_many(count / 10), many = time_many(count);
    print_message("%d tensors: %.2f s, %d: %.2f s\n", count / 10, few, count, many);
    assert_true(many < 30 * few);
}

/* ---- writing ---- */

static bytes read_file(const char *path)
{
    fkp_file_map map;
    bytes b = {0};
    assert_ok(fkp_file_map_open(&map, path));
    bytes_put(&b, map.data, map.size);
    fkp_file_map_close(&map);
    return b;
}

static void test_written_bytes(void **state)
{
    (void)state;
    static const char header[] = "{\"__metadata__\":{\"z\":\"1\",\"a\":\"\\\"q\\\"\"},"
                                 "\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                                 "\"ids\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}";
    float values[2] = {1.0f, -2.0f};
    uint8_t ids[3] = {7, 8, 9};
    char path[256];
    const fk_safetensors_entry entries[] = {{"w", fk_tensor_wrap(values, FK_F32, cpu, 2, (int64_t[]){1, 2})},
                                            {"ids", fk_tensor_wrap(ids, FK_U8, cpu, 1, (int64_t[]){3})}};
    const fk_safetensors_metadata_pair metadata[] = {{"z", "1"}, {"a", "\"q\""}};
    bytes expected = {0};
    size_t padding = (8 - strlen(header) % 8) % 8;
    assert_true(padding > 0); /* so that it is tested */
    bytes_put_uint(&expected, strlen(header) + padding, 8);
    bytes_put_text(&expected, header);
    bytes_put_fill(&expected, ' ', padding);
    bytes_put(&expected, values, sizeof values);
    bytes_put(&expected, ids, sizeof ids);
    in_folder(path, "bytes.safetensors");
    for (int again = 0; again < 2; again++) { /* the second time over the first file */
        assert_ok(fk_safetensors_write(path, entries, 2, metadata, 2));
        bytes written = read_file(path);
        assert_int_equal(written.size, expected.size);
        assert_memory_equal(written.data, expected.data, expected.size);
        bytes_free(&written);
    }
    assert_int_equal(count_files(folder), 1);
    unlink(path);
    bytes_free(&expected);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const fk_dtype dtypes[] = {FK_BOOL, FK_F64,     FK_U8,      FK_F32,  FK_F16,     FK_I8, FK_BF16,
                                      FK_I64,  FK_F8_E4M3, FK_F8_E5M2, FK_E8M0, FK_F4_E2M1, FK_I32};
    enum { COUNT = sizeof dtypes / sizeof dtypes[0] };
    char path[256], names[COUNT][16];
    uint8_t data[COUNT][64];
    fk_safetensors_entry entries[COUNT + 1];
    fk_safetensors *f;
    for (int i = 0; i < COUNT; i++) { /* odd sizes first, so that later ones are not aligned in the file */
        for (int k = 0; k < 64; k++) data[i][k] = (uint8_t)(i * 64 + k);
        snprintf(names[i], sizeof names[i], "tensor %d ö", i);
        entries[i] =
            (fk_safetensors_entry){names[i], fk_tensor_wrap(data[i], dtypes[i], cpu, 2,
                                                            (int64_t[]){dtypes[i] == FK_F4_E2M1 ? 2 : 1, 3})};
    }
    entries[COUNT] = (fk_safetensors_entry){"empty", fk_tensor_wrap(NULL, FK_F32, cpu, 2, (int64_t[]){0, 4})};
    assert_ok(fk_safetensors_write(in_folder(path, "all.safetensors"), entries, COUNT + 1, NULL, 0));
    assert_ok(fk_safetensors_open(path, &f));
    assert_int_equal(fk_safetensors_count(f), COUNT + 1);
    assert_int_equal(fk_safetensors_metadata_count(f), 0);
    for (int i = 0; i <= COUNT; i++) {
        fk_tensor t;
        assert_ok(fk_safetensors_find(f, entries[i].name, &t));
        assert_int_equal(t.dtype, entries[i].tensor.dtype);
        assert_true(fk_tensor_same_shape(&t, &entries[i].tensor));
        if (i == COUNT) continue;
        assert_memory_equal(t.data, data[i], fk_tensor_nbytes(&t));
        if (fk_dtype_bits(t.dtype) >= 8)
            assert_int_equal((uintptr_t)t.data % (size_t)(fk_dtype_bits(t.dtype) / 8), 0);
    }
    fk_safetensors_close(f);
    assert_ok(fk_safetensors_write(path, NULL, 0, NULL, 0));
    assert_ok(fk_safetensors_open(path, &f));
    assert_int_equal(fk_safetensors_count(f), 0);
    fk_safetensors_close(f);
    unlink(path);
}

static void test_unwritable_tensors(void **state)
{
    (void)state;
    float values[8] = {0};
    char path[256];
    fk_tensor good = fk_tensor_wrap(values, FK_F32, cpu, 2, (int64_t[]){4, 2});
    fk_tensor gpu = fk_tensor_wrap(values, FK_F32, (fk_device){FK_CUDA, 0}, 1, (int64_t[]){1});
    fk_tensor packed = fk_tensor_wrap(values, FK_INT4X2, cpu, 1, (int64_t[]){2});
    fk_tensor half = fk_tensor_wrap(values, FK_F4_E2M1, cpu, 1, (int64_t[]){3});
    const fk_safetensors_metadata_pair twice[] = {{"k", "1"}, {"k", "2"}}, latin[] = {{"k", "\xe4"}};
    const struct {
        fk_safetensors_entry entries[2];
        size_t count;
        const fk_safetensors_metadata_pair *metadata;
        size_t metadata_count;
        const char *needle;
    } cases[] = {
        {{{"x", good}, {"x", good}}, 2, NULL, 0, "tensor 'x' occurs twice"},
        {{{"__metadata__", good}}, 1, NULL, 0, "tensor '__metadata__': a tensor cannot have this name"},
        {{{"\xff", good}}, 1, NULL, 0, "tensor '\\xff' is not valid UTF-8"},
        {{{"x", FK_ABSENT}}, 1, NULL, 0, "tensor 'x': the tensor is absent"},
        {{{"x", fk_tensor_slice(good, 1, 0, 1)}}, 1, NULL, 0, "tensor 'x': the tensor is not contiguous"},
        {{{"x", gpu}}, 1, NULL, 0, "tensor 'x': the tensor is not in host memory"},
        {{{"x", packed}}, 1, NULL, 0, "tensor 'x': dtype int4x2 has no name"},
        {{{"x", half}}, 1, NULL, 0, "tensor 'x': 3 elements of F4"},
        {{{"x", good}}, 1, twice, 2, "metadata 'k' occurs twice"},
        {{{"x", good}}, 1, latin, 1, "metadata 'k' is not valid UTF-8, or its value is not"},
    };
    in_folder(path, "never.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fk_status status = fk_safetensors_write(path, cases[i].entries, cases[i].count, cases[i].metadata,
                                                cases[i].metadata_count);
        if (status == FK_OK) fail_msg("case %zu was written", i);
        assert_message(cases[i].needle);
        assert_message(path);
        assert_int_equal(count_files(folder), 0);
    }
}

/* Writes 1 MiB to `path` and checks the failure; in a child process, so that limits and mounts stay there. */
static int expect_failed_write(const char *path, int error, const char *doing)
{
    enum { SIZE = 1 << 20 };
    static uint8_t data[SIZE];
    char number[32];
    const fk_safetensors_entry entry = {"big", fk_tensor_wrap(data, FK_U8, cpu, 1, (int64_t[]){SIZE})};
    fk_status status = fk_safetensors_write(path, &entry, 1, NULL, 0);
    snprintf(number, sizeof number, "(errno %d)", error);
    if (status == FK_OK || !strstr(fk_error_message(), path) || !strstr(fk_error_message(), number) ||
        strncmp(fk_error_message(), doing, strlen(doing)) != 0) {
        fprintf(stderr, "status %s, message \"%s\", expected \"%s\", '%s' and %s\n", fk_status_name(status),
                status == FK_OK ? "" : fk_error_message(), doing, path, number);
        return 1;
    }
    return 0;
}

static int wait_for(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CHILD_SKIPS 77

/* The old file survives a write that fails half-way, and no temporary stays behind. */
static void test_file_size_limit(void **state)
{
    (void)state;
    char path[256];
    uint8_t byte = 5;
    const fk_safetensors_entry small = {"small", fk_tensor_wrap(&byte, FK_U8, cpu, 1, (int64_t[]){1})};
    assert_ok(fk_safetensors_write(in_folder(path, "limited.safetensors"), &small, 1, NULL, 0));
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){65536, 65536});
        _exit(expect_failed_write(path, EFBIG, "cannot write"));
    }
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(count_files(folder), 1);
    fk_safetensors *f;
    assert_ok(fk_safetensors_open(path, &f));
    assert_string_equal(fk_safetensors_at(f, 0)->name, "small");
    fk_safetensors_close(f);
    unlink(path);
}

static void test_bad_folders(void **state)
{
    (void)state;
    char path[256];
    assert_int_equal(expect_failed_write(in_folder(path, "none/x.safetensors"), ENOENT, "cannot create"), 0);
    assert_int_equal(expect_failed_write("/dev/null/x.safetensors", ENOTDIR, "cannot create"), 0);
    assert_int_equal(mkdir(in_folder(path, "sub"), 0700), 0); /* a folder stands where the file should */
    assert_int_equal(expect_failed_write(path, EISDIR, "cannot replace"), 0);
    assert_int_equal(count_files(folder), 1);
    rmdir(path);

    in_folder(path, "closed");
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chmod(path, 0555), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    pid_t child = fork();
    if (child == 0) { /* root may write everywhere: become nobody */
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(CHILD_SKIPS);
        in_folder(path, "closed/x.safetensors");
        _exit(expect_failed_write(path, EACCES, "cannot create"));
    }
    int code = wait_for(child);
    assert_int_equal(count_files(path), 0);
    rmdir(path);
    if (code == CHILD_SKIPS)
        print_message("SKIPPED: root cannot become nobody here, so no folder is read-only\n");
    else
        assert_int_equal(code, 0);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return ok;
}

/* A file system of 256 kB of our own, full after a part of the megabyte; then the same, read-only. */
static void test_full_disk(void **state)
{
    (void)state;
    char path[256];
    uid_t uid = getuid();
    pid_t child = fork();
    if (child == 0) {
        if (uid != 0) { /* an unprivileged user may mount in a user namespace of his own */
            char uid_map[64], gid_map[64];
            snprintf(uid_map, sizeof uid_map, "0 %u 1", (unsigned)uid);
            snprintf(gid_map, sizeof gid_map, "0 %u 1", (unsigned)getgid());
            if (unshare(CLONE_NEWUSER) != 0 || !write_text("/proc/self/uid_map", uid_map) ||
                !write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/gid_map", gid_map))
                _exit(CHILD_SKIPS);
        }
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("tmpfs", folder, "tmpfs", 0, "size=256k") != 0)
            _exit(CHILD_SKIPS);
        in_folder(path, "x.safetensors");
        if (expect_failed_write(path, ENOSPC, "cannot write") != 0 || count_files(folder) != 0) _exit(1);
        if (mount(NULL, folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0) _exit(2);
        _exit(expect_failed_write(path, EROFS, "cannot create"));
    }
    int code = wait_for(child);
    if (code == CHILD_SKIPS) {
        print_message("SKIPPED: this user may not mount a file system, so no disk can be filled\n");
        skip();
    }
    assert_int_equal(code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),        cmocka_unit_test(test_views_and_copies),
        cmocka_unit_test(test_refused_headers), cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_long_name),       cmocka_unit_test(test_cut_and_corrupted),
        cmocka_unit_test(test_many_tensors),    cmocka_unit_test(test_written_bytes),
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_unwritable_tensors),
        cmocka_unit_test(test_file_size_limit), cmocka_unit_test(test_bad_folders),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
