/* SPDX-License-Identifier: Apache-2.0 */
/* What unit tests include first: cmocka with the headers it wants before it. */
#ifndef FK_TESTS_UNIT_H
#define FK_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fk/status.h>

/* The call succeeds, or the test shows its message. */
#define assert_ok(expr)                                                                                              \
    do {                                                                                                             \
        if ((expr) != FK_OK) fail_msg("%s: %s", #expr, fk_error_message());                                          \
    } while (0)

/* The error's message holds these words. */
#define assert_message(words)                                                                                        \
    do {                                                                                                             \
        if (!strstr(fk_error_message(), words)) fail_msg("'%s' does not say '%s'", fk_error_message(), words);       \
    } while (0)

#endif
