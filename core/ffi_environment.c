/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libtvm_ffi that candidates import, as the fastkernels program provides them to the shared libraries it
 * loads: stream, errors, scratch memory, and lower operators as the global functions "fk.<op>". Linked into programs only
 * and exported from them; a Python process has libtvm_ffi's own. Objects are reference counted as there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fk/ctx.h>
#include <fk/tvm_ffi.h>

#include "core/candidate.h"
#include "core/threads.h"

#define EXPORT __attribute__((visibility("default")))

#define TYPE_FUNCTION 68
#define TYPE_TENSOR 70
#define STRONG_MASK 0xffffffffu

typedef struct function_object {
    TVMFFIObject header;
    const fk_op *op; /* NULL: parallel_for */
} function_object;

typedef struct tensor_object {
    TVMFFIObject header;
    DLTensor tensor; /* must follow the header: fk_ffi_tensor */
    int64_t shape[FK_MAX_NDIM], strides[FK_MAX_NDIM];
} tensor_object;

static void delete_object(void *self, int flags)
{
    (void)flags;
    free(self); /* a tensor's memory belongs to the context's arena and goes when the operator returns */
}

EXPORT void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id)
{
    fk_ctx *ctx = fkp_candidate_ctx();
    if (!ctx) return NULL;
    fk_device device = fk_ctx_device(ctx);
    return device.type == device_type && device.id == device_id ? fk_ctx_stream(ctx) : NULL;
}

EXPORT void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
{
    fkp_candidate_raise(kind ? kind : "Error", message ? message : "");
}

EXPORT void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **message_parts, int32_t num_parts)
{
    char text[1024] = "";
    size_t n = 0;
    for (int32_t i = 0; i < num_parts && n + 1 < sizeof text; i++)
        if (message_parts[i]) n += (size_t)snprintf(text + n, sizeof text - n, "%s", message_parts[i]);
    TVMFFIErrorSetRaisedFromCStr(kind, text);
}

EXPORT int TVMFFIObjectIncRef(TVMFFIObjectHandle obj)
{
    __atomic_fetch_add(&((TVMFFIObject *)obj)->combined_ref_count, 1, __ATOMIC_RELAXED);
    return 0;
}

EXPORT int TVMFFIObjectDecRef(TVMFFIObjectHandle obj)
{
    TVMFFIObject *object = obj;
    if (!object) return 0;
    uint64_t before = __atomic_fetch_sub(&object->combined_ref_count, 1, __ATOMIC_ACQ_REL);
    if ((before & STRONG_MASK) == 1 && object->deleter) object->deleter(object, 3);
    return 0;
}

EXPORT int TVMFFIEnvTensorAlloc(DLTensor *prototype, TVMFFIObjectHandle *out)
{
    fk_ctx *ctx = fkp_candidate_ctx();
    fk_tensor wanted;
    *out = NULL;
    if (!ctx || prototype->ndim < 0 || prototype->ndim > FK_MAX_NDIM || !fk_tensor_from_dlpack(prototype, &wanted)) {
        fkp_candidate_raise("ValueError", "TVMFFIEnvTensorAlloc: unusable prototype, or outside a call");
        return -1;
    }
    fk_tensor t = fk_ctx_tensor(ctx, wanted.dtype, wanted.ndim, wanted.shape);
    tensor_object *object = fk_tensor_present(&t) ? calloc(1, sizeof *object) : NULL;
    if (!object) {
        fkp_candidate_raise("MemoryError", fk_ctx_error(ctx));
        return -1;
    }
    memcpy(object->shape, t.shape, sizeof object->shape);
    memcpy(object->strides, t.strides, sizeof object->strides);
    object->header = (TVMFFIObject){.combined_ref_count = 1, .type_index = TYPE_TENSOR, .deleter = delete_object};
    object->tensor = fk_tensor_to_dlpack(&t);
    object->tensor.shape = object->shape;
    object->tensor.strides = object->strides;
    *out = object;
    return 0;
}

EXPORT int TVMFFIFunctionGetGlobal(const TVMFFIByteArray *name, TVMFFIObjectHandle *out)
{
    char found[128];
    *out = NULL; /* unknown names are no error: the caller sees NULL */
    if (name->size <= 3 || name->size >= sizeof found || memcmp(name->data, "fk.", 3) != 0) return 0;
    memcpy(found, name->data + 3, name->size - 3);
    found[name->size - 3] = 0;
    bool is_parallel_for = strcmp(found, "parallel_for") == 0;
    const fk_op *op = is_parallel_for ? NULL : fk_op_find(found);
    if (!op && !is_parallel_for) return 0;
    function_object *object = calloc(1, sizeof *object);
    if (!object) return 0;
    object->header = (TVMFFIObject){.combined_ref_count = 1, .type_index = TYPE_FUNCTION, .deleter = delete_object};
    object->op = op;
    *out = object;
    return 0;
}

/* (count, grain, fn, user): see fk_candidate_parallel. */
static int parallel_for(fk_ctx *ctx, const TVMFFIAny *args, int32_t num_args)
{
    fkp_range_fn fn;
    if (num_args != 4 || args[0].type_index != kTVMFFIInt || args[1].type_index != kTVMFFIInt ||
        args[2].type_index != kTVMFFIOpaquePtr || args[3].type_index != kTVMFFIOpaquePtr) {
        fkp_candidate_raise("TypeError", "fk.parallel_for takes (int count, int grain, pointer fn, pointer user)");
        return -1;
    }
    memcpy(&fn, &args[2].v_ptr, sizeof fn);
    fkp_parallel_for(fk_ctx_threads(ctx), args[0].v_int64, args[1].v_int64, fn, args[3].v_ptr);
    return 0;
}

EXPORT int TVMFFIFunctionCall(TVMFFIObjectHandle func, TVMFFIAny *args, int32_t num_args, TVMFFIAny *result)
{
    const function_object *object = func;
    fk_ctx *ctx = fkp_candidate_ctx();
    result->type_index = kTVMFFINone;
    if (!ctx || !object || object->header.type_index != TYPE_FUNCTION) {
        fkp_candidate_raise("RuntimeError", "TVMFFIFunctionCall: no function, or outside a candidate's call");
        return -1;
    }
    return object->op ? fkp_call_packed(ctx, object->op, args, num_args) : parallel_for(ctx, args, num_args);
}
