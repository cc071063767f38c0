/* SPDX-License-Identifier: Apache-2.0 */
/* Which sequences compute which tokens in the next step: continuous batching over a paged cache. Pure logic over numbers, so
 * that it is tested with random events and no model.
 *
 * A step is either a prefill (new tokens of sequences that have not answered yet, in chunks of at most max_batched_tokens
 * together) or a decode (one token of every sequence that has). They are not mixed: a decode step then always has one query
 * a sequence and takes the decode attention kernels, and what a request gets does not depend on who arrives beside it.
 * Prefill goes first, so that the decode batch fills up, but never twice in a row while others wait to decode: an answer in
 * progress stalls for one chunk at most.
 *
 * Requests are served in order of arrival. One is admitted when its tokens fit the free blocks; nothing is reserved for
 * tokens to come. When a decode finds no free block, the newest sequence gives its blocks back and starts over later from
 * its prompt and the tokens it has (its answer does not change). Until some sequence ends nothing is admitted then: the
 * cache is known to be full. The oldest sequence is never the one that gives way, so every request comes to its end. */
#ifndef FK_RUNTIME_SCHEDULER_H
#define FK_RUNTIME_SCHEDULER_H

#include "runtime/block_pool.h"

typedef struct fk_scheduler_limits {
    int64_t max_num_seqs, max_batched_tokens, block_size, num_blocks;
} fk_scheduler_limits;

typedef struct fk_sequence {
    int64_t request; /* number in order of arrival */
    int32_t *tokens; /* prompt, then answer */
    int64_t num_tokens, num_prompt;
    int64_t num_computed; /* tokens whose keys and values are in the cache */
    int64_t max_tokens;   /* prompt and answer together */
    int32_t *blocks;
    int64_t num_blocks;
    bool answering;   /* prefill is done: decodes one token a step */
    int64_t num_preempted;
    void *user;       /* the owner's */
} fk_sequence;

/* One sequence's part of a step: tokens [start, start + count) of it. */
typedef struct fk_schedule_item {
    fk_sequence *sequence;
    int64_t start, count;
    bool wants_token; /* the chunk reaches the last token: the next one follows from it */
} fk_schedule_item;

typedef struct fk_schedule {
    fk_schedule_item *items; /* [max_num_seqs], in order of arrival */
    int64_t num_items, num_tokens;
    bool prefill;
} fk_schedule;

typedef struct fk_scheduler {
    fk_scheduler_limits limits;
    fk_block_pool pool;
    fk_sequence **running, **waiting; /* each in order of arrival; everything that runs arrived before what waits */
    int64_t num_running, num_waiting, waiting_capacity;
    int64_t next_request;
    fk_schedule schedule;
    bool last_was_prefill;
    bool full; /* a sequence gave way: nothing is admitted until one ends */
    int64_t num_preemptions;
} fk_scheduler;

/* Caller's storage. */
fk_status fk_scheduler_init(fk_scheduler *scheduler, const fk_scheduler_limits *limits);
void fk_scheduler_deinit(fk_scheduler *scheduler);
/* Queues a prompt whose sequence ends at max_tokens at the latest (larger than length). FK_ERROR_INVALID when it could never
 * fit the cache. */
fk_status fk_scheduler_add(fk_scheduler *scheduler, const int32_t *prompt, int64_t length, int64_t max_tokens,
                           fk_sequence **out);
/* The next step; num_items is 0 when nothing is left to do. Valid until the next call. */
fk_status fk_scheduler_next(fk_scheduler *scheduler, const fk_schedule **out);
/* After the step: its tokens are in the cache. */
void fk_scheduler_computed(fk_scheduler *scheduler, const fk_schedule *schedule);
/* The token that an item wanted. */
void fk_scheduler_append(fk_scheduler *scheduler, fk_sequence *sequence, int32_t token);
/* Ends a sequence in any state: its blocks are free again, the struct is gone. */
void fk_scheduler_end(fk_scheduler *scheduler, fk_sequence *sequence);
/* NULL when there is no such request any more. */
fk_sequence *fk_scheduler_find(const fk_scheduler *scheduler, int64_t request);

#endif
