/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF reader and dequantisation: against files and values of the `gguf` Python package, and against hostile
 * files. */
#include "unit.h"

#include "core/file_map.h"
#include "core/gguf.h"
#include "core/safetensors.h"
#include "format_readers.h"
#include "hostile.h"
#include "runtime/assets.h"

#ifndef FK_SOURCE_DIR
#define FK_SOURCE_DIR "."
#endif
#define GOLDENS FK_SOURCE_DIR "/tests/goldens/"
#define SMOLLM2 "SmolLM2-135M-Instruct.Q4_1"

/* ---- the small golden file ---- */

static fk_gguf *open_golden(void)
{
    fk_gguf *g;
    assert_ok(fk_gguf_open(GOLDENS "gguf_small.gguf", &g));
    return g;
}

static void test_scalars(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t value;
    } integers[] = {{"golden.u8", 200},        {"golden.i8", -100},        {"golden.u16", 60000},
                    {"golden.i16", -30000},    {"golden.u32", 4000000000}, {"golden.i32", -2000000000},
                    {"golden.i64", INT64_MIN}, {"general.alignment", 64}};
    fk_gguf *g = open_golden();
    int64_t i;
    uint64_t u;
    double d;
    bool b;
    fk_gguf_string s;
    assert_int_equal(fk_gguf_version(g), 3);
    assert_int_equal(fk_gguf_key_count(g), 29);
    assert_string_equal(fk_gguf_key_at(g, 0), "general.architecture");
    assert_true(fk_gguf_has(g, "golden.nested"));
    assert_false(fk_gguf_has(g, "golden"));
    for (size_t k = 0; k < sizeof integers / sizeof integers[0]; k++) {
        assert_int_equal(fk_gguf_get_i64(g, integers[k].key, &i), FK_OK);
        assert_true(i == integers[k].value);
        assert_int_equal(fk_gguf_get_f64(g, integers[k].key, &d), FK_OK);
        assert_true(d == (double)integers[k].value);
        if (i < 0) {
            assert_int_equal(fk_gguf_get_u64(g, integers[k].key, &u), FK_ERROR_INVALID);
            assert_message("below 0");
            assert_message(integers[k].key);
        } else {
            assert_int_equal(fk_gguf_get_u64(g, integers[k].key, &u), FK_OK);
            assert_true(u == (uint64_t)i);
        }
    }
    assert_int_equal(fk_gguf_get_u64(g, "golden.u64", &u), FK_OK);
    assert_true(u == UINT64_MAX);
    assert_int_equal(fk_gguf_get_i64(g, "golden.u64", &i), FK_ERROR_INVALID);
    assert_message("18446744073709551615");
    assert_int_equal(fk_gguf_get_f64(g, "golden.f32", &d), FK_OK);
    assert_true(d == (double)0.1f);
    assert_int_equal(fk_gguf_get_f64(g, "golden.f64", &d), FK_OK);
    assert_true(d == 0.1);
    assert_int_equal(fk_gguf_get_bool(g, "golden.true", &b), FK_OK);
    assert_true(b);
    assert_int_equal(fk_gguf_get_bool(g, "golden.false", &b), FK_OK);
    assert_false(b);
    assert_int_equal(fk_gguf_get_string(g, "golden.string", &s), FK_OK);
    assert_int_equal(s.size, strlen("grüße, 世界"));
    assert_memory_equal(s.data, "grüße, 世界", s.size);
    assert_int_equal(fk_gguf_get_string(g, "golden.empty", &s), FK_OK);
    assert_int_equal(s.size, 0);
    fk_gguf_close(g);
}

