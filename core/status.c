/* SPDX-License-Identifier: Apache-2.0 */
/* The message of the last failure, one per thread. */
#include <fk/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[2048];

const char *fk_status_name(fk_status status)
{
    static const char *const names[] = {"ok",     "invalid input",   "missing",     "unsupported", "input/output error",
                                        "memory", "device failure",  "candidate",   "interrupted", "internal error"};
    return (unsigned)status < sizeof names / sizeof names[0] ? names[status] : "unknown status";
}

fk_status fk_fail(fk_status status, const char *format, ...)
{
    char text[sizeof message]; /* the arguments may hold the old message */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(message, text, sizeof message);
    return status;
}

fk_status fk_fail_context(fk_status status, const char *format, ...)
{
    if (status == FK_OK) return status;
    char text[sizeof message];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    snprintf(text + used, sizeof text - used, ": %.*s", (int)(sizeof text - used), message); /* the tail may be cut */
    memcpy(message, text, sizeof message);
    return status;
}

const char *fk_error_message(void)
{
    return message;
}
