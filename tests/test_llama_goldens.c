/* SPDX-License-Identifier: Apache-2.0 */
/* models/llama.c against transformers on tiny seeded models: Llama with several rope scalings, tied and untied head; Mistral,
 * Qwen2 and Qwen3 (tools/reference/llama_tiny.py says what the goldens hold). Intermediate results are taken at the door, where
 * the layers call their operators. The batch is built by hand here: both sequences at once or alone, whole or in chunks, in
 * scattered cache blocks of several sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <fk/door.h>
#include <fk/ops.h>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "runtime/config.h"
#include "runtime/weights.h"

enum { SEQUENCES = 2, MAX_TOKENS = 37, KEPT = 16 };
static const char *const names[SEQUENCES] = {"long", "short"};
static const char *const files[] = {"llama_tiny",   "llama_tiny_rope_llama3", "llama_tiny_yarn",
                                    "mistral_tiny", "qwen2_tiny",             "qwen3_tiny"};

#define F32_TOLERANCE 2e-5 /* of the RMS of the golden tensor, largest difference: the issue's */
#define BF16_FACTOR 1.5    /* our error against theirs, both against float32 arithmetic on bf16 weights */

static void must(fk_status status)
{
    if (status != FK_OK) fail_msg("%s", fk_error_message());
}

/* ---- the golden file and the model it describes */

typedef struct tiny {
    fk_safetensors *golden;
    json_t *about;
    fk_backend *backend;
    fk_weights *weights;
    void *model;
    fk_model_info info;
    fk_dtype dtype;
} tiny;

static tiny open_tiny(const char *file, fk_dtype dtype)
{
    char path[512];
    tiny t = {.dtype = dtype};
    snprintf(path, sizeof path, FK_SOURCE_DIR "/tests/goldens/%s.safetensors", file);
    must(fk_safetensors_open(path, &t.golden));
    const char *text = fk_safetensors_metadata(t.golden, "golden");
    assert_non_null(text);
    must(fkp_json_parse(text, strlen(text), (fkp_json_limits){16, 1000}, &t.about));
    must(fk_backend_get((fk_device){FK_CPU, 0}, &t.backend));
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(t.about, "seed"));
    must(fk_weights_create(t.backend, dtype, NULL, seed, &t.weights));
    const fk_model_class *class = fk_model_class_find("llama");
    must(class->create(t.weights, fk_config_from_json(json_object_get(t.about, "config")), &t.model, &t.info));
    return t;
}

static void close_tiny(tiny *t)
{
    fk_weights_destroy(t->weights);
    json_decref(t->about);
    fk_safetensors_close(t->golden);
}

static fk_tensor golden(const tiny *t, const char *what, int sequence)
{
    char name[64];
    fk_tensor tensor;
    snprintf(name, sizeof name, "%s.%s", what, names[sequence]);
    must(fk_safetensors_find(t->golden, name, &tensor));
    return tensor;
}

/* ---- running it */

/* How the two sequences go through the model. */
typedef struct way {
    const char *what;
    bool together, references_only;
    int64_t chunk;      /* tokens of a step at most, per sequence; 0: whole */
    int64_t block_size;
} way;

/* What came out, float32. */
typedef struct outputs {
    float *embeddings[SEQUENCES], *layer0[SEQUENCES], *norm[SEQUENCES]; /* [T, D] */
    float *logits[SEQUENCES];                                           /* [T, V] */
} outputs;

/* Takes copies of intermediate results in one step: rows of the batch to rows of the sequences. */
typedef struct watcher {
    const tiny *t;
    outputs *out;
    int64_t start[SEQUENCES], count[SEQUENCES]; /* of the step's tokens */
    int64_t hidden_size;
    bool seen_embeddings, seen_layer0, seen_norm;
} watcher;