static void test_arrays(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t first, second;
    } integers[] = {{"golden.u8s", 0, 255},
                    {"golden.i8s", -128, 127},
                    {"golden.u16s", 1, 65535},
                    {"golden.i16s", -32768, 5},
                    {"golden.u32s", 7, 4294967295},
                    {"golden.i32s", INT32_MIN, INT32_MAX},
                    {"golden.u64s", 3, INT64_MIN}, /* 2^63, to be cast back */
                    {"golden.i64s", INT64_MIN, INT64_MAX},
                    {"golden.bools", 1, 0}};
    fk_gguf *g = open_golden();
    fk_gguf_array a;
    const fk_gguf_string *strings;
    size_t count;
    for (size_t k = 0; k < sizeof integers / sizeof integers[0]; k++) {
        assert_int_equal(fk_gguf_get_integers(g, integers[k].key, &a), FK_OK);
        assert_int_equal(a.count, a.type == FK_GGUF_BOOL ? 3 : 2);
        assert_true(fk_gguf_array_i64(&a, 0) == integers[k].first);
        assert_true(fk_gguf_array_i64(&a, 1) == integers[k].second);
    }
    assert_int_equal(fk_gguf_get_numbers(g, "golden.f32s", &a), FK_OK);
    assert_true(fk_gguf_array_f64(&a, 0) == 0.5 && fk_gguf_array_f64(&a, 1) == -3.0);
    assert_int_equal(fk_gguf_get_numbers(g, "golden.f64s", &a), FK_OK);
    assert_true(fk_gguf_array_f64(&a, 0) == 0.1 && fk_gguf_array_f64(&a, 1) == 1e300);
    assert_int_equal(fk_gguf_get_numbers(g, "golden.u64s", &a), FK_OK);
    assert_true(fk_gguf_array_f64(&a, 1) == 0x1p63);
    assert_int_equal(fk_gguf_get_strings(g, "golden.strings", &strings, &count), FK_OK);
    assert_int_equal(count, 4);
    assert_memory_equal(strings[0].data, "a", 1);
    assert_int_equal(strings[1].size, 0);
    assert_int_equal(strings[2].size, strlen("äöü"));
    assert_memory_equal(strings[2].data, "äöü", strings[2].size);
    assert_int_equal(strings[3].size, 70);
    fk_gguf_close(g);
}

static void test_wrong_getters(void **state)
{
    (void)state;
    fk_gguf *g = open_golden();
    uint64_t u = 17;
    int64_t i;
    double d;
    bool b;
    fk_gguf_string s;
    fk_gguf_array a;
    const fk_gguf_string *strings;
    const fk_gguf_tensor *t;
    size_t count;
    assert_int_equal(fk_gguf_get_u64(g, "golden.u9", &u), FK_ERROR_MISSING);
    assert_message("gguf_small.gguf");
    assert_message("golden.u9");
    assert_int_equal(fk_gguf_get_u64(g, "golden.string", &u), FK_ERROR_INVALID);
    assert_message("'golden.string' has type string, not an integer");
    assert_int_equal(u, 17);
    assert_int_equal(fk_gguf_get_i64(g, "golden.true", &i), FK_ERROR_INVALID);
    assert_int_equal(fk_gguf_get_i64(g, "golden.f32", &i), FK_ERROR_INVALID);
    assert_int_equal(fk_gguf_get_f64(g, "golden.u8s", &d), FK_ERROR_INVALID);
    assert_message("array of u8");
    assert_int_equal(fk_gguf_get_bool(g, "golden.u8", &b), FK_ERROR_INVALID);
    assert_int_equal(fk_gguf_get_string(g, "golden.strings", &s), FK_ERROR_INVALID);
    assert_int_equal(fk_gguf_get_strings(g, "golden.string", &strings, &count), FK_ERROR_INVALID);
    assert_int_equal(fk_gguf_get_strings(g, "golden.u8s", &strings, &count), FK_ERROR_INVALID);
    assert_int_equal(fk_gguf_get_integers(g, "golden.f32s", &a), FK_ERROR_INVALID);
    assert_int_equal(fk_gguf_get_numbers(g, "golden.strings", &a), FK_ERROR_INVALID);
    assert_int_equal(fk_gguf_get_numbers(g, "golden.nested", &a), FK_ERROR_INVALID);
    assert_message("array of array");
    assert_int_equal(fk_gguf_find(g, "plain.f33", &t), FK_ERROR_MISSING);
    assert_message("plain.f33");
    fk_gguf_close(g);
}

/* The same bits; a NaN, which infinite and NaN scales make, may have another sign and payload. */
static void assert_same_values(const char *name, const float *values, const float *expected, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        bool nan = expected[i] != expected[i];
        if (nan ? values[i] == values[i] : memcmp(&values[i], &expected[i], sizeof *values) != 0)
            fail_msg("%s: element %lld is %a, not %a", name, (long long)i, (double)values[i], (double)expected[i]);
    }
}

