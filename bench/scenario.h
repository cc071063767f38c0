/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios: what capture and eval run. A YAML file (scenarios/<name>.yaml):
 *
 *   description: one line for `list scenarios`
 *   model: smollm2-135m          as --model takes it
 *   max_num_seqs: 8              sequences that run at once; 32 when absent
 *   max_tokens: 32               of each request that does not say
 *   requests:
 *     - prompt: "How tall is it?"    through the model's chat template
 *       system: "Be brief."          optional
 *       max_tokens: 24               optional
 *     - prompt: "Once upon a time"
 *       raw: true                    no template
 *     - prompt_ids: [1, 2, 3]        token ids
 *     - random_ids: 512              so many ids drawn from the scenario's name and the request's number
 *       count: 8                     so many such requests, each with its own ids; 1 when absent; for any kind
 *
 * For an encoder a request is a text to encode: max_tokens means nothing, raw and system are refused, and the first one is the query
 * that the others are scored against.
 *
 * Mistakes are named with their line. */
#ifndef FK_BENCH_SCENARIO_H
#define FK_BENCH_SCENARIO_H

#include <fk/model.h>

#include "runtime/engine.h"

typedef struct fkp_scenario_request {
    char *prompt, *system; /* NULL when absent */
    bool raw;
    int32_t *ids;
    int64_t num_ids;
    int64_t random_ids, count, max_tokens;
} fkp_scenario_request;

typedef struct fkp_scenario {
    char *name, *description, *model;
    int64_t max_num_seqs;
    fkp_scenario_request *requests;
    int64_t num_requests;
} fkp_scenario;

/* `name` is that of a file in `folder`, or a path (with a slash, or ending in .yaml). An unknown name gets the nearest one
 * offered. */
fk_status fkp_scenario_open(const char *name, const char *folder, fkp_scenario **out);
void fkp_scenario_close(fkp_scenario *scenario);

/* ---- the requests of a scenario, as token ids for one model */

typedef struct fkp_request {
    int32_t *ids;
    int64_t length, max_tokens;
} fkp_request;

typedef struct fkp_requests {
    fkp_request *items;
    int64_t count;
    int64_t max_num_seqs;   /* of the scenario, at most `count` */
    int64_t longest;        /* prompt and answer together, of any request */
} fkp_requests;

/* At most `most` of them (0: all). */
fk_status fkp_requests_create(const fkp_scenario *scenario, const fk_model *model, int64_t most, fkp_requests *out);
void fkp_requests_deinit(fkp_requests *requests);
/* An engine with room for these requests and no more. */
fk_engine_options fkp_requests_engine(const fkp_requests *requests);

/* What one run of all requests gave. */
typedef struct fkp_answers {
    int64_t count;       /* of requests */
    int32_t **ids;       /* [count][lengths[i]] */
    int64_t *lengths;
    double *first_s, *last_s; /* [count] time of the first and last token since the start */
    double seconds;      /* all of it */
    int64_t tokens;      /* sum of lengths */
} fkp_answers;

/* Runs the requests on the engine, greedy, each to its full length, so that both sides of a comparison do the same work.
 * `interrupted` may be NULL; FK_ERROR_INTERRUPTED when it says so. */
fk_status fkp_requests_run(const fkp_requests *requests, fk_engine *engine, bool (*interrupted)(void), fkp_answers *out);

/* The same, told token by token. */
typedef struct fkp_watch {
    bool (*interrupted)(void);
    const fkp_answers *forced; /* these answers are fed instead of the model's own choices; NULL: none */
    /* Token `step` of a request; logits [vocab_size] when the engine keeps them, else NULL. */
    void (*token)(void *user, int64_t request, int64_t step, const fk_step_token *token, const float *logits);
    void *user;
} fkp_watch;
fk_status fkp_requests_run_watched(const fkp_requests *requests, fk_engine *engine, const fkp_watch *watch, fkp_answers *out);
void fkp_answers_deinit(fkp_answers *answers);

#endif