/* plus may be NULL: rows of (tensor + plus). */
static void take_rows(const watcher *w, float *const *to, const fk_tensor *tensor, const fk_tensor *plus)
{
    int64_t row = 0, d = w->hidden_size;
    assert_int_equal(tensor->dtype, w->t->dtype);
    for (int s = 0; s < SEQUENCES; s++)
        for (int64_t i = 0; i < w->count[s]; i++, row++)
            for (int64_t j = 0; j < d; j++) {
                size_t at = (size_t)(row * d + j) * (size_t)fk_dtype_bits(tensor->dtype) / 8;
                double value = fk_load_element((const char *)tensor->data + at, tensor->dtype);
                if (plus) value += fk_load_element((const char *)plus->data + at, plus->dtype);
                to[s][(w->start[s] + i) * d + j] = (float)value;
            }
}

static void after_call(void *user, fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args)
{
    watcher *w = user;
    (void)impl;
    if (fk_door_depth(ctx) != 1 || fk_ctx_status(ctx) != FK_OK) return;
    if (op->index == fk_vocab_parallel_embedding_index) {
        w->hidden_size = ((const fk_vocab_parallel_embedding_args *)args)->output->shape[1];
        take_rows(w, w->out->embeddings, ((const fk_vocab_parallel_embedding_args *)args)->output, NULL);
        w->seen_embeddings = true;
    } else if (op->index == fk_llama_decoder_index && !w->seen_layer0) {
        const fk_llama_decoder_args *a = args; /* the stream is what the layer computed plus what it was added to */
        take_rows(w, w->out->layer0, a->hidden_states, a->residual);
        w->seen_layer0 = true;
    } else if (op->index == fk_fused_add_rms_norm_index) {
        take_rows(w, w->out->norm, ((const fk_fused_add_rms_norm_args *)args)->input, NULL);
        w->seen_norm = true;
    }
}

/* Host storage of a batch. */
typedef struct batch_arrays {
    int64_t ids[SEQUENCES * MAX_TOKENS], positions[SEQUENCES * MAX_TOKENS], slots[SEQUENCES * MAX_TOKENS];
    int64_t rows[SEQUENCES * MAX_TOKENS];
    int32_t cu_seqlens_q[SEQUENCES + 1], seqused_k[SEQUENCES], block_table[SEQUENCES * MAX_TOKENS];
} batch_arrays;

static fk_tensor wrap1(void *data, fk_dtype dtype, int64_t n)
{
    return fk_tensor_wrap(data, dtype, (fk_device){FK_CPU, 0}, 1, &n);
}

/* Block b of a sequence stands at a place far from block b + 1. */
static int32_t place_of(int sequence, int64_t block, int64_t num_blocks)
{
    return (int32_t)((block * 7 + sequence * 3) * SEQUENCES + sequence) % (int32_t)num_blocks;
}

static void step(const tiny *t, fk_ctx *ctx, const way *how, const fk_kv_cache *cache, outputs *out, const int64_t *start,
                 const int64_t *count)
{
    batch_arrays a;
    watcher w = {.t = t, .out = out};
    fk_batch batch = {0};
    int64_t tokens = 0, b = 0, max_blocks = (MAX_TOKENS + how->block_size - 1) / how->block_size;
    for (int s = 0; s < SEQUENCES; s++) {
        w.start[s] = start[s];
        w.count[s] = count[s];
        if (count[s] == 0) continue;
        fk_tensor ids = golden(t, "ids", s);
        a.cu_seqlens_q[b] = (int32_t)tokens;
        a.seqused_k[b] = (int32_t)(start[s] + count[s]);
        for (int64_t m = 0; m < max_blocks; m++) a.block_table[b * max_blocks + m] = place_of(s, m, cache->num_blocks);
        for (int64_t i = 0; i < count[s]; i++, tokens++) {
            int64_t position = start[s] + i;
            a.ids[tokens] = ((const int32_t *)ids.data)[position];
            a.positions[tokens] = position;
            a.slots[tokens] = place_of(s, position / how->block_size, cache->num_blocks) * how->block_size + position % how->block_size;
            a.rows[tokens] = tokens;
        }
        if (count[s] > batch.max_seqlen_q) batch.max_seqlen_q = count[s];
        if (a.seqused_k[b] > batch.max_seqlen_k) batch.max_seqlen_k = a.seqused_k[b];
        b++;
    }
    a.cu_seqlens_q[b] = (int32_t)tokens;
    batch.input_ids = wrap1(a.ids, FK_I64, tokens);
    batch.positions = wrap1(a.positions, FK_I64, tokens);
    batch.slot_mapping = wrap1(a.slots, FK_I64, tokens);
    batch.logits_rows = wrap1(a.rows, FK_I64, tokens);
    batch.cu_seqlens_q = wrap1(a.cu_seqlens_q, FK_I32, b + 1);
    batch.seqused_k = wrap1(a.seqused_k, FK_I32, b);
    batch.block_table = fk_tensor_wrap(a.block_table, FK_I32, (fk_device){FK_CPU, 0}, 2, (int64_t[]){b, max_blocks});

    fk_hook hook = {.after = after_call, .user = &w};
    fk_ctx_reset(ctx);
    must(fk_door_add_hook(ctx, &hook));
    fk_tensor logits = fk_model_class_find("llama")->forward(ctx, t->model, &batch, cache);
    fk_door_remove_hook(ctx, &hook);
    must(fk_ctx_status(ctx));
    assert_true(w.seen_embeddings && w.seen_layer0 && w.seen_norm);
    assert_int_equal(logits.shape[0], tokens);
    w.hidden_size = logits.shape[1];
    take_rows(&w, out->logits, &logits, NULL);
}

