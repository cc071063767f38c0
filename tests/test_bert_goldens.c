/* SPDX-License-Identifier: Apache-2.0 */
/* models/colbertv2.c against transformers' BertModel on tiny seeded models, with ColBERT's head and with mean pooling
 * (tools/reference/colbertv2_tiny.py says what the goldens hold). Intermediate results are taken at the door. The batch is
 * built by hand: all sequences at once in either order, or each alone. */
#include "unit.h"

#include <math.h>

#include <fk/door.h>
#include <fk/ops.h>

#include "core/dtype.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "runtime/config.h"
#include "runtime/weights.h"

enum { SEQUENCES = 3, MAX_TOKENS = 64, MAX_VALUES = MAX_TOKENS * 64 };
static const char *const names[SEQUENCES] = {"long", "short", "one"};
static const char *const files[] = {"colbertv2_tiny", "bert_tiny"};

#define F32_TOLERANCE 2e-5 /* of the RMS of the golden tensor, largest difference: as for the decoders */
#define BF16_FACTOR 1.5    /* our error against theirs, both against float32 arithmetic on bf16 weights */

/* ---- the golden file and the model it describes */

typedef struct tiny {
    fk_safetensors *golden;
    json_t *about;
    fk_weights *weights;
    void *model;
    fk_model_info info;
    fk_dtype dtype;
} tiny;

static const fk_model_class *class_of_bert(void)
{
    const fk_model_class *class = fk_model_class_find("bert");
    assert_non_null(class);
    assert_null(class->forward);
    return class;
}

static tiny open_tiny(const char *file, fk_dtype dtype)
{
    char path[512];
    tiny t = {.dtype = dtype};
    snprintf(path, sizeof path, FK_SOURCE_DIR "/tests/goldens/%s.safetensors", file);
    assert_ok(fk_safetensors_open(path, &t.golden));
    const char *text = fk_safetensors_metadata(t.golden, "golden");
    assert_non_null(text);
    assert_ok(fkp_json_parse(text, strlen(text), (fkp_json_limits){16, 1000}, &t.about));
    fk_backend *backend;
    assert_ok(fk_backend_get((fk_device){FK_CPU, 0}, &backend));
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(t.about, "seed"));
    assert_ok(fk_weights_create(backend, dtype, NULL, seed, &t.weights));
    assert_ok(class_of_bert()->create(t.weights, fk_config_from_json(json_object_get(t.about, "config")), &t.model, &t.info));
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
    assert_ok(fk_safetensors_find(t->golden, name, &tensor));
    return tensor;
}

/* ---- running it */

typedef struct way {
    const char *what;
    int count, order[SEQUENCES]; /* sequences of one batch */
    bool references_only;
} way;