/* Every dequantised tensor has the bits that the Python package gives, however its rows are split. */
static void test_dequantized_bits(void **state)
{
    (void)state;
    fk_gguf *g = open_golden();
    fk_safetensors *golden;
    assert_ok(fk_safetensors_open(GOLDENS "gguf_small.safetensors", &golden));
    assert_string_equal(fk_safetensors_metadata(golden, "gguf"), "0.19.0");
    assert_int_equal(fk_safetensors_count(golden), 26);
    for (size_t k = 0; k < fk_safetensors_count(golden); k++) {
        const fk_safetensors_entry *e = fk_safetensors_at(golden, k);
        const fk_gguf_tensor *t;
        int64_t rows = 1, cols = e->tensor.shape[e->tensor.ndim - 1];
        assert_int_equal(e->tensor.dtype, FK_F32);
        assert_int_equal(fk_gguf_find(g, e->name, &t), FK_OK);
        assert_int_equal(t->ndim, e->tensor.ndim);
        assert_memory_equal(t->shape, e->tensor.shape, (size_t)t->ndim * sizeof t->shape[0]);
        for (int i = 0; i + 1 < t->ndim; i++) rows *= t->shape[i];
        size_t nbytes = fk_tensor_nbytes(&e->tensor);
        assert_true(nbytes > 0);
        float *out = malloc(nbytes);
        for (int64_t step = 1; step <= rows; step++) {
            memset(out, 0xee, nbytes);
            for (int64_t at = 0; at < rows; at += step) {
                int64_t end = at + step < rows ? at + step : rows;
                assert_int_equal(fk_gguf_dequantize(g, t, at, end, out + at * cols), FK_OK);
            }
            assert_same_values(e->name, out, e->tensor.data, rows * cols);
        }
        assert_int_equal(fk_gguf_dequantize(g, t, 0, rows + 1, out), FK_ERROR_INVALID);
        assert_message(e->name);
        assert_int_equal(fk_gguf_dequantize(g, t, rows, rows, out), FK_OK);
        free(out);
    }
    fk_safetensors_close(golden);
    fk_gguf_close(g);
}

static void test_views(void **state)
{
    (void)state;
    fk_gguf *g = open_golden();
    const fk_gguf_tensor *t;
    fk_tensor view;
    float out[256];
    assert_int_equal(fk_gguf_tensor_count(g), 28);
    assert_string_equal(fk_gguf_tensor_at(g, 0)->name, "plain.f32");
    assert_int_equal(fk_gguf_find(g, "plain.f32", &t), FK_OK);
    assert_int_equal(fk_gguf_view(g, t, &view), FK_OK);
    assert_int_equal(view.dtype, FK_F32);
    assert_true(view.ndim == 2 && view.shape[0] == 3 && view.shape[1] == 5 && view.data == t->data);
    assert_int_equal(fk_gguf_find(g, "other.i32", &t), FK_OK);
    assert_int_equal(fk_gguf_view(g, t, &view), FK_OK);
    assert_int_equal(view.dtype, FK_I32);
    assert_int_equal(((const int32_t *)view.data)[0], -3);
    assert_int_equal(fk_gguf_dequantize(g, t, 0, 1, out), FK_ERROR_UNSUPPORTED);
    assert_message("'other.i32' has type I32 (26)");
    assert_int_equal(fk_gguf_find(g, "cube.q8_0", &t), FK_OK);
    assert_int_equal(fk_gguf_view(g, t, &view), FK_OK);
    assert_int_equal(view.dtype, FK_U8);
    assert_true(view.ndim == 3 && view.shape[0] == 2 && view.shape[1] == 3 && view.shape[2] == 34);
    assert_int_equal(fk_gguf_find(g, "other.q2_k", &t), FK_OK);
    assert_int_equal(t->nbytes, 168);
    assert_int_equal(fk_gguf_view(g, t, &view), FK_ERROR_UNSUPPORTED);
    assert_message("gguf_small.gguf");
    assert_message("'other.q2_k' has type Q2_K (10)");
    assert_int_equal(fk_gguf_dequantize(g, t, 0, 1, out), FK_ERROR_UNSUPPORTED);
    fk_gguf_close(g);
}

/* ---- hostile files ---- */

/* A good file, and where its fields stand. */
typedef struct good_file {
    bytes b;
    size_t magic, version, tensor_count, key_count;
    size_t alignment_type, alignment, bool_value, key_length, string_length;
    size_t array_type, array_count, array_string_length, numbers_count;
    size_t name_length, name, ndim, dim0, dim1, type, offset, second_offset;
    size_t end_of_header;
} good_file;

