/* SPDX-License-Identifier: Apache-2.0 */
/* One fuzz target as a libFuzzer program; the build sets FUZZ_FUNCTION. */
#include "tests/fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_FUNCTION(data, size);
    return 0;
}
