/* SPDX-License-Identifier: Apache-2.0 */
/* all-MiniLM-L6-v2 from text to ranking, against sentence-transformers (tools/reference/minilm.py says what the golden holds): ids of
 * 200 sentences, one of them too long, their vectors, and which sentences are next to each. */
#include "unit.h"

#include <math.h>

#include "core/safetensors.h"
#include "runtime/assets.h"
#include "runtime/embedder.h"

#define LEAST_COSINE 0.99999 /* the issue's, of float32 */
#define LEAST_COSINE_BF16 0.999 /* rounding alone: 2^-9 a value, through six layers */

enum { SENTENCES = 200, SENTENCES_BF16 = 50 };

static fk_safetensors *golden;
static fk_model *model;

/* The golden's sentences, and our ids of them. */
static char *text;
static fk_piece sentences[SENTENCES];
static fk_token_list ids;
static fk_id_span spans[SENTENCES];

static fk_tensor find(const char *name)
{
    fk_tensor t;
    assert_ok(fk_safetensors_find(golden, name, &t));
    return t;
}

static fk_embedder *embedder_of(const fk_model *of)
{
    fk_embedder *e;
    assert_ok(fk_embedder_create(of, &(fk_embedder_options){.max_num_seqs = 16}, &e));
    return e;
}

static int setup(void **state)
{
    (void)state;
    FILE *file = fopen(FK_SOURCE_DIR "/tests/data/minilm_sentences.txt", "rb");
    assert_non_null(file);
    text = calloc(1, 1 << 20);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    char *at = text;
    for (int i = 0; i < SENTENCES; i++) {
        size_t n = strcspn(at, "\n");
        assert_int_equal(at[n], '\n');
        sentences[i] = (fk_piece){at, n};
        at += n + 1;
    }
    assert_int_equal(*at, 0);
    assert_ok(fk_safetensors_open(FK_SOURCE_DIR "/tests/goldens/minilm.safetensors", &golden));
    assert_ok(fk_model_open("minilm-l6", &(fk_model_options){.device = {FK_CPU, 0}}, &model));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fk_model_close(model);
    fk_safetensors_close(golden);
    fk_token_list_deinit(&ids);
    free(text);
    return 0;
}

static void test_ids(void **state)
{
    (void)state;
    fk_tensor want = find("ids"), lengths = find("lengths");
    int64_t first[SENTENCES + 1] = {0}, cut = 0;
    assert_int_equal(lengths.shape[0], SENTENCES);
    assert_int_equal(fk_embedder_max_length(model), 256);
    for (int i = 0; i < SENTENCES; i++) {
        assert_ok(fk_embedder_tokenize(model, sentences[i], FK_TEXT_DOCUMENT, &ids, &cut));
        first[i + 1] = ids.count;
        if (ids.count - first[i] != ((const int32_t *)lengths.data)[i]) fail_msg("sentence %d has %d ids, not %d", i + 1, (int)(ids.count - first[i]), ((const int32_t *)lengths.data)[i]);
        assert_true((cut > 0) == (i == SENTENCES - 1)); /* the last one alone is too long */
    }
    assert_int_equal(ids.count, want.shape[0]);
    assert_memory_equal(ids.ids, want.data, (size_t)ids.count * sizeof *ids.ids);
    for (int i = 0; i < SENTENCES; i++) spans[i] = (fk_id_span){ids.ids + first[i], first[i + 1] - first[i]};
}

/* The smallest cosine of ours and theirs; both have length 1, which is looked at too. */
static double least_cosine(const fk_vectors *ours, int64_t count, double length_tolerance)
{
    fk_tensor theirs = find("embeddings");
    const float *values = theirs.data;
    double least = 2;
    assert_int_equal(ours->features, theirs.shape[1]);
    for (int64_t i = 0; i < count; i++) {
        double dot = 0, own = 0, peer = 0;
        for (int64_t k = 0; k < ours->features; k++) {
            double a = (double)ours->values[i * ours->features + k], b = (double)values[i * ours->features + k];
            dot += a * b;
            own += a * a;
            peer += b * b;
        }
        if (!(fabs(sqrt(own) - 1) <= length_tolerance)) fail_msg("vector %lld has length %.9g", (long long)i + 1, sqrt(own));
        double cosine = dot / sqrt(own * peer);
        least = cosine >= least ? least : cosine; /* a NaN sticks */
    }
    return least;
}

static void test_vectors(void **state)
{
    (void)state;
    fk_embedder *e = embedder_of(model);
    fk_vectors vectors;
    assert_ok(fk_embedder_encode(e, spans, SENTENCES, NULL, &vectors));
    double least = least_cosine(&vectors, SENTENCES, 1e-6);
    print_message("smallest cosine to sentence-transformers: 1 - %.3g\n", 1 - least);
    assert_true(least >= LEAST_COSINE);

    /* Which sentences come first for each query. */
    fk_tensor ranking = find("ranking");
    for (int64_t q = 0; q < ranking.shape[0]; q++) {
        float scores[SENTENCES];
        assert_ok(fk_embedder_score(e, &vectors, q, &vectors, spans, scores));
        scores[q] = -2;
        for (int64_t r = 0; r < ranking.shape[1]; r++) {
            int best = 0;
            for (int i = 1; i < SENTENCES; i++)
                if (scores[i] > scores[best]) best = i;
            assert_int_equal(best, ((const int32_t *)ranking.data)[q * ranking.shape[1] + r]);
            scores[best] = -2;
        }
    }
    fk_vectors_deinit(&vectors);
    fk_embedder_destroy(e);
}

static void test_bfloat16(void **state)
{
    (void)state;
    fk_model *half;
    fk_vectors vectors;
    assert_ok(fk_model_open("minilm-l6", &(fk_model_options){.device = {FK_CPU, 0}, .dtype = FK_BF16}, &half));
    fk_embedder *e = embedder_of(half);
    assert_ok(fk_embedder_encode(e, spans, SENTENCES_BF16, NULL, &vectors));
    double least = least_cosine(&vectors, SENTENCES_BF16, 0.004);
    print_message("bf16: 1 - %.3g\n", 1 - least);
    assert_true(least >= LEAST_COSINE_BF16);
    fk_vectors_deinit(&vectors);
    fk_embedder_destroy(e);
    fk_model_close(half);
}

int main(void)
{
    char path[4096];
    if (fk_asset_path("minilm-l6", NULL, path, sizeof path) != FK_OK) {
        fprintf(stderr, "SKIPPED: %s\n", fk_error_message());
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ids), cmocka_unit_test(test_vectors), cmocka_unit_test(test_bfloat16)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
