/* SPDX-License-Identifier: Apache-2.0 */
/* The language-model engine: sequences share paged key and value caches; each step prefills sequences that have not answered
 * yet or decodes one token of every one that has (runtime/scheduler.h says which). It owns the context it runs in and belongs
 * to one thread. */
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
    int64_t cache_bytes;    /* 0: 1 GiB on the CPU, 0.85 of a device's memory less the weights */
    int64_t max_batched_tokens; /* new tokens of one prefill step; longer prompts are prefilled in chunks; 0: 2048 */
} fk_engine_options;

typedef struct fk_sampling {
    float temperature; /* 0: greedy */
    float top_p;       /* 1 or more, or 0: off */
    float min_p;       /* 0: off */
    int32_t top_k;     /* 0 or less: off */
    float presence_penalty, frequency_penalty; /* of tokens that the answer has, -2 to 2; 0: off */
    float repetition_penalty;                  /* of tokens that prompt or answer have, up to 10; 1 or 0: off */
    int64_t seed;
    int64_t max_tokens;    /* new tokens; 0 or more than the context has room for: to its end */
    bool ignore_eos;
    const int32_t *stop_ids; /* besides the model's own, also with ignore_eos; copied */
    int64_t num_stop_ids;
} fk_sampling;

typedef enum fk_finish { FK_RUNNING = 0, FK_FINISH_STOP, FK_FINISH_LENGTH } fk_finish;

fk_status fk_engine_create(const fk_model *model, const fk_engine_options *options, fk_engine **out);
void fk_engine_destroy(fk_engine *engine);
/* For hooks, pins and candidates. */
fk_ctx *fk_engine_ctx(fk_engine *engine);
const fk_model *fk_engine_model(const fk_engine *engine);
int64_t fk_engine_max_model_len(const fk_engine *engine);

/* Queues a prompt. Refused at once, naming the numbers: an empty prompt, ids outside the vocabulary, a prompt that leaves no
 * room in the context, a sequence that can never fit the cache. */
fk_status fk_engine_add(fk_engine *engine, const int32_t *prompt, int64_t length, const fk_sampling *sampling,
                        int64_t *request);
/* Tokens that the answer takes instead of sampled ones (forced decoding of another run's continuation), from its first on;
 * after `count` it samples again. Before the request's first step. */
fk_status fk_engine_force(fk_engine *engine, int64_t request, const int32_t *ids, int64_t count);
/* Drops the request, if it is still there; nothing more is heard of it. */
void fk_engine_cancel(fk_engine *engine, int64_t request);

/* What one step produced: a token of each sequence that got one, in order of arrival. */
typedef struct fk_step_token {
    int64_t request;
    int32_t id;      /* what the sequence goes on with */
    int32_t sampled; /* the model's own choice; differs from id under fk_engine_force only */
    fk_finish finish; /* FK_RUNNING when more follow */
} fk_step_token;

typedef struct fk_step {
    const fk_step_token *tokens; /* valid until the next step */
    int64_t num_tokens;
    int64_t num_new;         /* tokens computed (prompt tokens in a prefill) */
    bool prefill;
    double seconds;          /* of the step, host clock, device finished */
    const float *logits;     /* [num_tokens, vocab_size] on the host, when asked for */
} fk_step;

/* Copies each step's logits to the host as float32 when on. */
void fk_engine_keep_logits(fk_engine *engine, bool on);
/* Runs one step; step->num_new is 0 when nothing is left to do. After a failure the engine can only be destroyed: every
 * later step returns the same error. */
fk_status fk_engine_step(fk_engine *engine, fk_step *step);
bool fk_engine_idle(const fk_engine *engine);

typedef struct fk_engine_stats {
    int64_t num_running, num_waiting;
    int64_t num_blocks, free_blocks, block_size;
    int64_t num_preemptions; /* since the engine was made */
    int64_t cache_bytes;
} fk_engine_stats;
fk_engine_stats fk_engine_get_stats(const fk_engine *engine);

#endif
