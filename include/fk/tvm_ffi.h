/* SPDX-License-Identifier: Apache-2.0 */
/* The part of Apache TVM FFI's C ABI that candidates and their callers share: 16-byte tagged values, the packed function
 * type, and the functions a candidate may import. They are provided by libtvm_ffi where a Python program loads the
 * candidate, and by the fastkernels program elsewhere. Facts of tvm/ffi/c_api.h 0.1; tests compare the layouts. */
#ifndef FK_TVM_FFI_H
#define FK_TVM_FFI_H

#include <fk/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TVM_FFI_C_API_H_
enum {
    kTVMFFINone = 0,
    kTVMFFIInt = 1,
    kTVMFFIBool = 2,
    kTVMFFIFloat = 3,
    kTVMFFIOpaquePtr = 4,
    kTVMFFIDLTensorPtr = 7,
    kTVMFFIRawStr = 8,
    kTVMFFISmallStr = 11,
    kTVMFFIStr = 65,
    kTVMFFITensor = 70
};

typedef struct TVMFFIObject {
    uint64_t combined_ref_count;
    int32_t type_index;
    uint32_t padding;
    void (*deleter)(void *self, int flags);
} TVMFFIObject;

typedef struct TVMFFIAny {
    int32_t type_index;
    uint32_t small_str_len; /* zero but for small strings */
    union {
        int64_t v_int64;
        double v_float64;
        void *v_ptr;
        const char *v_c_str;
        TVMFFIObject *v_obj;
        char v_bytes[8];
    };
} TVMFFIAny;

typedef struct TVMFFIByteArray {
    const char *data;
    size_t size;
} TVMFFIByteArray;

typedef void *TVMFFIObjectHandle;

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
int TVMFFIFunctionGetGlobal(const TVMFFIByteArray *name, TVMFFIObjectHandle *out);
int TVMFFIFunctionCall(TVMFFIObjectHandle func, TVMFFIAny *args, int32_t num_args, TVMFFIAny *result);
int TVMFFIObjectDecRef(TVMFFIObjectHandle obj);
#endif

#ifndef TVM_FFI_EXTRA_C_ENV_API_H_
void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);
int TVMFFIEnvTensorAlloc(DLTensor *prototype, TVMFFIObjectHandle *out);
#endif

typedef int (*fk_packed_fn)(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result);

/* The tensor inside a tensor object: it follows the header. */
static inline DLTensor *fk_ffi_tensor(TVMFFIObjectHandle object)
{
    return (DLTensor *)((char *)object + sizeof(TVMFFIObject));
}

#ifdef __cplusplus
}
#endif
#endif