static outputs run(const tiny *t, const way *how)
{
    outputs out;
    fk_ctx *ctx;
    fk_arena arena;
    int64_t max_blocks = (MAX_TOKENS + how->block_size - 1) / how->block_size, hidden_size = golden(t, "norm", 0).shape[1];
    fk_kv_cache cache = {.num_layers = t->info.num_layers, .num_blocks = 7 * SEQUENCES * max_blocks + 13, .block_size = how->block_size};
    must(fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}, .references_only = how->references_only}, &ctx));
    fk_arena_init(&arena, t->backend, 1 << 20);
    fk_tensor caches[2][8];
    cache.key = caches[0];
    cache.value = caches[1];
    for (int64_t l = 0; l < cache.num_layers; l++)
        for (int kind = 0; kind < 2; kind++) {
            int64_t shape[4] = {cache.num_blocks, cache.block_size, t->info.num_kv_heads, t->info.head_size};
            must(fk_arena_tensor(&arena, t->dtype, 4, shape, &caches[kind][l]));
            memset(caches[kind][l].data, 0xff, fk_tensor_nbytes(&caches[kind][l])); /* NaN: a look beyond shows */
        }
    int64_t left[SEQUENCES], start[SEQUENCES] = {0};
    for (int s = 0; s < SEQUENCES; s++) {
        left[s] = golden(t, "ids", s).shape[0];
        out.embeddings[s] = calloc((size_t)(left[s] * hidden_size), sizeof(float));
        out.layer0[s] = calloc((size_t)(left[s] * hidden_size), sizeof(float));
        out.norm[s] = calloc((size_t)(left[s] * hidden_size), sizeof(float));
        out.logits[s] = calloc((size_t)(left[s] * t->info.vocab_size), sizeof(float));
    }
    while (left[0] + left[1] > 0) {
        int64_t count[SEQUENCES] = {0};
        for (int s = 0; s < SEQUENCES; s++) {
            if (!how->together && s > 0 && left[0] > 0) break;
            count[s] = how->chunk > 0 && how->chunk < left[s] ? how->chunk : left[s];
        }
        step(t, ctx, how, &cache, &out, start, count);
        for (int s = 0; s < SEQUENCES; s++) {
            start[s] += count[s];
            left[s] -= count[s];
        }
    }
    fk_arena_deinit(&arena);
    fk_ctx_destroy(ctx);
    return out;
}

static void free_outputs(outputs *o)
{
    for (int s = 0; s < SEQUENCES; s++) {
        free(o->embeddings[s]);
        free(o->layer0[s]);
        free(o->norm[s]);
        free(o->logits[s]);
    }
}

/* ---- comparing */

