/* SPDX-License-Identifier: Apache-2.0 */
/* What judge and runner say to each other: binary messages with a length over a socket pair, descriptors of shared memory
 * beside them. The judge asks, the runner answers with the serial number of the question; what a runner says is evidence,
 * never a verdict. Both ends are the same executable, so structs travel as they are. */
#ifndef FK_BENCH_PROTOCOL_H
#define FK_BENCH_PROTOCOL_H

#include <fk/op.h>

#define FKP_RUNNER_FD 3 /* the runner's end of the socket pair */
#define FKP_MESSAGE_MAX_BYTES ((uint64_t)64 << 20)

typedef enum fkp_message_type {
    FKP_MESSAGE_HELLO = 1, /* fkp_hello -> fkp_reply */
    FKP_MESSAGE_MEMORY,    /* fkp_memory_head, guards[], one descriptor -> fkp_reply */
    FKP_MESSAGE_CASE,      /* fkp_case_head and what follows it -> fkp_reply */
    FKP_MESSAGE_FLUSH,     /* nothing -> fkp_reply */
    FKP_MESSAGE_RECORD,    /* fkp_run_head, slots[] -> fkp_reply: keeps the calls as graphs, one a sample, and runs none */
    FKP_MESSAGE_RUN,       /* fkp_run_head, slots[] -> fkp_reply, seconds[] */
    FKP_MESSAGE_REPLY,
} fkp_message_type;

/* First message: who the runner is. */
typedef struct fkp_hello {
    fk_device device;
    int32_t threads;
    char op[64];
    char candidate[1024]; /* path of the shared library; "" in the baseline's runner */
    char pin[32];         /* name of the baseline implementation; "" for the best */
} fkp_hello;

/* Answer to everything. */
typedef struct fkp_reply {
    int32_t status; /* fk_status */
    int32_t num_samples;
    int32_t calls; /* calls that were finished */
    int32_t queued;   /* RUN: all calls were on their way before the first sample began */
    int32_t recorded; /* RECORD: the graphs are there; else `error` says why the calls can't be kept */
    double empty_call_s;      /* HELLO: what timing a call of nothing measures */
    double enqueue_s;         /* RUN: what the host took to send all calls on their way */
    char implementation[48];  /* CASE: which implementation runs */
    char error[1024];
} fkp_reply;

/* Shared memory and its guard pages: byte ranges that the runner makes inaccessible. */
typedef struct fkp_range {
    uint64_t begin, end;
} fkp_range;
typedef struct fkp_memory_head {
    uint64_t bytes;
    uint64_t num_guards;
} fkp_memory_head;

/* A tensor argument as it stands in every slot; dtype FK_NONE when absent. */
typedef struct fkp_wire_tensor {
    int32_t dtype, ndim;
    int64_t shape[FK_MAX_NDIM], strides[FK_MAX_NDIM];
} fkp_wire_tensor;

/* One case: head; uint64_t scalars[num_fields] (bit patterns; strings: offset into the strings);
 * fkp_wire_tensor tensors[num_fields]; uint64_t offsets[num_slots][num_fields]; char strings[]. */
typedef struct fkp_case_head {
    int32_t num_slots, num_fields;
    uint64_t string_bytes;
} fkp_case_head;

/* Calls of the case in the given slots, in that order; int32_t slots[num_calls] follow. */
typedef struct fkp_run_head {
    int32_t num_calls;
    int32_t calls_per_sample; /* calls between two time stamps */
    int32_t flush_each;       /* flush caches before each sample, outside the time stamps */
    int32_t queue;            /* devices: flush caches until all calls are on their way, so that none waits for the host */
    int32_t replay;           /* the graphs of the last RECORD, which had the same calls, in place of the calls */
} fkp_run_head;

typedef struct fkp_message {
    uint32_t type;
    uint64_t serial, bytes;
    void *payload; /* owned by the message; grows and is reused */
    uint64_t capacity;
    int fd; /* descriptor that came along, -1 when none */
} fkp_message;

typedef enum fkp_receive_result {
    FKP_RECEIVED,
    FKP_CLOSED,    /* the other end is gone */
    FKP_TIMED_OUT, /* the deadline passed */
    FKP_BROKEN,    /* not our protocol */
} fkp_receive_result;

/* Sends parts[0..num_parts) as one message; fd -1: none goes along. FK_ERROR_IO when the other end is gone. */
typedef struct fkp_part {
    const void *data;
    uint64_t bytes;
} fkp_part;
fk_status fkp_message_send(int socket, fkp_message_type type, uint64_t serial, const fkp_part *parts, int num_parts, int fd);
/* Waits until `deadline_s` (fkp_now; 0: forever). */
fkp_receive_result fkp_message_receive(int socket, double deadline_s, fkp_message *message);
void fkp_message_deinit(fkp_message *message);

/* Monotonic seconds. */
double fkp_now(void);

#endif
