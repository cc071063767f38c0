/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a comparison as the judge sees it: a runner process, its socket, and the memory shared with it. */
#ifndef FK_BENCH_SIDE_H
#define FK_BENCH_SIDE_H

#include "bench/buffers.h"
#include "bench/process.h"
#include "bench/record.h"

typedef struct fkp_side {
    const char *role; /* "baseline", "candidate": stands in messages */
    bool judged;      /* its failures are the candidate's; failures of the other side leave the case NOT_RUN */
    fkp_hello hello;
    fk_backend *backend; /* the judge's */
    int log;             /* what the process writes */
    fkp_process process;
    int socket;
    fkp_message answer;
    uint64_t serial;
    fk_shared_memory memory;
    char *readback; /* host image of device memory; on the CPU the shared memory itself is read */
    double empty_call_s;
    char implementation[48];
} fkp_side;

void fkp_side_init(fkp_side *side, const char *role, bool judged, fk_backend *backend, const fkp_hello *hello);
/* Ends the process and frees everything. */
void fkp_side_deinit(fkp_side *side);
bool fkp_side_running(const fkp_side *side);
/* Starts the runner if it does not run. What goes wrong (here and below) ends the case: the status and its detail are in
 * the record, and the runner is gone unless it answered; FKP_PASSED when all went well. */
fkp_case_status fkp_side_start(fkp_side *side, double timeout_s, fkp_record *record);
/* Asks and waits for the answer; its reply stands in side->answer. */
fkp_case_status fkp_side_ask(fkp_side *side, fkp_message_type type, const fkp_part *parts, int num_parts, int fd,
                             double timeout_s, fkp_record *record);
static inline const fkp_reply *fkp_side_reply(const fkp_side *side)
{
    return side->answer.payload;
}
static inline const double *fkp_side_seconds(const fkp_side *side)
{
    return (const double *)(fkp_side_reply(side) + 1);
}

/* Creates the memory of a layout and tells the runner; gives back what was there before. */
fkp_case_status fkp_side_share(fkp_side *side, const fkp_layout *layout, const fkp_case *c, double timeout_s,
                               fkp_record *record);
/* Copies a range of the judge's image into the side's memory, and back (returns the image of the side's memory). */
fk_status fkp_side_write(fkp_side *side, const char *image, fkp_range range);
fk_status fkp_side_read(fkp_side *side, fkp_range range, char **image);
/* Keeps the calls of a run to come as graphs; *recorded is false when they can't be kept. */
fkp_case_status fkp_side_record(fkp_side *side, const fkp_run_head *head, const int32_t *slots, double timeout_s,
                                fkp_record *record, bool *recorded);
/* Calls of the case in these slots, as head says. */
fkp_case_status fkp_side_run(fkp_side *side, const fkp_run_head *head, const int32_t *slots, double timeout_s, fkp_record *record);
/* Ends the runner's process; the next start makes a new one. */
void fkp_side_stop(fkp_side *side);

#endif
