/* SPDX-License-Identifier: Apache-2.0 */
/* BERT (arXiv:1810.04805) as an encoder of texts, in two ways. ColBERTv2 (arXiv:2112.01488): a short vector for each token,
 * compared by late interaction. Sentence embeddings (arXiv:1908.10084): one vector for each text, the mean over its tokens or
 * its first token, compared by the cosine. Which one it is follows from the head: with `dim` in the config it is ColBERT.
 * Field and weight names are those of transformers' BertModel, with or without "bert." before them, as checkpoints have it;
 * ColBERT's projection is `linear.weight` (https://github.com/stanford-futuredata/ColBERT). */
#include <string.h>

#include <fk/model.h>
#include <fk/ops.h>

/* ---- config */

typedef struct bert_config {
    int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads;
    int64_t max_position_embeddings, type_vocab_size, pad_token_id;
    double layer_norm_eps;
    int64_t dim;       /* ColBERT: features of a token's vector; 0: sentence embeddings */
    bool first_token;  /* sentence embeddings: the first token's vector, not the mean */
} bert_config;

/* The only value of a text field that is implemented; absent is right too. */
static fk_status only(const fk_config *from, const char *field, const char *value)
{
    const char *found = fk_config_string(from, field);
    if (!found || strcmp(found, value) == 0) return FK_OK;
    return fk_fail(FK_ERROR_UNSUPPORTED, "config field %s is '%s'; only '%s' is implemented", field, found, value);
}

static fk_status read_config(const fk_config *from, bert_config *c)
{
    FK_TRY(fk_config_int(from, "vocab_size", 1, &c->vocab_size));
    FK_TRY(fk_config_int(from, "hidden_size", 1, &c->hidden_size));
    FK_TRY(fk_config_int(from, "intermediate_size", 1, &c->intermediate_size));
    FK_TRY(fk_config_layers(from, &c->num_hidden_layers));
    FK_TRY(fk_config_int(from, "num_attention_heads", 1, &c->num_attention_heads));
    c->max_position_embeddings = 512;
    FK_TRY(fk_config_int_optional(from, "max_position_embeddings", 1, &c->max_position_embeddings));
    c->type_vocab_size = 2;
    FK_TRY(fk_config_int_optional(from, "type_vocab_size", 1, &c->type_vocab_size));
    c->layer_norm_eps = 1e-12;
    FK_TRY(fk_config_epsilon_optional(from, "layer_norm_eps", &c->layer_norm_eps));
    c->pad_token_id = 0;
    FK_TRY(fk_config_int_optional(from, "pad_token_id", 0, &c->pad_token_id));
    c->dim = 0;
    FK_TRY(fk_config_int_optional(from, "dim", 1, &c->dim));
    FK_TRY(only(from, "hidden_act", "gelu"));
    FK_TRY(only(from, "position_embedding_type", "absolute"));
    const char *pooling = fk_config_string(from, "pooling_mode");
    c->first_token = pooling && strcmp(pooling, "cls") == 0;
    if (pooling && !c->first_token) FK_TRY(only(from, "pooling_mode", "mean"));
    if (c->hidden_size % c->num_attention_heads != 0)
        return fk_fail(FK_ERROR_INVALID, "hidden_size %lld is no multiple of num_attention_heads %lld", (long long)c->hidden_size,
                       (long long)c->num_attention_heads);
    return FK_OK;
}

/* ---- weights */

typedef struct bert {
    bert_config config;
    fk_bert_model_module model;
    fk_replicated_linear_module linear; /* ColBERT's projection [dim, D] */
    fk_colbertv2_token_mask_module token_mask;
    fk_colbertv2_max_sim_module max_sim;
} bert;

/* One kind of weight of all layers, [L, rows, cols], or [L, rows] for cols 0; in each layer the tensors of `suffixes` one after
 * another. */
static fk_tensor stack(fk_weights *weights, const bert_config *c, const char *prefix, const char *const *suffixes, int64_t rows,
                       int64_t cols)
{
    int64_t layers = c->num_hidden_layers, each = 0;
    while (suffixes[each]) each++;
    fk_weights_part *parts = fk_weights_alloc(weights, (size_t)(layers * each) * sizeof *parts);
    if (!parts) return FK_ABSENT;
    for (int64_t i = 0; i < layers * each; i++)
        parts[i] = (fk_weights_part){
            fk_weights_name(weights, "%sencoder.layer.%lld.%s", prefix, (long long)(i / each), suffixes[i % each]), rows / each};
    fk_tensor all = fk_weights_merge(weights, (int)(layers * each), parts, cols ? 2 : 1, cols ? cols : 1);
    if (!fk_tensor_present(&all)) return FK_ABSENT;
    return fk_tensor_reshape(all, cols ? 3 : 2, (int64_t[]){layers, rows, cols});
}

