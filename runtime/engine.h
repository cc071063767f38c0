/* SPDX-License-Identifier: Apache-2.0 */
/* The language-model engine: sequences share paged key and value caches; each step prefills new sequences or decodes one
 * token of every running one. It owns the context it runs in. */
#ifndef FK_RUNTIME_ENGINE_H
#define FK_RUNTIME_ENGINE_H

#include <fk/ctx.h>
#include <fk/model.h>

typedef struct fk_engine fk_engine;

typedef struct fk_engine_options {
    int threads;            /* 0: all */
    bool references_only;
    int64_t max_num_seqs;   /* sequences that run at once; 0: 32 */
    int64_t max_model_len;  /* tokens of one sequence; 0: the model's own limit, at most what the cache holds */
    int64_t block_size;     /* tokens of a cache block; 0: 16 */
    int64_t num_blocks;     /* 0: enough for max_num_seqs sequences of max_model_len, capped by cache_bytes */
    int64_t cache_bytes;    /* 0: 1 GiB on the CPU, most of the free memory on a device */
    int64_t max_batched_tokens; /* new tokens of one prefill step; longer prompts are prefilled in chunks; 0: 2048 */
} fk_engine_options;

typedef struct fk_sampling {
    float temperature; /* 0: greedy */
    float top_p;       /* 1 or more, or 0: off */
    int32_t top_k;     /* 0 or less: off */
    int64_t seed;
    int64_t max_tokens;    /* new tokens; 0: to the end of the context */
    bool ignore_eos;
    const int32_t *stop_ids; /* besides the model's own; borrowed */
    int64_t num_stop_ids;
} fk_sampling;

typedef enum fk_finish { FK_RUNNING = 0, FK_FINISH_STOP, FK_FINISH_LENGTH, FK_FINISH_CANCELLED } fk_finish;

fk_status fk_engine_create(const fk_model *model, const fk_engine_options *options, fk_engine **out);
void fk_engine_destroy(fk_engine *engine);
/* For hooks, pins and candidates. */
fk_ctx *fk_engine_ctx(fk_engine *engine);
const fk_model *fk_engine_model(const fk_engine *engine);
int64_t fk_engine_max_model_len(const fk_engine *engine);

/* Queues a prompt. Refused at once, naming the numbers: an empty prompt, ids outside the vocabulary, a prompt longer than
 * the context, a sequence that can never fit the cache. */
fk_status fk_engine_add(fk_engine *engine, const int32_t *prompt, int64_t length, const fk_sampling *sampling,
                        int64_t *request);
/* Tokens fed instead of sampled ones (forced decoding of another run's continuation): borrowed, must outlive the request. */
fk_status fk_engine_force(fk_engine *engine, int64_t request, const int32_t *ids, int64_t count);
void fk_engine_cancel(fk_engine *engine, int64_t request);

/* What one step produced: a token of each sequence that got one, in order of arrival. */
typedef struct fk_step_token {
    int64_t request;
    int32_t id;
    fk_finish finish; /* FK_RUNNING when more follow */
} fk_step_token;

typedef struct fk_step {
    const fk_step_token *tokens; /* valid until the next step */
    int64_t num_tokens;
    int64_t num_new;         /* new tokens computed (prompt tokens in a prefill) */
    bool prefill;
    double seconds;          /* of the step, host clock, device finished */
    const float *logits;     /* [num_tokens, vocab_size] on the host, when asked for */
} fk_step;

/* Copies each step's logits to the host as float32 when on. */
void fk_engine_keep_logits(fk_engine *engine, bool on);
/* Runs one step; step->num_tokens and num_new are 0 when nothing is left to do. */
fk_status fk_engine_step(fk_engine *engine, fk_step *step);
bool fk_engine_idle(const fk_engine *engine);

#endif
