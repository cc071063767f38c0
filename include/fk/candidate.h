/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a candidate kernel needs, in one header. A candidate is a file <op>.c or <op>.cu:
 *
 *   #include <fk/candidate.h>
 *
 *   FK_CANDIDATE(silu_and_mul)              // int candidate(const fk_silu_and_mul_args *a)
 *   {
 *       ... compute into a->result->data ...
 *       return 0;                           // or return fk_candidate_error("says why");
 *   }
 *
 * The macro writes the exported symbol __tvm_ffi_silu_and_mul with the packed calling convention of Apache TVM FFI, so that
 * the same shared library is judged and served here and loaded by tvm_ffi.load_module in Python. Arguments arrive in the
 * order of the operator's .def, outputs among them; tensors as DLTensor pointers or tensor objects. Memory belongs to the
 * caller. A candidate neither synchronizes nor allocates (take fk_candidate_scratch), and launches on
 * fk_candidate_stream. Nothing here needs a library of ours at link time. */
#ifndef FK_CANDIDATE_H
#define FK_CANDIDATE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <fk/half.h>
#include <fk/op_layout.h>
#include <fk/ops.h>
#include <fk/tvm_ffi.h>

#ifdef __cplusplus
#define FK_EXTERN_C extern "C"
#else
#define FK_EXTERN_C extern
#endif
#define FK_EXPORT FK_EXTERN_C __attribute__((visibility("default")))

#include "fk/op_tables.h"

/* What a candidate says about itself: found as the symbol fk_candidate_note_<op>. */
#define FK_CANDIDATE_MAGIC 0x464b4331u /* "FKC1" */
#define FK_CANDIDATE_ABI 1u
typedef struct fk_candidate_note {
    uint32_t magic, abi;
    const char *op;
    const char *signature; /* the .def's fields as text; a different one is refused, and the difference shown */
} fk_candidate_note;

/* Raises an error with this message in the caller (a Python exception there); returns -1 for `return`. */
static inline int fk_candidate_error(const char *message)
{
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", message);
    return -1;
}

/* The stream to launch on: cudaStream_t on a CUDA device, NULL on the CPU. */
static inline void *fk_candidate_stream(const fk_tensor *t)
{
    return TVMFFIEnvGetStream(t->device.type, t->device.id);
}

/* Memory on the device of `like` until fk_scratch_free; it is the caller's arena and costs no allocation. */
typedef struct fk_scratch {
    void *data;
    TVMFFIObjectHandle object;
} fk_scratch;

static inline int fk_scratch_alloc(const fk_tensor *like, int64_t bytes, fk_scratch *out)
{
    int64_t shape[1] = {bytes};
    fk_tensor prototype = {NULL, FK_U8, 1, like->device, {bytes}, {1}};
    DLTensor wanted = fk_tensor_to_dlpack(&prototype);
    wanted.shape = shape;
    if (TVMFFIEnvTensorAlloc(&wanted, &out->object) != 0) return fk_candidate_error("no scratch memory");
    out->data = (char *)fk_ffi_tensor(out->object)->data + fk_ffi_tensor(out->object)->byte_offset;
    return 0;
}

static inline void fk_scratch_free(fk_scratch *scratch)
{
    if (scratch->object) TVMFFIObjectDecRef(scratch->object);
    scratch->object = NULL;
}