/* Alone is three ways: each with one sequence. */
static const way ways[] = {
    {"together", 3, {0, 1, 2}, false},  {"the other way round", 3, {2, 1, 0}, false}, {"long alone", 1, {0}, false},
    {"short alone", 1, {1}, false},     {"one alone", 1, {2}, false},                 {"references", 3, {1, 0, 2}, true},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

enum { EMBEDDINGS, LAYER0, HIDDEN, VECTORS, POINTS };
static const char *const points[POINTS] = {"embeddings", "layer0", "hidden", "vectors"};

/* Results of the batch, float32, rows as the batch has them. */
typedef struct outputs {
    float values[POINTS][MAX_VALUES];
    bool seen[POINTS];
} outputs;

static void take(outputs *o, int point, const fk_tensor *tensor, fk_dtype dtype)
{
    if (o->seen[point]) return; /* the first layer's */
    int64_t n = fk_tensor_numel(tensor);
    assert_int_equal(tensor->dtype, dtype);
    assert_true(n <= MAX_VALUES && fk_tensor_is_contiguous(tensor));
    fk_convert_to_f32(o->values[point], tensor->data, tensor->dtype, n);
    o->seen[point] = true;
}

typedef struct watcher {
    outputs *out;
    fk_dtype dtype;
} watcher;

static void after_call(void *user, fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args)
{
    watcher *w = user;
    (void)impl;
    if (fk_ctx_status(ctx) != FK_OK) return;
    if (op->index == fk_bert_embeddings_index) take(w->out, EMBEDDINGS, ((const fk_bert_embeddings_args *)args)->output, w->dtype);
    if (op->index == fk_bert_layer_index) take(w->out, LAYER0, ((const fk_bert_layer_args *)args)->output, w->dtype);
    if (op->index == fk_bert_model_index) take(w->out, HIDDEN, ((const fk_bert_model_args *)args)->output, w->dtype);
}

static fk_tensor wrap(void *data, fk_dtype dtype, int ndim, int64_t a, int64_t b, int64_t c)
{
    return fk_tensor_wrap(data, dtype, (fk_device){FK_CPU, 0}, ndim, (int64_t[]){a, b, c});
}

static outputs run(const tiny *t, const way *how)
{
    static outputs out;
    int64_t ids[MAX_TOKENS], positions[MAX_TOKENS], types[MAX_TOKENS], tokens = 0;
    int32_t starts[SEQUENCES + 1] = {0};
    fk_encode_batch batch = {0};
    for (int i = 0; i < how->count; i++) {
        fk_tensor from = golden(t, "ids", how->order[i]), type = golden(t, "types", how->order[i]);
        int64_t n = from.shape[0];
        for (int64_t p = 0; p < n; p++, tokens++) {
            ids[tokens] = ((const int32_t *)from.data)[p];
            types[tokens] = ((const int32_t *)type.data)[p];
            positions[tokens] = p;
        }
        starts[i + 1] = (int32_t)tokens;
        if (n > batch.max_seqlen) batch.max_seqlen = n;
    }
    batch.input_ids = wrap(ids, FK_I64, 1, tokens, 0, 0);
    batch.positions = wrap(positions, FK_I64, 1, tokens, 0, 0);
    batch.token_type_ids = wrap(types, FK_I64, 1, tokens, 0, 0);
    batch.cu_seqlens = wrap(starts, FK_I32, 1, how->count + 1, 0, 0);
    memset(&out, 0, sizeof out);
    fk_ctx *ctx;
    watcher w = {&out, t->dtype};
    fk_hook hook = {.after = after_call, .user = &w};
    assert_ok(fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}, .references_only = how->references_only}, &ctx));
    assert_ok(fk_door_add_hook(ctx, &hook));
    fk_tensor vectors = class_of_bert()->encode(ctx, t->model, &batch);
    fk_door_remove_hook(ctx, &hook);
    assert_ok(fk_ctx_status(ctx));
    assert_int_equal(vectors.shape[0], t->info.token_vectors ? tokens : how->count);
    assert_int_equal(vectors.shape[1], t->info.embedding_size);
    take(&out, VECTORS, &vectors, t->dtype);
    fk_ctx_destroy(ctx);
    for (int p = 0; p < POINTS; p++) assert_true(out.seen[p]);
    return out;
}

/* ---- comparing */

static double rms(const float *values, int64_t n)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++) square += (double)values[i] * (double)values[i];
    assert_true(square > 0);
    return sqrt(square / (double)n);
}

/* Largest difference over the RMS; a NaN sticks. */
static double max_error(const float *got, const fk_tensor *want)
{
    const float *values = want->data;
    double worst = 0;
    assert_int_equal(want->dtype, FK_F32);
    for (int64_t i = 0; i < fk_tensor_numel(want); i++) {
        double error = fabs((double)got[i] - (double)values[i]);
        worst = error <= worst ? worst : error;
    }
    return worst / rms(values, fk_tensor_numel(want));
}

static double rms_error(const float *got, const fk_tensor *want)
{
    const float *values = want->data;
    double square = 0;
    for (int64_t i = 0; i < fk_tensor_numel(want); i++) square += ((double)got[i] - (double)values[i]) * ((double)got[i] - (double)values[i]);
    return sqrt(square / (double)fk_tensor_numel(want)) / rms(values, fk_tensor_numel(want));
}