static void load(fk_weights *weights, bert *m)
{
    const bert_config *c = &m->config;
    int64_t d = c->hidden_size, wide = c->intermediate_size;
    const char *prefix = fk_weights_have(weights, "bert.embeddings.word_embeddings.weight") ? "bert." : "";
#define NAME(suffix) fk_weights_name(weights, "%s" suffix, prefix)
#define STACK(rows, cols, ...) stack(weights, c, prefix, (const char *const[]){__VA_ARGS__, NULL}, rows, cols)
    m->model = (fk_bert_model_module){
        .path = NAME("bert"),
        .num_attention_heads = c->num_attention_heads,
        .layer_norm_eps = (float)c->layer_norm_eps,
        .word_embeddings = fk_weights_get(weights, NAME("embeddings.word_embeddings.weight"), 2, (int64_t[]){c->vocab_size, d}),
        .position_embeddings = fk_weights_get(weights, NAME("embeddings.position_embeddings.weight"), 2,
                                              (int64_t[]){c->max_position_embeddings, d}),
        .token_type_embeddings = fk_weights_get(weights, NAME("embeddings.token_type_embeddings.weight"), 2,
                                                (int64_t[]){c->type_vocab_size, d}),
        .embeddings_norm = fk_weights_get(weights, NAME("embeddings.LayerNorm.weight"), 1, &d),
        .embeddings_norm_bias = fk_weights_get(weights, NAME("embeddings.LayerNorm.bias"), 1, &d),
        .qkv = STACK(3 * d, d, "attention.self.query.weight", "attention.self.key.weight", "attention.self.value.weight"),
        .qkv_bias = STACK(3 * d, 0, "attention.self.query.bias", "attention.self.key.bias", "attention.self.value.bias"),
        .attention_dense = STACK(d, d, "attention.output.dense.weight"),
        .attention_dense_bias = STACK(d, 0, "attention.output.dense.bias"),
        .attention_norm = STACK(d, 0, "attention.output.LayerNorm.weight"),
        .attention_norm_bias = STACK(d, 0, "attention.output.LayerNorm.bias"),
        .intermediate = STACK(wide, d, "intermediate.dense.weight"),
        .intermediate_bias = STACK(wide, 0, "intermediate.dense.bias"),
        .output_dense = STACK(d, wide, "output.dense.weight"),
        .output_dense_bias = STACK(d, 0, "output.dense.bias"),
        .output_norm = STACK(d, 0, "output.LayerNorm.weight"),
        .output_norm_bias = STACK(d, 0, "output.LayerNorm.bias"),
    };
#undef NAME
#undef STACK
}

static fk_status create(fk_weights *weights, const fk_config *from, void **model, fk_model_info *info)
{
    bert *m = fk_weights_alloc(weights, sizeof *m);
    if (!m) return fk_weights_status(weights);
    bert_config *c = &m->config;
    FK_TRY(read_config(from, c));
    load(weights, m);
    if (c->dim > 0)
        m->linear = (fk_replicated_linear_module){
            .path = "linear", .weight = fk_weights_get(weights, "linear.weight", 2, (int64_t[]){c->dim, c->hidden_size})};
    m->token_mask = (fk_colbertv2_token_mask_module){.path = "mask", .pad_token_id = c->pad_token_id};
    m->max_sim = (fk_colbertv2_max_sim_module){.path = "score"};
    *info = (fk_model_info){.vocab_size = c->vocab_size,
                            .max_position_embeddings = c->max_position_embeddings,
                            .num_layers = c->num_hidden_layers,
                            .embedding_size = c->dim > 0 ? c->dim : c->hidden_size,
                            .token_vectors = c->dim > 0,
                            .pad_token_id = c->pad_token_id};
    *model = m;
    return fk_weights_status(weights);
}

/* ---- forward */

static fk_tensor encode(fk_ctx *ctx, const void *model, const fk_encode_batch *b)
{
    const bert *m = model;
    fk_tensor h = fk_bert_model(ctx, &m->model, b->input_ids, b->positions, b->token_type_ids, b->cu_seqlens, b->max_seqlen).output;
    if (m->config.dim > 0) { /* ColBERT (arXiv:2004.12832 section 3.2): E = normalize(linear(BERT(text))), a row a token */
        h = fk_replicated_linear(ctx, &m->linear, h).output; /* [T, dim] */
    } else if (m->config.first_token) {
        fk_tensor first = fk_tensor_slice(b->cu_seqlens, 0, 0, b->cu_seqlens.shape[0] - 1);
        h = fk_embedding(ctx, h, first).output; /* [B, D]: picking rows is what embedding does */
    } else {
        h = fk_mean_pool(ctx, h, b->cu_seqlens).output; /* [B, D] */
    }
    return fk_l2_norm(ctx, h, 1e-12f).output;
}

static fk_tensor score(fk_ctx *ctx, const void *model, const fk_score_batch *b)
{
    const bert *m = model;
    int64_t n = b->vectors.shape[0];
    if (m->config.dim == 0) { /* vectors of length 1: their product is the cosine */
        fk_tensor vectors = fk_tensor_reshape(b->vectors, 2, (int64_t[]){n, b->vectors.shape[2]});
        fk_tensor cosines = fk_linear(ctx, vectors, b->query, FK_ABSENT).output; /* [N, 1] */
        return fk_tensor_present(&cosines) ? fk_tensor_reshape(cosines, 1, &n) : cosines;
    }
    fk_tensor query = fk_tensor_reshape(b->query, 3, (int64_t[]){1, b->query.shape[0], b->query.shape[1]});
    fk_tensor mask = fk_colbertv2_token_mask(ctx, &m->token_mask, b->ids, b->skiplist).mask; /* [N, S] */
    return fk_colbertv2_max_sim(ctx, &m->max_sim, query, b->vectors, mask).scores;           /* arXiv:2004.12832 equation 3 */
}

static const char *const model_types[] = {"bert", NULL};

extern const fk_model_class fk_colbertv2_class;
const fk_model_class fk_colbertv2_class = {
    .architecture = "colbertv2", .model_types = model_types, .create = create, .encode = encode, .score = score};