/* Packed arguments -> args struct. `tensors` gives a view's storage to each field. */
static inline int fk_candidate_unpack(const char *op, const fk_field *fields, int num_fields, const TVMFFIAny *values,
                                      int32_t num_values, void *args, fk_tensor *tensors)
{
    char text[256];
    if (num_values != num_fields) {
        snprintf(text, sizeof text, "%s takes %d arguments, not %d", op, num_fields, (int)num_values);
        TVMFFIErrorSetRaisedFromCStr("TypeError", text);
        return -1;
    }
    size_t end = 0;
    for (int i = 0; i < num_fields; i++) {
        const fk_field *f = &fields[i];
        const TVMFFIAny *v = &values[i];
        void *field = (char *)args + fk_field_place(f, &end);
        if (fk_field_is_tensor(f)) {
            const DLTensor *t = v->type_index == kTVMFFIDLTensorPtr ? (const DLTensor *)v->v_ptr
                                : v->type_index == kTVMFFITensor    ? fk_ffi_tensor(v->v_obj)
                                                                    : NULL;
            fk_tensor *view = NULL;
            if (t && fk_tensor_from_dlpack(t, &tensors[i])) view = &tensors[i];
            else if (t || v->type_index != kTVMFFINone || !f->optional) goto wrong;
            memcpy(field, &view, sizeof view);
        } else if (f->attr_type == FK_ATTR_float) {
            float x = (float)(v->type_index == kTVMFFIFloat ? v->v_float64 : (double)v->v_int64);
            if (v->type_index != kTVMFFIFloat && v->type_index != kTVMFFIInt) goto wrong;
            memcpy(field, &x, sizeof x);
        } else if (f->attr_type == FK_ATTR_int) {
            if (v->type_index != kTVMFFIInt && v->type_index != kTVMFFIBool) goto wrong;
            memcpy(field, &v->v_int64, sizeof v->v_int64);
        } else if (f->attr_type == FK_ATTR_bool) {
            bool x = v->v_int64 != 0;
            if (v->type_index != kTVMFFIBool && v->type_index != kTVMFFIInt) goto wrong;
            memcpy(field, &x, sizeof x);
        } else {
            const char *x = v->type_index == kTVMFFIRawStr     ? v->v_c_str
                            : v->type_index == kTVMFFISmallStr ? v->v_bytes
                            : v->type_index == kTVMFFIStr
                                ? ((const TVMFFIByteArray *)((const char *)v->v_obj + sizeof(TVMFFIObject)))->data
                                : NULL;
            if (!x) goto wrong;
            memcpy(field, &x, sizeof x);
        }
        continue;
    wrong:
        snprintf(text, sizeof text, "%s: argument %d (%s) has a value of the wrong type (tag %d)", op, i, f->name,
                 (int)v->type_index);
        TVMFFIErrorSetRaisedFromCStr("TypeError", text);
        return -1;
    }
    return 0;
}

/* Args struct -> packed arguments; `tensors` holds the DLTensors they point to. */
static inline void fk_candidate_pack(const fk_field *fields, int num_fields, const void *args, TVMFFIAny *values,
                                     DLTensor *tensors)
{
    size_t end = 0;
    for (int i = 0; i < num_fields; i++) {
        const fk_field *f = &fields[i];
        const void *field = (const char *)args + fk_field_place(f, &end);
        TVMFFIAny v;
        memset(&v, 0, sizeof v);
        if (fk_field_is_tensor(f)) {
            fk_tensor *t;
            memcpy(&t, field, sizeof t);
            if (t) {
                tensors[i] = fk_tensor_to_dlpack(t);
                v.type_index = kTVMFFIDLTensorPtr;
                v.v_ptr = &tensors[i];
            }
        } else if (f->attr_type == FK_ATTR_float) {
            v.type_index = kTVMFFIFloat;
            float x;
            memcpy(&x, field, sizeof x);
            v.v_float64 = x;
        } else if (f->attr_type == FK_ATTR_int) {
            v.type_index = kTVMFFIInt;
            memcpy(&v.v_int64, field, sizeof v.v_int64);
        } else if (f->attr_type == FK_ATTR_bool) {
            v.type_index = kTVMFFIBool;
            bool x;
            memcpy(&x, field, sizeof x);
            v.v_int64 = x;
        } else {
            v.type_index = kTVMFFIRawStr;
            memcpy(&v.v_c_str, field, sizeof v.v_c_str);
        }
        values[i] = v;
    }
}

#define FK_MAX_FIELDS 40

/* Calls a lower operator, "fk.<op>", as the caller's process provides it: the baseline here, what `import fastkernels`
 * registered in Python. Outputs are the args' own tensors. */
