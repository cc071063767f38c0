/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes for boundary code: files, sockets, dlopen, device set-up, parsing. The message is written once, where
 * the failure happened, with the values that mattered; callers add one line of context. */
#ifndef FK_STATUS_H
#define FK_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fk_status {
    FK_OK = 0,
    FK_ERROR_INVALID,     /* bad input: a file, an argument, a shape (exit code 2) */
    FK_ERROR_MISSING,     /* something needed is not there: device, library, model, network (exit code 3) */
    FK_ERROR_UNSUPPORTED, /* valid, but this build or device cannot do it (exit code 3) */
    FK_ERROR_IO,          /* reading or writing failed: disk full, read-only (exit code 2) */
    FK_ERROR_MEMORY,      /* host or device memory ran out (exit code 3) */
    FK_ERROR_DEVICE,      /* a kernel or driver failed; the device context may be lost (exit code 4) */
    FK_ERROR_CANDIDATE,   /* a candidate kernel reported an error or broke its contract (exit code 1) */
    FK_ERROR_INTERRUPTED, /* stopped by the user (exit code 130) */
    FK_ERROR_INTERNAL     /* a bug of ours (exit code 4) */
} fk_status;

const char *fk_status_name(fk_status status);

/* Records the message of this thread and returns `status`, so that failing reads `return fk_fail(...)`. */
fk_status fk_fail(fk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "context: " before the message recorded; returns `status` unchanged. Does nothing when status is FK_OK. */
fk_status fk_fail_context(fk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The message of this thread's last failure; never NULL. Valid until the next failure. */
const char *fk_error_message(void);

/* Leaves the function with the status of `expr` when it is not FK_OK. The only macro of its kind. */
#define FK_TRY(expr)                                                                                                 \
    do {                                                                                                             \
        fk_status fk_try_status_ = (expr);                                                                           \
        if (fk_try_status_ != FK_OK) return fk_try_status_;                                                          \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
