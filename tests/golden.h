/* SPDX-License-Identifier: Apache-2.0 */
/* The golden file of a test program, one of tests/goldens/: opened before its tests, closed after them. */
#ifndef FK_TESTS_GOLDEN_H
#define FK_TESTS_GOLDEN_H

#include "unit.h"

#include "core/safetensors.h"

static fk_safetensors *golden;

static inline void golden_open(const char *file)
{
    char path[512];
    snprintf(path, sizeof path, FK_SOURCE_DIR "/tests/goldens/%s", file);
    assert_ok(fk_safetensors_open(path, &golden));
}

/* A group's tear-down. */
static inline int golden_close(void **state)
{
    (void)state;
    fk_safetensors_close(golden);
    return 0;
}

/* Values of a tensor with that many elements. */
static inline const void *golden_values(const char *name, fk_dtype dtype, int64_t count)
{
    fk_tensor t;
    assert_ok(fk_safetensors_find(golden, name, &t));
    assert_int_equal(t.dtype, dtype);
    assert_int_equal(fk_tensor_numel(&t), count);
    return t.data;
}

/* Values of "<prefix>.<dtype>", which says something about that dtype and may hold another; how many comes back in `count`. */
static inline const void *golden_about(const char *prefix, fk_dtype dtype, int64_t *count)
{
    char name[64];
    fk_tensor t;
    snprintf(name, sizeof name, "%s.%s", prefix, fk_dtype_name(dtype));
    assert_ok(fk_safetensors_find(golden, name, &t));
    *count = fk_tensor_numel(&t);
    return t.data;
}

#endif
