/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded weights in deep models: through 80 layers the residual stream stays far inside the range of 16-bit floats, tokens
 * stay apart, and the logits of an untied head are neither flat nor settled on one token. A deep, narrow Llama; hidden
 * sizes at and between powers of two, which is what the scales of matrices are rounded to. */
#include "unit.h"

#include <math.h>

#include <fk/door.h>
#include <fk/ops.h>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/json.h"
#include "runtime/config.h"
#include "runtime/weights.h"

enum { TOKENS = 24, BLOCK = 8, LAYERS = 80, VOCAB = 1024 };

/* Largest magnitude in the residual stream, over all layers. */
typedef struct stream {
    double largest;
    int layers;
} stream;

static void after_layer(void *user, fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args)
{
    stream *s = user;
    (void)impl;
    if (op->index != fk_llama_decoder_index || fk_ctx_status(ctx) != FK_OK) return;
    const fk_llama_decoder_args *a = args;
    for (int64_t i = 0, n = fk_tensor_numel(a->residual); i < n; i++) {
        double value = fk_load_element(fk_tensor_at(a->residual, i), a->residual->dtype) +
                       fk_load_element(fk_tensor_at(a->hidden_states, i), a->hidden_states->dtype);
        s->largest = fabs(value) > s->largest || isnan(value) ? fabs(value) : s->largest;
    }
    s->layers++;
}

static fk_tensor vector(void *data, fk_dtype dtype, int64_t n)
{
    return fk_tensor_wrap(data, dtype, (fk_device){FK_CPU, 0}, 1, &n);
}

/* Share of the largest possible entropy in softmax(logits), 0 to 1, and the most probable token. */
static double relative_entropy(const fk_tensor *logits, int64_t row, int64_t *best)
{
    double largest = -INFINITY, sum = 0, weighted = 0;
    for (int64_t i = 0; i < VOCAB; i++) {
        double x = fk_load_element(fk_tensor_at(logits, row * VOCAB + i), logits->dtype);
        assert_true(isfinite(x));
        if (x > largest) largest = x, *best = i;
    }
    for (int64_t i = 0; i < VOCAB; i++) {
        double x = fk_load_element(fk_tensor_at(logits, row * VOCAB + i), logits->dtype) - largest;
        sum += exp(x);
        weighted += x * exp(x);
    }
    return (log(sum) - weighted / sum) / log(VOCAB);
}

static void check(int hidden_size, int heads, fk_dtype dtype, bool tied, uint64_t seed)
{
    char text[512];
    json_t *config;
    fk_backend *backend;
    fk_weights *weights;
    fk_model_info info;
    fk_ctx *ctx;
    fk_arena arena;
    void *model;
    snprintf(text, sizeof text,
             "{\"vocab_size\": %d, \"hidden_size\": %d, \"intermediate_size\": %d, \"num_hidden_layers\": %d, "
             "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"tie_word_embeddings\": %s}",
             VOCAB, hidden_size, hidden_size * 8 / 3, LAYERS, heads, heads / 2, tied ? "true" : "false");
    assert_ok(fkp_json_parse(text, strlen(text), (fkp_json_limits){4, 100}, &config));
    assert_ok(fk_backend_get((fk_device){FK_CPU, 0}, &backend));
    assert_ok(fk_weights_create(backend, dtype, NULL, seed, &weights));
    const fk_model_class *class = fk_model_class_find("llama");
    assert_ok(class->create(weights, fk_config_from_json(config), &model, &info));
    assert_ok(fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}}, &ctx));
    fk_arena_init(&arena, backend, 1 << 20);

    fk_tensor key[LAYERS], value[LAYERS];
    fk_kv_cache cache = {.num_layers = LAYERS, .num_blocks = TOKENS / BLOCK, .block_size = BLOCK, .key = key, .value = value};
    for (int l = 0; l < LAYERS; l++) {
        int64_t shape[4] = {cache.num_blocks, BLOCK, info.num_kv_heads, info.head_size};
        assert_ok(fk_arena_tensor(&arena, dtype, 4, shape, &key[l]));
        assert_ok(fk_arena_tensor(&arena, dtype, 4, shape, &value[l]));
    }
    int64_t ids[TOKENS], positions[TOKENS];
    int32_t cu_seqlens_q[2] = {0, TOKENS}, seqused_k[1] = {TOKENS}, blocks[TOKENS / BLOCK];
    for (int i = 0; i < TOKENS; i++) ids[i] = i * 389 % VOCAB, positions[i] = i;
    for (int i = 0; i < TOKENS / BLOCK; i++) blocks[i] = i;
    fk_tensor at = vector(positions, FK_I64, TOKENS);
    fk_batch batch = {.input_ids = vector(ids, FK_I64, TOKENS), .positions = at, .slot_mapping = at, .logits_rows = at,
                      .cu_seqlens_q = vector(cu_seqlens_q, FK_I32, 2), .seqused_k = vector(seqused_k, FK_I32, 1),
                      .block_table = fk_tensor_wrap(blocks, FK_I32, (fk_device){FK_CPU, 0}, 2, (int64_t[]){1, TOKENS / BLOCK}),
                      .max_seqlen_q = TOKENS, .max_seqlen_k = TOKENS};
    stream seen = {0};
    fk_hook hook = {.after = after_layer, .user = &seen};
    assert_ok(fk_door_add_hook(ctx, &hook));
    fk_tensor logits = class->forward(ctx, model, &batch, &cache);
    assert_string_equal(fk_ctx_error(ctx), "");
    assert_int_equal(seen.layers, LAYERS);

    double least = 1, most = 0;
    int distinct = 0;
    bool chosen[VOCAB] = {false};
    for (int i = 0; i < TOKENS; i++) {
        int64_t best = 0;
        double entropy = relative_entropy(&logits, i, &best);
        if (entropy < least) least = entropy;
        if (entropy > most) most = entropy;
        distinct += !chosen[best];
        chosen[best] = true;
    }
    print_message("hidden_size %d %s%s: largest %.1f, entropy %.3f to %.3f, %d tokens\n", hidden_size, fk_dtype_name(dtype),
                  tied ? " tied" : "", seen.largest, least, most, distinct);
    assert_true(seen.largest > 1 && seen.largest < 512); /* 160 additions of about 1 make 13; outliers a few times that */
    assert_true(distinct >= TOKENS / 3);
    /* A tied head has rows of unit variance and logits of standard deviation sqrt(hidden_size): no bound on its entropy. */
    if (!tied) assert_true(least > 0.5 && most < 0.99);
    fk_arena_deinit(&arena);
    fk_ctx_destroy(ctx);
    fk_weights_destroy(weights);
    json_decref(config);
}

static void test_depth(void **state)
{
    (void)state;
    check(128, 4, FK_F32, false, 1);
    check(128, 4, FK_BF16, true, 2);
    check(192, 6, FK_F32, true, 3);
    check(192, 6, FK_BF16, false, 4);
    check(96, 2, FK_F16, false, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_depth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