static inline int fk_candidate_call(const char *global, const fk_field *fields, int num_fields, const void *args)
{
    TVMFFIAny values[FK_MAX_FIELDS], result;
    DLTensor tensors[FK_MAX_FIELDS];
    TVMFFIByteArray name = {global, strlen(global)};
    TVMFFIObjectHandle function = NULL;
    memset(&result, 0, sizeof result);
    if (TVMFFIFunctionGetGlobal(&name, &function) != 0) return -1;
    if (!function) return fk_candidate_error("this process provides no lower operators");
    fk_candidate_pack(fields, num_fields, args, values, tensors);
    int status = TVMFFIFunctionCall(function, values, num_fields, &result);
    TVMFFIObjectDecRef(function);
    return status;
}

/* fk_lower_<op>(const fk_<op>_args *): 0, or -1 with the error raised. */
#define FKH_BEGIN(name, level, formula)                                                                              \
    static inline int fk_lower_##name(const fk_##name##_args *args)                                                  \
    {                                                                                                                \
        return fk_candidate_call("fk." #name, fk_##name##_fields,                                                    \
                                 (int)(sizeof fk_##name##_fields / sizeof fk_##name##_fields[0]), args);             \
    }
#include "fk/op_grammar.h"

/* Work over CPU threads: fn(user, begin, end) on parts of [0, count), none smaller than `grain` but the last, on the pool of
 * the process ("fk.parallel_for") where there is one, else in the caller. Returns when all parts are done. */
typedef void (*fk_range_fn)(void *user, int64_t begin, int64_t end);
static inline void fk_candidate_parallel(int64_t count, int64_t grain, fk_range_fn fn, void *user)
{
    TVMFFIByteArray name = {"fk.parallel_for", 15};
    TVMFFIObjectHandle function = NULL;
    TVMFFIAny values[4], result;
    if (count <= grain || TVMFFIFunctionGetGlobal(&name, &function) != 0 || !function) {
        fn(user, 0, count);
        return;
    }
    memset(values, 0, sizeof values);
    memset(&result, 0, sizeof result);
    values[0].type_index = values[1].type_index = kTVMFFIInt;
    values[0].v_int64 = count;
    values[1].v_int64 = grain;
    values[2].type_index = values[3].type_index = kTVMFFIOpaquePtr;
    memcpy(&values[2].v_ptr, &fn, sizeof fn);
    values[3].v_ptr = user;
    if (TVMFFIFunctionCall(function, values, 4, &result) != 0) fn(user, 0, count);
    TVMFFIObjectDecRef(function);
}

#define FK_CANDIDATE(name)                                                                                           \
    static int fk_candidate_##name(const fk_##name##_args *a);                                                       \
    FK_EXPORT const fk_candidate_note fk_candidate_note_##name;                                                      \
    const fk_candidate_note fk_candidate_note_##name = {FK_CANDIDATE_MAGIC, FK_CANDIDATE_ABI, #name,                 \
                                                        fk_##name##_signature};                                      \
    FK_EXPORT int __tvm_ffi_##name(void *self, const TVMFFIAny *values, int32_t num_values, TVMFFIAny *result);      \
    int __tvm_ffi_##name(void *self, const TVMFFIAny *values, int32_t num_values, TVMFFIAny *result)                 \
    {                                                                                                                \
        enum { num_fields = sizeof fk_##name##_fields / sizeof fk_##name##_fields[0] };                              \
        fk_##name##_args args;                                                                                       \
        fk_tensor tensors[num_fields];                                                                               \
        (void)self;                                                                                                  \
        result->type_index = kTVMFFINone;                                                                            \
        if (fk_candidate_unpack(#name, fk_##name##_fields, num_fields, values, num_values, &args, tensors) != 0)     \
            return -1;                                                                                               \
        return fk_candidate_##name(&args);                                                                           \
    }                                                                                                                \
    static int fk_candidate_##name(const fk_##name##_args *a)

#endif
