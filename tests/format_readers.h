/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of model files as hostile_open: what they accept is read to the last byte, so that a view outside
 * of the file is seen by AddressSanitizer. Shared by the tests and the fuzzer. */
#ifndef FK_TESTS_FORMAT_READERS_H
#define FK_TESTS_FORMAT_READERS_H

#include <stddef.h>
#include <stdint.h>

#include <fk/status.h>

fk_status read_gguf(const uint8_t *data, size_t size);
fk_status read_safetensors(const uint8_t *data, size_t size);
fk_status read_json(const uint8_t *data, size_t size);

#endif