static void put_string(bytes *b, const char *text)
{
    bytes_put_uint(b, strlen(text), 8);
    bytes_put_text(b, text);
}

static good_file make_good(void)
{
    good_file f = {0};
    bytes *b = &f.b;
    bytes_put_text(b, "GGUF");
    f.version = b->size;
    bytes_put_uint(b, 2, 4);
    f.tensor_count = b->size;
    bytes_put_uint(b, 2, 8);
    f.key_count = b->size;
    bytes_put_uint(b, 5, 8);
    put_string(b, "general.alignment");
    f.alignment_type = b->size;
    bytes_put_uint(b, FK_GGUF_U32, 4);
    f.alignment = b->size;
    bytes_put_uint(b, 32, 4);
    put_string(b, "flag");
    bytes_put_uint(b, FK_GGUF_BOOL, 4);
    f.bool_value = b->size;
    bytes_put_uint(b, 1, 1);
    f.key_length = b->size;
    put_string(b, "text");
    bytes_put_uint(b, FK_GGUF_STRING, 4);
    f.string_length = b->size;
    put_string(b, "hello");
    put_string(b, "words");
    bytes_put_uint(b, FK_GGUF_ARRAY, 4);
    f.array_type = b->size;
    bytes_put_uint(b, FK_GGUF_STRING, 4);
    f.array_count = b->size;
    bytes_put_uint(b, 2, 8);
    f.array_string_length = b->size;
    put_string(b, "one");
    put_string(b, "two");
    put_string(b, "numbers");
    bytes_put_uint(b, FK_GGUF_ARRAY, 4);
    bytes_put_uint(b, FK_GGUF_U16, 4);
    f.numbers_count = b->size;
    bytes_put_uint(b, 3, 8);
    bytes_put_fill(b, 1, 6);
    f.name_length = b->size;
    bytes_put_uint(b, 1, 8);
    f.name = b->size;
    bytes_put_text(b, "w");
    f.ndim = b->size;
    bytes_put_uint(b, 2, 4);
    f.dim0 = b->size;
    bytes_put_uint(b, 32, 8);
    f.dim1 = b->size;
    bytes_put_uint(b, 2, 8);
    f.type = b->size;
    bytes_put_uint(b, FK_Q_Q8_0, 4);
    f.offset = b->size;
    bytes_put_uint(b, 0, 8);
    put_string(b, "v");
    bytes_put_uint(b, 1, 4);
    bytes_put_uint(b, 3, 8);
    bytes_put_uint(b, FK_Q_F32, 4);
    f.second_offset = b->size;
    bytes_put_uint(b, 96, 8);
    f.end_of_header = b->size;
    bytes_put_fill(b, 0, (32 - b->size % 32) % 32);
    bytes_put_fill(b, 0x3c, 96 + 12); /* w: 68 bytes and padding; v: 12 */
    return f;
}

