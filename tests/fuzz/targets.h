/* SPDX-License-Identifier: Apache-2.0 */
/* What is fuzzed: every reader of foreign bytes, as a function of bytes. A new one is a line here, its function, and seeds in
 * tests/fuzz/corpus/<name>/; the smoke test (tests/fuzz/smoke.c) and the libFuzzer programs (tools/fuzz) follow from that. */
#ifndef FK_TESTS_FUZZ_TARGETS_H
#define FK_TESTS_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#include <fk/status.h>

#include "tests/format_readers.h"

/* name, function, mutated copies that the smoke test makes of its seeds (those that go through files are slower) */
#define FUZZ_TARGETS(X)                                                                                      \
    X(gguf, read_gguf, 20000)                                                                                \
    X(safetensors, read_safetensors, 20000)                                                                  \
    X(json, read_json, 20000)                                                                                \
    X(index, fuzz_index, 2000)                                                                               \
    X(config, fuzz_config, 1000)                                                                             \
    X(generation_config, fuzz_generation_config, 2000)                                                       \
    X(scenario, fuzz_scenario, 5000)                                                                         \
    X(capture, fuzz_capture, 2000)                                                                           \
    X(detokenizer, fuzz_detokenizer, 5000)                                                                   \
    X(tokenizer_json, fuzz_tokenizer_json, 5000)                                                             \
    X(sentencepiece, fuzz_sentencepiece, 5000)                                                               \
    X(tiktoken, fuzz_tiktoken, 2000)

/* model.safetensors.index.json, beside two small shards with tensors x, y and z. */
fk_status fuzz_index(const uint8_t *data, size_t size);
/* config.json of tests/goldens/hf_folder: read, and the model built from the folder's weights. */
fk_status fuzz_config(const uint8_t *data, size_t size);
/* generation_config.json beside that folder's config.json. */
fk_status fuzz_generation_config(const uint8_t *data, size_t size);
/* A scenario in YAML. */
fk_status fuzz_scenario(const uint8_t *data, size_t size);
/* A capture of the operator whose name stands in it; @SIGNATURE@ is replaced by that operator's. */
fk_status fuzz_capture(const uint8_t *data, size_t size);
/* Token ids, two bytes each: streamed and whole text agree, and are valid UTF-8 where that is promised. */
fk_status fuzz_detokenizer(const uint8_t *data, size_t size);
/* tokenizer.json: read, texts encoded with what it says, and the ids decoded. */
fk_status fuzz_tokenizer_json(const uint8_t *data, size_t size);
/* The same of a SentencePiece model. */
fk_status fuzz_sentencepiece(const uint8_t *data, size_t size);
/* The same of a rank file. */
fk_status fuzz_tiktoken(const uint8_t *data, size_t size);

#endif
