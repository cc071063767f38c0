/* SPDX-License-Identifier: Apache-2.0 */
/* Needs a function that nobody provides. */
#include <fk/candidate.h>

int no_such_function_anywhere(void);

FK_CANDIDATE(silu_and_mul)
{
    (void)a;
    return no_such_function_anywhere();
}