static void test_patched_fields(void **state)
{
    (void)state;
    const good_file f = make_good();
    const struct {
        const char *what;
        size_t at;
        uint64_t value;
        size_t size;
        const char *needle;
    } cases[] = {
        {"other magic", f.magic, 0x20202020, 4, "not a GGUF file: it begins with bytes 20 20 20 20"},
        {"version 0", f.version, 0, 4, "GGUF version 0"},
        {"version 1", f.version, 1, 4, "GGUF version 1, supported are 2 and 3"},
        {"version 4", f.version, 4, 4, "GGUF version 4"},
        {"byte-swapped version 3", f.version, 0x03000000, 4, "big-endian"},
        {"2^64 - 1 tensors", f.tensor_count, UINT64_MAX, 8, "tensor count 18446744073709551615"},
        {"2^40 tensors", f.tensor_count, 1ull << 40, 8, "tensor count 1099511627776"},
        {"one tensor too many", f.tensor_count, 3, 8, "tensor 'v': 12 bytes at offset 96 go past the end"},
        {"2^63 keys", f.key_count, 1ull << 63, 8, "metadata count 9223372036854775808"},
        {"one key too many", f.key_count, 6, 8, "tensor 1 of 2: truncated: tensor name needs"},
        {"alignment 2^30", f.alignment, 1u << 30, 4, "'general.alignment' is 1073741824"},
        {"alignment 3", f.alignment, 3, 4, "'general.alignment' is 3,"},
        {"alignment 0", f.alignment, 0, 4, "'general.alignment' is 0,"},
        {"alignment of type f32", f.alignment_type, FK_GGUF_F32, 4,
         "'general.alignment' has type f32, not u32"},
        {"boolean 2", f.bool_value, 2, 1, "metadata 'flag': boolean with value 2"},
        {"key length 2^64 - 1", f.key_length, UINT64_MAX, 8, "metadata key needs 18446744073709551615 bytes"},
        {"string past the end", f.string_length, 1000, 8,
         "metadata 'text': truncated: string needs 1000 bytes"},
        {"string length 2^63", f.string_length, 1ull << 63, 8, "needs 9223372036854775808 bytes"},
        {"array length 2^63", f.array_count, 1ull << 63, 8,
         "metadata 'words': array of 9223372036854775808 elements of type string"},
        {"array length 2^61, whose bytes wrap", f.array_count, 1ull << 61, 8, "array of 2305843009213693952"},
        {"number array length 2^63", f.numbers_count, 1ull << 63, 8,
         "metadata 'numbers': array of 9223372036854775808 elements of type u16"},
        {"array of unknown type", f.array_type, 13, 4, "metadata 'words': unknown value type 13"},
        {"array string length 2^64 - 8", f.array_string_length, UINT64_MAX - 7, 8, "array string needs"},
        {"name length 2^64 - 1", f.name_length, UINT64_MAX, 8, "tensor name needs"},
        {"NUL in a name", f.name, 0, 1, "tensor name '\\x00' contains a NUL byte"},
        {"5 dimensions", f.ndim, 5, 4, "tensor 'w': 5 dimensions"},
        {"2^32 - 1 dimensions", f.ndim, UINT32_MAX, 4, "4294967295 dimensions"},
        {"dimension above 2^63", f.dim0, (1ull << 63) + 32, 8,
         "tensor 'w': dimension 0 is 9223372036854775840"},
        {"product wraps", f.dim1, 1ull << 60, 8, "tensor 'w': the product of its dimensions"},
        {"bytes wrap", f.dim1, (1ull << 58) - 1, 8, "tensor 'w': its size in bytes overflows"},
        {"row no multiple of the block", f.dim0, 33, 8, "tensor 'w': rows of 33 elements"},
        {"more rows than the file holds", f.dim1, 1000, 8,
         "tensor 'w': 34000 bytes at offset 0 go past the end"},
        {"offset out of the file", f.offset, 1u << 20, 8,
         "tensor 'w': 68 bytes at offset 1048576 go past the end"},
        {"offset that wraps", f.offset, UINT64_MAX - 31, 8, "at offset 18446744073709551584 go past the end"},
        {"offset misaligned", f.offset, 16, 8, "tensor 'w': offset 16 is no multiple of the alignment 32"},
        {"overlap", f.second_offset, 64, 8, "tensor 'v' at offset 64 overlaps tensor 'w'"},
        {"end past the file", f.offset, 64, 8,
         "tensor 'w': 68 bytes at offset 64 go past the end of the 108 bytes"},
    };
    assert_int_equal(hostile_try(read_gguf, &f.b), FK_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes bad = bytes_copy(&f.b);
        bytes_set_uint(&bad, cases[i].at, cases[i].value, cases[i].size);
        hostile_refused(read_gguf, &bad, cases[i].what, cases[i].needle);
        bytes_free(&bad);
    }
    bytes good = f.b;
    bytes_free(&good);
}

static bytes start_file(uint64_t tensors, uint64_t keys)
{
    bytes b = {0};
    bytes_put_text(&b, "GGUF");
    bytes_put_uint(&b, 3, 4);
    bytes_put_uint(&b, tensors, 8);
    bytes_put_uint(&b, keys, 8);
    return b;
}

static void put_tensor(bytes *b, const char *name, uint64_t dim, uint32_t type, uint64_t offset)
{
    put_string(b, name);
    bytes_put_uint(b, 1, 4);
    bytes_put_uint(b, dim, 8);
    bytes_put_uint(b, type, 4);
    bytes_put_uint(b, offset, 8);
}

