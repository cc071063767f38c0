/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a candidate's shared library and standing it at the door. Used inside runners (bench), and in the process of
 * eval, run and serve for candidates that bench has passed. */
#ifndef FK_CORE_CANDIDATE_H
#define FK_CORE_CANDIDATE_H

#include <fk/ctx.h>
#include <fk/op.h>

typedef struct fk_candidate fk_candidate;

/* Opens `path` and looks up __tvm_ffi_<op>. Refused, with the reason: a file that does not load, no such symbol (those that
 * are there are named), another ABI version, a signature that differs from the .def's (the first difference is shown).
 * A library without our note (built by another tool) is taken by its symbol alone. */
fk_status fk_candidate_open(const char *path, const fk_op *op, fk_device_type device, fk_candidate **out);
void fk_candidate_close(fk_candidate *candidate);
/* For fk_door_install; lives as long as the candidate. */
const fk_impl *fk_candidate_impl(const fk_candidate *candidate);
/* False when the library carries no note with the signature. */
bool fk_candidate_has_note(const fk_candidate *candidate);

/* The context of the candidate call in progress on this thread, NULL outside; what the FFI functions serve. */
fk_ctx *fkp_candidate_ctx(void);
/* Message raised by the candidate call in progress; the FFI functions set it. */
void fkp_candidate_raise(const char *kind, const char *message);
/* Calls an operator of a lower level than the caller's with packed arguments, as "fk.<op>" does for candidates; 0 or -1 with the message raised. */
struct TVMFFIAny; /* fk/tvm_ffi.h */
int fkp_call_packed(fk_ctx *ctx, const fk_op *op, const struct TVMFFIAny *values, int32_t num_values);

#endif