static void test_float32(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        tiny t = open_tiny(files[f], FK_F32);
        for (int w = 0; w < WAYS; w++) {
            outputs o = run(&t, &ways[w]);
            double worst = 0;
            for (int p = 0; p < POINTS; p++) {
                const float *row = o.values[p];
                for (int i = 0; i < ways[w].count; i++) {
                    fk_tensor want = golden(&t, points[p], ways[w].order[i]);
                    double error = max_error(row, &want);
                    if (!(error <= F32_TOLERANCE))
                        fail_msg("%s, %s, %s: %s off by %.3g of their RMS", files[f], ways[w].what, names[ways[w].order[i]], points[p], error);
                    worst = fmax(worst, error);
                    row += fk_tensor_numel(&want);
                }
            }
            print_message("%s, %s: within %.2g of the RMS\n", files[f], ways[w].what, worst);
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
            const float *row = o.values[VECTORS];
            for (int i = 0; i < ways[w].count; i++) {
                int s = ways[w].order[i];
                fk_tensor truth = golden(&t, "vectors_bf16_weights", s), theirs = golden(&t, "vectors_bf16", s);
                float peer[MAX_VALUES];
                fk_convert_to_f32(peer, theirs.data, theirs.dtype, fk_tensor_numel(&theirs));
                double own = rms_error(row, &truth), peers = rms_error(peer, &truth);
                if (!(own <= BF16_FACTOR * peers))
                    fail_msg("%s, %s, %s: bf16 error %.3g, transformers' %.3g", files[f], ways[w].what, names[s], own, peers);
                if (w == 0) print_message("%s, %s: bf16 error %.3g, transformers' %.3g\n", files[f], names[s], own, peers);
                row += fk_tensor_numel(&truth);
            }
        }
        close_tiny(&t);
    }
}

/* The long sequence against all three, from the golden vectors: scores alone are looked at. */
static void test_scores(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        tiny t = open_tiny(files[f], FK_F32);
        int64_t e = t.info.embedding_size, longest = t.info.token_vectors ? golden(&t, "ids", 0).shape[0] : 1, skip[8], skips = 0;
        float vectors[SEQUENCES * MAX_VALUES] = {0};
        int64_t ids[SEQUENCES * MAX_TOKENS];
        for (int64_t i = 0; i < SEQUENCES * longest; i++) ids[i] = t.info.pad_token_id;
        for (int s = 0; s < SEQUENCES; s++) {
            fk_tensor from = golden(&t, "vectors", s), tokens = golden(&t, "ids", s);
            memcpy(vectors + s * longest * e, from.data, fk_tensor_nbytes(&from));
            for (int64_t i = 0; i < from.shape[0]; i++) ids[s * longest + i] = ((const int32_t *)tokens.data)[i];
        }
        json_t *list = json_object_get(t.about, "skiplist");
        for (; skips < (int64_t)json_array_size(list); skips++) skip[skips] = json_integer_value(json_array_get(list, (size_t)skips));
        fk_score_batch batch = {.query = golden(&t, "vectors", 0), .vectors = wrap(vectors, FK_F32, 3, SEQUENCES, longest, e)};
        if (t.info.token_vectors) {
            batch.ids = wrap(ids, FK_I64, 2, SEQUENCES, longest, 0);
            batch.skiplist = wrap(skip, FK_I64, 1, skips, 0, 0);
        }
        fk_ctx *ctx;
        fk_tensor want;
        assert_ok(fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}}, &ctx));
        fk_tensor scores = class_of_bert()->score(ctx, t.model, &batch);
        assert_ok(fk_ctx_status(ctx));
        assert_ok(fk_safetensors_find(t.golden, "scores", &want));
        assert_int_equal(scores.ndim, 1);
        assert_int_equal(scores.shape[0], SEQUENCES);
        double error = max_error(scores.data, &want);
        if (!(error <= F32_TOLERANCE)) fail_msg("%s: scores off by %.3g of their RMS", files[f], error);
        fk_ctx_destroy(ctx);
        close_tiny(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_float32), cmocka_unit_test(test_bfloat16), cmocka_unit_test(test_scores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