static void test_built_files(void **state)
{
    (void)state;
    bytes b = {0};
    hostile_refused(read_gguf, &b, "empty file", "truncated: magic needs 4 bytes");

    b = start_file(0, 0);
    assert_int_equal(hostile_try(read_gguf, &b), FK_OK); /* nothing in it, but valid */
    bytes_free(&b);

    b = start_file(0, 2);
    for (int i = 0; i < 2; i++) {
        put_string(&b, "twice");
        bytes_put_uint(&b, FK_GGUF_U8, 4);
        bytes_put_uint(&b, 7, 1);
    }
    hostile_refused(read_gguf, &b, "duplicate key", "metadata 'twice' occurs twice");
    bytes_free(&b);

    b = start_file(2, 0);
    for (int i = 0; i < 2; i++) put_tensor(&b, "same", 8, FK_Q_F32, 32 * (uint64_t)i);
    bytes_put_fill(&b, 0, 128);
    hostile_refused(read_gguf, &b, "duplicate tensor", "tensor 'same' occurs twice");
    bytes_free(&b);

    b = start_file(0, 1);
    put_string(&b, "deep");
    bytes_put_uint(&b, FK_GGUF_ARRAY, 4);
    for (int i = 0; i < 100000; i++) {
        bytes_put_uint(&b, FK_GGUF_ARRAY, 4);
        bytes_put_uint(&b, 1, 8);
    }
    hostile_refused(read_gguf, &b, "nested arrays", "metadata 'deep': arrays nested deeper than 4 levels");
    bytes_free(&b);

    b = start_file(1, 0);
    put_tensor(&b, "\x1b[31mred\n", 8, FK_Q_F32, 1);
    bytes_put_fill(&b, 0, 128);
    hostile_refused(read_gguf, &b, "control bytes in a name", "tensor '\\x1b[31mred\\x0a': offset 1");
    bytes_free(&b);
}

/* A type that is not known: the file opens, the other tensors work, using this one is an error. */
static void test_unknown_type(void **state)
{
    (void)state;
    bytes b = start_file(2, 0);
    put_tensor(&b, "future", 8, 77, 0);
    put_tensor(&b, "empty", 0, FK_Q_F32, 32);
    while (b.size % 32 != 0) bytes_put_fill(&b, 0, 1);
    bytes_put_fill(&b, 0, 32);
    assert_int_equal(hostile_try(read_gguf, &b), FK_OK);
    fk_gguf *g;
    fk_tensor view;
    const fk_gguf_tensor *t;
    float out[8];
    assert_int_equal(fkp_gguf_open_bytes(b.data, b.size, "future.gguf", &g), FK_OK);
    assert_int_equal(fk_gguf_find(g, "future", &t), FK_OK);
    assert_int_equal(fk_gguf_view(g, t, &view), FK_ERROR_UNSUPPORTED);
    assert_message("future.gguf: tensor 'future' has type unknown (77)");
    assert_int_equal(fk_gguf_dequantize(g, t, 0, 1, out), FK_ERROR_UNSUPPORTED);
    assert_int_equal(fk_gguf_find(g, "empty", &t), FK_OK);
    assert_int_equal(fk_gguf_view(g, t, &view), FK_OK);
    assert_int_equal(fk_gguf_dequantize(g, t, 0, 1, out), FK_OK); /* one row of no elements */
    fk_gguf_close(g);
    bytes_free(&b);
}

static void test_cut_and_corrupted(void **state)
{
    (void)state;
    good_file f = make_good();
    hostile_truncations(read_gguf, &f.b, f.b.size);
    size_t refused = hostile_corruptions(read_gguf, &f.b, f.end_of_header);
    assert_true(refused >
                f.end_of_header); /* of 11 attempts per byte; changed text and numbers are accepted */
    bytes_free(&f.b);

    fkp_file_map map;
    assert_int_equal(fkp_file_map_open(&map, GOLDENS "gguf_small.gguf"), FK_OK);
    bytes golden = {0};
    bytes_put(&golden, map.data, map.size);
    fkp_file_map_close(&map);
    hostile_truncations(read_gguf, &golden, 4416 + 24); /* the end of the last tensor; then padding */
    assert_true(hostile_corruptions(read_gguf, &golden, 1728) > 1728);
    bytes_free(&golden);
}

/* Twice the tensors may take little more than twice the time. */
static double time_many(int count)
{
    bytes b = start_file((uint64_t)count, 0);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%d", (int)((unsigned)i * 2654435761u % 1000003u) * 4 + i % 4);
        put_tensor(&b, name, 0, FK_Q_F32, 0);
    }
    while (b.size % 32 != 0) bytes_put_fill(&b, 0, 1);
    fk_gguf *g;
    double start = hostile_seconds();
    fk_status status = fkp_gguf_open_bytes(b.data, b.size, "many.gguf", &g);
    double seconds = hostile_seconds() - start;
    assert_ok(status);
    fk_gguf_close(g);
    bytes_free(&b);
    return seconds;
}

