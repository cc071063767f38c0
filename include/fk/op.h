/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator is at run time: the field table that its .def expands to, its implementations, and how they are
 * found. Everything that needs to know an operator (checks, list, stubs, captures, candidates, docs) reads these tables. */
#ifndef FK_OP_H
#define FK_OP_H

#include <fk/status.h>
#include <fk/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_ctx fk_ctx;
typedef struct fk_op fk_op;

typedef enum fk_field_kind {
    FK_FIELD_OUT,     /* tensor the operator writes whole; allocated by the wrapper */
    FK_FIELD_OUT_MAX, /* like OUT, but how much of it counts depends on data: the shape is the bound; the .def defines the rest */
    FK_FIELD_INOUT,   /* tensor mutated in place */
    FK_FIELD_STATE,   /* tensor carried between calls (KV cache, recurrent state); mutated in place, not an argument of
                         the production module's forward */
    FK_FIELD_IN,      /* tensor read */
    FK_FIELD_CONTEXT, /* tensor read that production code takes from its forward context (block tables, lengths) */
    FK_FIELD_WEIGHT,  /* parameter of a module, by its checkpoint name */
    FK_FIELD_INIT,    /* scalar constructor argument of a module */
    FK_FIELD_CONFIG,  /* scalar of a module that production code reads from its config object */
    FK_FIELD_ATTR,    /* scalar argument of the call */
    FK_FIELD_CONTEXT_ATTR, /* scalar that production code takes from its forward context */
} fk_field_kind;

typedef enum fk_attr_type { FK_ATTR_bool = 1, FK_ATTR_int, FK_ATTR_float, FK_ATTR_string } fk_attr_type;

/* C types of attributes: int is int64_t, float is float, string is a NUL-terminated const char *. */
typedef bool fk_attr_ctype_bool;
typedef int64_t fk_attr_ctype_int;
typedef float fk_attr_ctype_float;
typedef const char *fk_attr_ctype_string;

/* Allowed dtypes: a mask of 1 << fk_dtype, or the dtype of another field. */
typedef struct fk_dtypes {
    uint32_t mask;
    const char *as;
} fk_dtypes;

typedef struct fk_field {
    const char *name;
    const char *shape;           /* "[..., D]": see core/shape.h; NULL for scalars */
    const char *dtypes_text;     /* as written in the .def, for people and signatures */
    const char *checkpoint_name; /* WEIGHT only */
    const char *default_text;    /* scalars: "FK_REQUIRED" or the default as written */
    const char *doc;
    fk_dtypes dtypes;
    fk_field_kind kind;
    fk_attr_type attr_type; /* scalars only */
    bool optional;
} fk_field;

static inline bool fk_field_is_tensor(const fk_field *f)
{
    return f->kind < FK_FIELD_INIT;
}

static inline bool fk_field_is_written(const fk_field *f)
{
    return f->kind <= FK_FIELD_STATE;
}

/* Arguments left out of a mirrored signature, each with its reason. */
typedef struct fk_omission {
    const char *name;
    const char *reason;
} fk_omission;

/* Work of one call: what the roofline is computed from. */
typedef struct fk_cost {
    double read_bytes;  /* bytes that must come from memory at least once */
    double write_bytes; /* bytes that must go to memory */
    double flops;       /* multiply and add count one each */
} fk_cost;

/* Deterministic random numbers for generated inputs (core/random.h). */
typedef struct fk_random fk_random;

typedef fk_status (*fk_run_fn)(fk_ctx *ctx, const void *args, void *user);

/* One way to compute an operator. `run` and `supports` get the operator's args struct (fk_<op>_args). */
typedef struct fk_impl {
    const char *op;
    const char *name; /* "avx2", "openblas", "cuda", "candidate": unique per operator and device */
    fk_device_type device;
    bool fused;       /* computes an L2/L3 operator without calling the door below */
    int priority;     /* the largest that supports the call wins */
    fk_run_fn run;
    bool (*supports)(const void *args); /* NULL: every valid call */
    void *user;
} fk_impl;

struct fk_op {
    int index; /* position in the registry */
    const char *name;
    const char *family; /* path of the .def below ops/, "norm/rms_norm.def": the folder is the family */
    int level;          /* 1 to 3 */
    bool is_module;     /* has a fk_<op>_module with weights and constructor arguments */
    const char *formula;
    const char *mirrors_library; /* "vllm"; NULL when nothing is mirrored */
    const char *mirrors_symbol;  /* "_C::rms_norm"; for classes the part before .forward */
    const fk_field *fields;
    int num_fields;
    size_t args_size;
    const char *signature; /* canonical text of the fields; candidates carry it (docs: ABI) */
    const char *const *uses; /* operators its composition calls, NULL-terminated; L2 and up */
    const fk_omission *omissions; /* ends with a NULL name */
    const char *accumulates; /* shape expression: terms summed into one output element */
    int roundings; /* roundings to the storage dtype on the longest path from input to output */
    fk_status (*reference)(fk_ctx *ctx, const void *args, void *user);
    /* Optional hooks of the reference file. */
    fk_cost (*cost)(const void *args); /* NULL: every tensor moves once, no flops */
    /* Preconditions beyond shapes and dtypes that can be seen without reading device data. */
    fk_status (*check)(fk_ctx *ctx, const void *args);
    /* Fills the tensors whose values have structure (indices, lengths, caches); host memory, called after every float
     * tensor got random values. `args` points to writable host tensors of the case. */
    void (*fill)(fk_random *random, const void *args);
    const char *const *cases; /* shapes worth checking: "T=7 D=64 epsilon=1e-6", NULL-terminated */
};

/* The registry: every operator of ops/ops.def in its order. */
int fk_op_count(void);
const fk_op *fk_op_at(int index);
/* NULL when unknown. */
const fk_op *fk_op_find(const char *name);
/* Index of a field, -1 when there is none. */
int fk_op_field(const fk_op *op, const char *field_name);
/* Offset of field `index` in the op's args struct: tensor fields are pointers, scalars their C type. */
size_t fk_op_field_offset(const fk_op *op, int index);
/* Address of field `index` inside `args`. */
static inline void *fk_op_field_ptr(const fk_op *op, const void *args, int index)
{
    return (char *)(uintptr_t)args + fk_op_field_offset(op, index);
}
/* The tensor of field `index`, NULL when absent. */
static inline fk_tensor *fk_op_tensor(const fk_op *op, const void *args, int index)
{
    return *(fk_tensor **)fk_op_field_ptr(op, args, index);
}
/* Work of a call: the op's own count, else every present tensor moved once. */
fk_cost fk_op_cost(const fk_op *op, const void *args);
/* A reference that is made of other operators: it runs on every device. One that computes itself runs on the CPU only. */
static inline bool fk_op_is_composition(const fk_op *op)
{
    return op->uses[0] != 0;
}
/* True when `name` is reachable over `uses` from op. */
bool fk_op_composed_of(const fk_op *op, const char *name);
/* 64-bit hash of the signature text. */
uint64_t fk_op_signature_hash(const fk_op *op);

#ifdef __cplusplus
}
#endif
#endif
