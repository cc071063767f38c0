/* SPDX-License-Identifier: Apache-2.0 */
/* What a context holds; for core/ctx.c and core/door.c only. */
#ifndef FK_CORE_CTX_INTERNAL_H
#define FK_CORE_CTX_INTERNAL_H

#include <fk/ctx.h>
#include <fk/door.h>

#include "core/arena.h"

#define FKP_MAX_HOOKS 4
#define FKP_MAX_IMPLS 8 /* implementations of one operator on one device */

/* State of one operator in one context, indexed like the registry. */
typedef struct fkp_op_state {
    fk_impl reference;        /* names the reference where an implementation is told to hooks */
    const fk_impl *impls[FKP_MAX_IMPLS]; /* the backend's, best first */
    int num_impls;
    const fk_impl *installed; /* candidate */
    const char *pin;          /* name of the only implementation allowed */
    int64_t reached, total;
} fkp_op_state;

struct fk_ctx {
    fk_ctx_options options;
    fk_backend *backend;
    void *stream;
    struct fk_communicator *communicator;
    fk_arena arena;
    fk_status status;
    char error[1024];
    const fk_hook *hooks[FKP_MAX_HOOKS];
    int num_hooks;
    fkp_op_state *ops;
    int depth;
    const fk_op *current; /* for messages */
    const char *path;
};

#endif