static void test_many_tensors(void **state)
{
    (void)state;
    double few = time_many(50000), many = time_many(200000);
    print_message("50,000 tensors: %.0f ms, 200,000: %.0f ms\n", few * 1e3, many * 1e3);
    assert_true(many < 10 * few + 0.05);
}

static void test_bad_paths(void **state)
{
    (void)state;
    fk_gguf *g;
    assert_int_equal(fk_gguf_open("/nonexistent/x.gguf", &g), FK_ERROR_MISSING);
    assert_message("cannot open '/nonexistent/x.gguf': No such file or directory (errno 2)");
    assert_int_equal(fk_gguf_open("/", &g), FK_ERROR_INVALID);
    assert_message("'/' is a directory");
    assert_int_equal(fk_gguf_open("/dev/zero", &g), FK_ERROR_INVALID);
    assert_message("'/dev/zero' is a device");
    fk_gguf_close(NULL);
}

/* ---- the real model ---- */

/* The hash of tools/reference/gguf_golden.py. */
static uint64_t polynomial_hash(uint64_t hash, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, &values[i], sizeof word);
        hash = hash * 0x100000001b3u + word;
    }
    return hash;
}

static uint64_t hash_tensor(const fk_gguf *g, const fk_gguf_tensor *t)
{
    int64_t rows = 1, cols = t->shape[t->ndim - 1];
    for (int i = 0; i + 1 < t->ndim; i++) rows *= t->shape[i];
    uint64_t hash = 0;
    float *row = malloc((size_t)cols * sizeof *row);
    for (int64_t r = 0; r < rows; r++) {
        assert_int_equal(fk_gguf_dequantize(g, t, r, r + 1, row), FK_OK);
        hash = polynomial_hash(hash, row, cols);
    }
    free(row);
    return hash;
}

static void test_real_model(void **state)
{
    (void)state;
    char path[4096], line[512];
    if (fk_asset_path("smollm2-135m", NULL, path, sizeof path) != FK_OK) {
        print_message("SKIPPED: %s\n", fk_error_message());
        skip();
    }
    fk_gguf *g;
    const fk_gguf_string *tokens;
    size_t count, compared = 0;
    uint64_t blocks;
    double start = hostile_seconds();
    assert_ok(fk_gguf_open(path, &g));
    print_message("opened in %.1f ms\n", (hostile_seconds() - start) * 1e3);
    assert_int_equal(fk_gguf_get_strings(g, "tokenizer.ggml.tokens", &tokens, &count), FK_OK);
    assert_int_equal(count, 49152);
    assert_int_equal(fk_gguf_get_u64(g, "llama.block_count", &blocks), FK_OK);
    assert_int_equal(blocks, 30);

    FILE *golden = fopen(GOLDENS SMOLLM2 ".hashes.tsv", "r");
    assert_non_null(golden);
    while (fgets(line, sizeof line, golden)) {
        char name[128], type[16], shape[64];
        unsigned long long expected;
        const fk_gguf_tensor *t;
        if (line[0] == '#') continue;
        assert_int_equal(sscanf(line, "%127s %15s %63s %llx", name, type, shape, &expected), 4);
        assert_int_equal(fk_gguf_find(g, name, &t), FK_OK);
        assert_string_equal(fk_qtype_describe(t->type)->name, type);
        uint64_t hash = hash_tensor(g, t);
        if (hash != expected)
            fail_msg("%s: hash %016llx, expected %016llx", name, (unsigned long long)hash, expected);
        compared++;
    }
    fclose(golden);
    assert_int_equal(compared, 272);
    assert_int_equal(compared, fk_gguf_tensor_count(g));
    fk_gguf_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_wrong_getters),
        cmocka_unit_test(test_dequantized_bits),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_patched_fields),
        cmocka_unit_test(test_built_files),
        cmocka_unit_test(test_unknown_type),
        cmocka_unit_test(test_cut_and_corrupted),
        cmocka_unit_test(test_many_tensors),
        cmocka_unit_test(test_bad_paths),
        cmocka_unit_test(test_real_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
