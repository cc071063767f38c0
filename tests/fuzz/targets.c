/* SPDX-License-Identifier: Apache-2.0 */
/* The fuzzed readers that want more than bytes: files around them, a model, a vocabulary. A broken promise aborts. */
#define _GNU_SOURCE
#include "tests/fuzz/targets.h"

#include <ftw.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fk/backend.h>
#include <fk/door.h>

#include "bench/cases.h"
#include "bench/scenario.h"
#include "core/safetensors_index.h"
#include "runtime/config.h"
#include "runtime/generation.h"
#include "runtime/hf_model.h"
#include "runtime/weights.h"
#include "tests/tiny_vocabulary.h"
#include "text/detokenizer.h"
#include "text/sentencepiece.h"
#include "text/tiktoken.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

#define GOLDEN_FOLDER FK_SOURCE_DIR "/tests/goldens/hf_folder"
#define INDEX_NAME "model.safetensors.index.json"

static volatile uint64_t sink; /* keeps the reads */

static void check(bool promise)
{
    if (!promise) abort();
}

static void must(fk_status status)
{
    if (status == FK_OK) return;
    fprintf(stderr, "fuzz target: %s\n", fk_error_message());
    abort();
}

/* ---- a folder for the files of this process */

static char folder[] = "/tmp/fk-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *path_of(const char *name)
{
    static bool made;
    static char path[400];
    if (!made) {
        check(mkdtemp(folder) != NULL);
        atexit(remove_folder);
        made = true;
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(path_of(name), "wb");
    check(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

static void read_bytes(const fk_tensor *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < fk_tensor_nbytes(t); i++) sum += ((const uint8_t *)t->data)[i];
    sink += sum;
}

/* ---- checkpoint index */

fk_status fuzz_index(const uint8_t *data, size_t size)
{
    static bool ready;
    static const char *const names[] = {"x", "y", "z"};
    if (!ready) {
        static float values[6] = {1, 2, 3, 4, 5, 6};
        const int64_t shape[2] = {3, 2};
        for (int i = 0; i < 3; i++) { /* x and y in a, z in b, x once more in c */
            const char *const files[] = {"a.safetensors", "b.safetensors", "c.safetensors"};
            fk_tensor t = fk_tensor_wrap(values, FK_F32, (fk_device){FK_CPU, 0}, 2, shape);
            fk_safetensors_entry entries[2] = {{i == 1 ? "z" : "x", t}, {"y", t}};
            must(fk_safetensors_write(path_of(files[i]), entries, i == 0 ? 2 : 1, NULL, 0));
        }
        ready = true;
    }
    fk_checkpoint *checkpoint;
    put(INDEX_NAME, data, size);
    fk_status status = fk_checkpoint_open(folder, &checkpoint);
    check((status == FK_OK) == (checkpoint != NULL));
    for (int i = 0; i < 3 && status == FK_OK; i++) {
        fk_tensor t;
        if (fk_checkpoint_find(checkpoint, names[i], &t) == FK_OK) read_bytes(&t);
    }
    fk_checkpoint_close(checkpoint);
    return status;
}

/* ---- model configs */

/* Answers with the golden folder's tensors. */
static fk_weight_source golden_weights(void)
{
    static fk_checkpoint *checkpoint;
    if (!checkpoint) must(fk_checkpoint_open(GOLDEN_FOLDER, &checkpoint));
    return fk_hf_source(checkpoint);
}

static fk_status build_model(const json_t *json)
{
    fk_backend *backend;
    fk_weights *weights;
    const fk_config *config = fk_config_from_json(json);
    const fk_model_class *class = fk_model_class_find(fk_config_string(config, "model_type"));
    check(class != NULL); /* fk_hf_config accepts no other */
    fk_weight_source source = golden_weights();
    must(fk_backend_get((fk_device){FK_CPU, 0}, &backend));
    must(fk_weights_create(backend, FK_F32, &source, 0, &weights));
    void *model = NULL;
    fk_model_info info;
    fk_status status = class->create(weights, config, &model, &info);
    if (status == FK_OK) check(model && info.vocab_size > 0 && info.max_position_embeddings > 0 && info.num_layers > 0);
    fk_weights_destroy(weights);
    return status;
}

fk_status fuzz_config(const uint8_t *data, size_t size)
{
    json_t *config;
    put("config.json", data, size);
    unlink(path_of("generation_config.json"));
    fk_status status = fk_hf_config(folder, &config);
    check((status == FK_OK) == (config != NULL));
    if (status == FK_OK) status = build_model(config);
    json_decref(config);
    return status;
}

fk_status fuzz_generation_config(const uint8_t *data, size_t size)
{
    static const char plain[] = "{\"architectures\":[\"Qwen3ForCausalLM\"],\"eos_token_id\":2}";
    json_t *config;
    fk_sampling sampling;
    put("config.json", plain, sizeof plain - 1);
    put("generation_config.json", data, size);
    fk_status status = fk_hf_config(folder, &config);
    if (status == FK_OK) status = fk_generation_sampling(fk_config_from_json(config), &sampling);
    if (status == FK_OK)
        check(sampling.temperature >= 0 && sampling.temperature <= 100 && sampling.top_p >= 0 && sampling.top_p <= 1 && sampling.top_k >= 0);
    json_decref(config);
    return status;
}

/* ---- scenarios and captures */

fk_status fuzz_scenario(const uint8_t *data, size_t size)
{
    fkp_scenario *scenario;
    put("hostile.yaml", data, size);
    fk_status status = fkp_scenario_open(path_of("hostile.yaml"), folder, &scenario);
    check((status == FK_OK) == (scenario != NULL));
    if (status != FK_OK) return status;
    check(scenario->model && scenario->num_requests > 0 && scenario->max_num_seqs > 0);
    for (int64_t i = 0; i < scenario->num_requests; i++) {
        const fkp_scenario_request *r = &scenario->requests[i];
        check(r->count > 0 && r->max_tokens > 0 && (r->prompt != NULL) + (r->num_ids > 0) + (r->random_ids > 0) == 1);
        for (int64_t k = 0; k < r->num_ids; k++) sink += (uint64_t)r->ids[k];
        if (r->prompt) sink += strlen(r->prompt);
    }
    fkp_scenario_close(scenario);
    return FK_OK;
}

/* Values that captures may name: v.f of floats, v.i of ints. */
static void put_values(const char *file)
{
    static float floats[12];
    static int32_t ints[3] = {0, 2, 3};
    fk_device cpu = {FK_CPU, 0};
    fk_safetensors_entry entries[2] = {{"v.f", fk_tensor_wrap(floats, FK_F32, cpu, 2, (int64_t[]){3, 4})},
                                       {"v.i", fk_tensor_wrap(ints, FK_I32, cpu, 1, (int64_t[]){3})}};
    must(fk_safetensors_write(path_of(file), entries, 2, NULL, 0));
}

fk_status fuzz_capture(const uint8_t *data, size_t size)
{
    static const char *const ops[] = {"flash_attn_prefill", "llama_mlp", "rms_norm"};
    static const char mark[] = "@SIGNATURE@";
    const fk_op *op = fk_op_find("rms_norm");
    for (int i = 0; i < 3; i++)
        if (memmem(data, size, ops[i], strlen(ops[i]))) op = fk_op_find(ops[i]);
    char name[80], path[400];
    snprintf(name, sizeof name, "capture/%s.safetensors", op->name);
    mkdir(path_of("capture"), 0777);
    if (access(path_of(name), F_OK) != 0) put_values(name);
    snprintf(name, sizeof name, "capture/%s.json", op->name);
    FILE *file = fopen(path_of(name), "wb");
    check(file != NULL);
    const uint8_t *at = memmem(data, size, mark, sizeof mark - 1);
    size_t before = at ? (size_t)(at - data) : size, after = at ? before + sizeof mark - 1 : size;
    fwrite(data, 1, before, file);
    if (at) fputs(op->signature, file);
    fwrite(data + after, 1, size - after, file);
    check(fclose(file) == 0);

    fkp_case_list list = {0};
    snprintf(path, sizeof path, "%s", path_of("capture"));
    fk_status status = fkp_cases_captured(&list, path, NULL);
    fkp_cases_sort(&list);
    fkp_cases_select(&list, 3);
    for (int i = 0; i < list.count; i++) {
        char shapes[200];
        check(list.items[i].op == op && list.items[i].count > 0 && list.items[i].text != NULL);
        sink += strlen(fkp_case_shapes(&list.items[i], shapes, sizeof shapes)) + (uint64_t)fkp_case_dtype(&list.items[i]);
        for (int f = 0; f < op->num_fields; f++)
            if (list.items[i].values[f].captured) {
                fk_tensor kept = list.items[i].tensors[f];
                kept.data = (void *)(uintptr_t)list.items[i].values[f].captured;
                read_bytes(&kept);
            }
    }
    fkp_case_list_deinit(&list);
    unlink(path_of(name));
    return status;
}

/* ---- ids to text */

static fk_tokenizer *byte_level(void)
{
    static tiny_vocabulary v;
    fk_tokenizer *tokenizer;
    tiny_init(&v, "gpt-2");
    tiny_add_merge(&v, "t h");
    tiny_add_merge(&v, "th e");
    tiny_add_merge(&v, "\xc3\xb0 \xc5\x81"); /* the first half of an emoji */
    tiny_add_special(&v, "<|end|>", FK_TOKEN_CONTROL);
    tiny_add_special(&v, "<tool>", FK_TOKEN_USER_DEFINED);
    tiny_add_special(&v, "[unused]", FK_TOKEN_UNUSED);
    must(fk_tokenizer_create(&v.spec, &tokenizer));
    return tokenizer;
}

enum { VOCABULARIES = 3 };

/* Byte-level BPE; SentencePiece, where a mark goes from the front; a tokenizer.json that strips a space
 * there. */
static const fk_tokenizer *vocabulary(int which)
{
    static fk_tokenizer *all[VOCABULARIES];
    if (!all[0]) {
        all[0] = byte_level();
        must(fk_sentencepiece_load(FK_SOURCE_DIR "/tests/fuzz/corpus/sentencepiece/bpe.model", &all[1]));
        must(fk_tokenizer_json_load(FK_SOURCE_DIR "/tests/fuzz/corpus/tokenizer_json/mistral.json", NULL,
                                    &all[2]));
    }
    return all[which];
}

static bool is_utf8(const fk_bytes *text, size_t from)
{
    return fk_utf8_invalid_offset(text->data + from, text->bytes - from) == text->bytes - from;
}

static fk_status detokenize(const fk_tokenizer *tokenizer, unsigned flags, const uint8_t *data, size_t size)
{
    int32_t good[512];
    int64_t count = 0;
    fk_status first_error = FK_OK;
    fk_detokenizer *stream;
    fk_bytes pieces = {0}, whole = {0};
    must(fk_detokenizer_create(tokenizer, flags, &stream));
    for (size_t i = 0; i + 1 < size && i < 1024; i += 2) {
        int32_t id = (int16_t)(data[i] | data[i + 1] << 8);
        size_t before = pieces.bytes;
        fk_status status = fk_detokenizer_push(stream, id, &pieces);
        check((status == FK_OK) == (id >= 0 && id < fk_tokenizer_vocab_size(tokenizer)));
        if (status == FK_OK)
            good[count++] = id;
        else
            first_error = status, check(pieces.bytes == before);
        if (pieces.bytes > before && !(flags & FK_DECODE_RAW_BYTES)) check(is_utf8(&pieces, before));
    }
    must(fk_detokenizer_finish(stream, &pieces));
    must(fk_tokenizer_decode(tokenizer, good, count, flags, &whole));
    check(pieces.bytes == whole.bytes &&
          (whole.bytes == 0 || memcmp(pieces.data, whole.data, whole.bytes) == 0));
    if (whole.bytes > 0 && !(flags & FK_DECODE_RAW_BYTES)) check(is_utf8(&whole, 0));
    fk_detokenizer_destroy(stream);
    fk_bytes_deinit(&pieces);
    fk_bytes_deinit(&whole);
    return first_error;
}

fk_status fuzz_detokenizer(const uint8_t *data, size_t size)
{
    fk_status first_error = FK_OK;
    for (int which = 0; which < VOCABULARIES; which++)
        for (unsigned flags = 0; flags < 4; flags++) {
            fk_status status = detokenize(vocabulary(which), flags, data, size);
            if (which == 0 && status != FK_OK) first_error = status;
        }
    return first_error;
}

/* ---- files of tokenizers */

/* Encodes texts in every way and decodes the ids; takes the tokenizer. */
static void try_tokenizer(fk_tokenizer *tokenizer)
{
    static const char *const texts[] = {
        "", " the foo <s> e\xCC\x81\xC3\xA9 1234 don't!\r\n  ab\xF0\x9F\x98\x80 \xE2\x96\x81z",
        "\xFF a\x80 \xED\xA0\x80\x01"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (unsigned flags = 0; flags < 16; flags++) {
            fk_token_list ids = {0};
            fk_bytes text = {0};
            fk_status status = fk_tokenizer_encode(tokenizer, texts[i], strlen(texts[i]), flags, &ids);
            check(status == FK_OK || ids.count == 0);
            for (int64_t k = 0; k < ids.count; k++) check(ids.ids[k] >= 0 && ids.ids[k] < fk_tokenizer_vocab_size(tokenizer));
            must(fk_tokenizer_decode(tokenizer, ids.ids, ids.count, flags & 1, &text));
            check(text.bytes == 0 || is_utf8(&text, 0));
            fk_token_list_deinit(&ids);
            fk_bytes_deinit(&text);
        }
    fk_tokenizer_destroy(tokenizer);
}

fk_status fuzz_tokenizer_json(const uint8_t *data, size_t size)
{
    fk_tokenizer *tokenizer;
    FK_TRY(fk_tokenizer_json_parse((const char *)data, size, NULL, &tokenizer));
    try_tokenizer(tokenizer);
    return FK_OK;
}

fk_status fuzz_sentencepiece(const uint8_t *data, size_t size)
{
    fk_tokenizer *tokenizer;
    FK_TRY(fk_sentencepiece_parse(data, size, &tokenizer));
    try_tokenizer(tokenizer);
    return FK_OK;
}

fk_status fuzz_tiktoken(const uint8_t *data, size_t size)
{
    fk_tokenizer *tokenizer;
    FK_TRY(fk_tiktoken_parse(data, size, "gpt2", &tokenizer));
    try_tokenizer(tokenizer);
    return FK_OK;
}