/* Largest difference over the RMS of `want`. */
static double max_error(const float *got, const fk_tensor *want)
{
    int64_t n = fk_tensor_numel(want);
    const float *values = want->data;
    double square = 0, worst = 0;
    assert_int_equal(want->dtype, FK_F32);
    for (int64_t i = 0; i < n; i++) {
        square += (double)values[i] * (double)values[i];
        double error = fabs((double)got[i] - (double)values[i]);
        worst = error <= worst ? worst : error; /* a NaN sticks */
    }
    assert_true(square > 0);
    return worst / sqrt(square / (double)n);
}

static double rms_error(const float *got, const fk_tensor *want)
{
    int64_t n = fk_tensor_numel(want);
    const float *values = want->data;
    double square = 0, error = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)got[i] - (double)values[i];
        square += (double)values[i] * (double)values[i];
        error += d * d;
    }
    return sqrt(error / square);
}

/* The rows of our logits that the golden keeps: the last ones. */
static const float *kept_logits(const outputs *o, int s, const fk_tensor *want, int64_t tokens)
{
    return o->logits[s] + (tokens - want->shape[0]) * want->shape[1];
}

static const way ways[] = {
    {"together", true, false, 0, 16},         {"alone", false, false, 0, 16},
    {"chunks of 5", true, false, 5, 16},      {"token by token", true, false, 1, 16},
    {"blocks of 1", true, false, 0, 1},       {"blocks of 3, chunks of 4", true, false, 4, 3},
    {"references only", true, true, 0, 16},   {"references, token by token", true, true, 1, 5},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void test_float32(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        tiny t = open_tiny(files[f], FK_F32);
        for (int w = 0; w < WAYS; w++) {
            outputs o = run(&t, &ways[w]);
            double worst = 0;
            for (int s = 0; s < SEQUENCES; s++) {
                fk_tensor logits = golden(&t, "logits", s), norm = golden(&t, "norm", s);
                fk_tensor embeddings = golden(&t, "embeddings", s), layer0 = golden(&t, "layer0", s);
                const struct {
                    const char *what;
                    const float *got;
                    const fk_tensor *want;
                } points[] = {{"embeddings", o.embeddings[s], &embeddings},
                              {"layer 0", o.layer0[s], &layer0},
                              {"norm", o.norm[s], &norm},
                              {"logits", kept_logits(&o, s, &logits, norm.shape[0]), &logits}};
                for (int p = 0; p < 4; p++) {
                    double error = max_error(points[p].got, points[p].want);
                    if (!(error <= F32_TOLERANCE))
                        fail_msg("%s, %s, %s: %s off by %.3g of their RMS", files[f], ways[w].what, names[s], points[p].what, error);
                    worst = fmax(worst, error);
                }
            }
            print_message("%s, %s: within %.2g of the RMS\n", files[f], ways[w].what, worst);
            free_outputs(&o);
        }
        close_tiny(&t);
    }
}

static void test_bfloat16(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        tiny t = open_tiny(files[f], FK_BF16);
        for (int w = 0; w < WAYS; w++) {
            outputs o = run(&t, &ways[w]);
            for (int s = 0; s < SEQUENCES; s++) {
                fk_tensor truth = golden(&t, "logits_bf16_weights", s), theirs = golden(&t, "logits_bf16", s);
                float peer[KEPT * 512];
                assert_true(fk_tensor_numel(&theirs) <= KEPT * 512);
                fk_convert_to_f32(peer, theirs.data, theirs.dtype, fk_tensor_numel(&theirs));
                double own = rms_error(kept_logits(&o, s, &truth, golden(&t, "ids", s).shape[0]), &truth);
                double peers = rms_error(peer, &truth);
                if (!(own <= BF16_FACTOR * peers))
                    fail_msg("%s, %s, %s: bf16 error %.3g, transformers' %.3g", files[f], ways[w].what, names[s], own, peers);
                if (s == 0) print_message("%s, %s: bf16 error %.3g, transformers' %.3g\n", files[f], ways[w].what, own, peers);
            }
            free_outputs(&o);
        }
        close_tiny(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_float32), cmocka_unit_test(test_bfloat16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
