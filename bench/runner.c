/* SPDX-License-Identifier: Apache-2.0 */
/* A runner: maps the judge's buffers, wraps them as tensors and calls one implementation, the baseline or a candidate, when
 * told to. It knows no golden value, no seed and no tolerance. */
#define _GNU_SOURCE
#include "bench/runner.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fk/ctx.h>
#include <fk/door.h>

#include "bench/process.h"
#include "bench/protocol.h"
#include "core/candidate.h"
#include "core/threads.h"

#define EMPTY_CALLS 1000

typedef struct runner {
    fkp_hello hello;
    fk_ctx *ctx;
    fk_backend *backend;
    const fk_op *op;
    fk_candidate *candidate;
    const fk_impl *impl;
    fk_shared_memory memory;
    /* the case */
    int num_slots;
    char *args;         /* args structs of all slots, args_size apart */
    fk_tensor *tensors; /* [num_slots][num_fields] */
    char *strings;
    void **events; /* time stamps */
    int num_events;
    double *seconds;
    int max_samples;
    void *lead; /* device memory that is filled while the host sends calls */
    double fill_s; /* of filling it once */
    double call_enqueue_s[2]; /* least that the host took to send a call of the case on its way, [1] in a graph; 0: unknown */
    bool primed;   /* the case was called where its memory lies now: whatever it needs besides is there */
    void **graphs; /* recorded samples */
    int num_graphs;
    int32_t graph_calls, graph_calls_per_sample; /* as they were recorded */
} runner;

/* The process may use so many processors: the first ones of its mask. Threads of every pool inherit it. */
static void restrict_processors(int threads)
{
    cpu_set_t all, some;
    if (threads <= 0 || sched_getaffinity(0, sizeof all, &all) != 0) return;
    CPU_ZERO(&some);
    for (int i = 0, n = 0; i < CPU_SETSIZE && n < threads; i++)
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &some);
            n++;
        }
    sched_setaffinity(0, sizeof some, &some);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* At least so many events. */
static fk_status need_events(runner *r, int count)
{
    if (count <= r->num_events) return FK_OK;
    void **events = realloc(r->events, (size_t)count * sizeof *events);
    if (!events) return fk_fail(FK_ERROR_MEMORY, "out of memory for %d events", count);
    r->events = events;
    for (; r->num_events < count; r->num_events++) FK_TRY(r->backend->event_create(r->backend, &r->events[r->num_events]));
    return FK_OK;
}

static fk_status stamp(runner *r, int event)
{
    return r->backend->event_record(r->backend, fk_ctx_stream(r->ctx), r->events[event]);
}

static fk_status elapsed(runner *r, int from, int to, double *seconds)
{
    return r->backend->event_elapsed(r->backend, r->events[from], r->events[to], seconds);
}

/* What the time stamps of a call of nothing are apart. */
static fk_status measure_empty_call(runner *r, double *out)
{
    double *seconds = calloc(EMPTY_CALLS, sizeof *seconds);
    if (!seconds) return fk_fail(FK_ERROR_MEMORY, "out of memory");
    fk_status status = FK_OK;
    for (int i = 0; i < EMPTY_CALLS && status == FK_OK; i++) {
        status = stamp(r, 0);
        if (status == FK_OK) status = stamp(r, 1);
        if (status == FK_OK) status = elapsed(r, 0, 1, &seconds[i]);
    }
    qsort(seconds, EMPTY_CALLS, sizeof *seconds, compare_doubles);
    *out = seconds[EMPTY_CALLS / 2];
    free(seconds);
    return status;
}

static fk_status handle_hello(runner *r, const fkp_message *m, fkp_reply *reply)
{
    if (m->bytes != sizeof r->hello) return fk_fail(FK_ERROR_INTERNAL, "greeting of %llu bytes", (unsigned long long)m->bytes);
    memcpy(&r->hello, m->payload, sizeof r->hello);
    restrict_processors(r->hello.threads);
    r->op = fk_op_find(r->hello.op);
    if (!r->op) return fk_fail(FK_ERROR_INTERNAL, "unknown operator %s", r->hello.op);
    fk_ctx_options options = {.device = r->hello.device, .threads = r->hello.threads};
    FK_TRY(fk_ctx_create(&options, &r->ctx));
    r->backend = fk_ctx_backend(r->ctx);
    FK_TRY(need_events(r, 2));
    if (r->hello.pin[0]) FK_TRY(fk_door_pin(r->ctx, r->op, r->hello.pin));
    if (r->hello.candidate[0]) {
        FK_TRY(fk_candidate_open(r->hello.candidate, r->op, (fk_device_type)r->hello.device.type, &r->candidate));
        FK_TRY(fk_door_install(r->ctx, fk_candidate_impl(r->candidate)));
    }
    return measure_empty_call(r, &reply->empty_call_s);
}

/* Guard pages make an access outside a tensor's region fault at once; only host memory can have them. */
static fk_status handle_memory(runner *r, const fkp_message *m)
{
    fkp_memory_head head;
    if (m->bytes < sizeof head || m->fd < 0) return fk_fail(FK_ERROR_INTERNAL, "memory message without memory");
    memcpy(&head, m->payload, sizeof head);
    if (m->bytes != sizeof head + head.num_guards * sizeof(fkp_range)) return fk_fail(FK_ERROR_INTERNAL, "memory message cut off");
    if (r->memory.data) r->backend->shared_close(r->backend, &r->memory);
    FK_TRY(r->backend->shared_open(r->backend, m->fd, head.bytes, &r->memory));
    /* Page tables are filled now, not by the first timed calls. */
    if (r->backend->device.type == FK_CPU) madvise(r->memory.data, r->memory.bytes, MADV_POPULATE_WRITE);
    const fkp_range *guards = (const fkp_range *)((const char *)m->payload + sizeof head);
    for (uint64_t i = 0; i < head.num_guards; i++)
        if (mprotect((char *)r->memory.data + guards[i].begin, guards[i].end - guards[i].begin, PROT_NONE) != 0)
            return fk_fail(FK_ERROR_MEMORY, "guard page %llu", (unsigned long long)i);
    return FK_OK;
}

static void forget_graphs(runner *r)
{
    for (int i = 0; i < r->num_graphs; i++) r->backend->graph_destroy(r->backend, r->graphs[i]);
    free(r->graphs);
    r->graphs = NULL;
    r->num_graphs = 0;
}

static void forget_case(runner *r)
{
    forget_graphs(r);
    free(r->args);
    free(r->tensors);
    free(r->strings);
    r->args = NULL;
    r->tensors = NULL;
    r->strings = NULL;
    r->num_slots = 0;
    r->call_enqueue_s[0] = r->call_enqueue_s[1] = 0;
}

/* Writes the argument structs of all slots. */
static fk_status build_slots(runner *r, const fkp_case_head *head, const uint64_t *scalars, const fkp_wire_tensor *tensors,
                             const uint64_t *offsets)
{
    for (int s = 0; s < r->num_slots; s++)
        for (int f = 0; f < r->op->num_fields; f++) {
            const fk_field *field = &r->op->fields[f];
            void *at = fk_op_field_ptr(r->op, r->args + (size_t)s * r->op->args_size, f);
            if (fk_field_is_tensor(field)) {
                const fkp_wire_tensor *w = &tensors[f];
                if (w->dtype == FK_NONE) continue;
                fk_tensor *t = &r->tensors[s * r->op->num_fields + f];
                *t = (fk_tensor){.dtype = (fk_dtype)w->dtype, .ndim = w->ndim, .device = r->backend->device};
                memcpy(t->shape, w->shape, sizeof t->shape);
                memcpy(t->strides, w->strides, sizeof t->strides);
                uint64_t offset = offsets[(size_t)s * (size_t)r->op->num_fields + (size_t)f];
                if (offset + fk_tensor_span_bytes(t) > r->memory.bytes)
                    return fk_fail(FK_ERROR_INTERNAL, "%s lies outside the shared memory", field->name);
                t->data = (char *)r->memory.data + offset;
                memcpy(at, &t, sizeof t);
            } else if (field->attr_type == FK_ATTR_string) {
                const char *text = scalars[f] < head->string_bytes ? r->strings + scalars[f] : NULL;
                memcpy(at, &text, sizeof text);
            } else {
                size_t size = field->attr_type == FK_ATTR_int ? sizeof(int64_t)
                              : field->attr_type == FK_ATTR_float ? sizeof(float) : sizeof(bool);
                memcpy(at, &scalars[f], size); /* little-endian: the value stands first */
            }
        }
    return FK_OK;
}

/* Scratch memory begins somewhere else for each placement of the case: where it lies decides which part of a device's cache
 * serves it, several percent of a short call. */
static fk_status shift_scratch(runner *r)
{
    uint32_t steps = 0;
    if (getrandom(&steps, sizeof steps, 0) != sizeof steps) return fk_fail(FK_ERROR_IO, "no random numbers");
    fk_ctx_reset(r->ctx);
    return fk_ctx_scratch(r->ctx, 256 * (size_t)(1 + steps % 4096)) ? FK_OK : fk_ctx_status(r->ctx);
}

static fk_status handle_case(runner *r, const fkp_message *m, fkp_reply *reply)
{
    fkp_case_head head;
    forget_case(r);
    if (m->bytes < sizeof head) return fk_fail(FK_ERROR_INTERNAL, "case message cut off");
    memcpy(&head, m->payload, sizeof head);
    size_t fields = (size_t)r->op->num_fields, slots = (size_t)head.num_slots;
    if (head.num_fields != r->op->num_fields || head.num_slots < 1 ||
        m->bytes != sizeof head + fields * (8 + sizeof(fkp_wire_tensor) + 8 * slots) + head.string_bytes)
        return fk_fail(FK_ERROR_INTERNAL, "case message of the wrong size");
    const uint64_t *scalars = (const uint64_t *)((const char *)m->payload + sizeof head);
    const fkp_wire_tensor *tensors = (const fkp_wire_tensor *)(scalars + fields);
    const uint64_t *offsets = (const uint64_t *)(tensors + fields);
    r->num_slots = head.num_slots;
    r->args = calloc(slots, r->op->args_size);
    r->tensors = calloc(slots * fields, sizeof *r->tensors);
    r->strings = malloc(head.string_bytes + 1);
    if (!r->args || !r->tensors || !r->strings) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu slots", slots);
    memcpy(r->strings, offsets + slots * fields, head.string_bytes);
    r->strings[head.string_bytes] = 0;
    FK_TRY(build_slots(r, &head, scalars, tensors, offsets));
    r->primed = false;
    fk_ctx_clear(r->ctx);
    FK_TRY(shift_scratch(r));
    r->impl = fk_door_select(r->ctx, r->op, r->args);
    if (!r->impl) return fk_ctx_status(r->ctx);
    snprintf(reply->implementation, sizeof reply->implementation, "%s", r->impl->name);
    return FK_OK;
}

static fk_status call(runner *r, int slot)
{
    return fk_door_run(r->ctx, r->op, r->impl, r->args + (size_t)slot * r->op->args_size);
}

/* Reads the argument structs of a call: a caller has just written them, only the tensors' data is cold. */
static void warm_arguments(const runner *r, int slot)
{
    const volatile char *args = r->args + (size_t)slot * r->op->args_size;
    const volatile char *tensors = (const volatile char *)(r->tensors + (size_t)slot * (size_t)r->op->num_fields);
    for (size_t i = 0; i < r->op->args_size; i += 32) (void)args[i];
    for (size_t i = 0; i < (size_t)r->op->num_fields * sizeof(fk_tensor); i += 32) (void)tensors[i];
}

/* One sample, at once: time stamps around `count` calls. */
static fk_status sample_now(runner *r, const int32_t *slots, int count, bool flush, double *seconds)
{
    if (flush) FK_TRY(r->backend->flush_cache(r->backend, fk_ctx_stream(r->ctx)));
    for (int i = 0; i < count; i++) warm_arguments(r, slots[i]);
    FK_TRY(stamp(r, 0));
    for (int i = 0; i < count; i++) FK_TRY(call(r, slots[i]));
    FK_TRY(stamp(r, 1));
    return elapsed(r, 0, 1, seconds);
}

/* ---- Devices: samples are queued behind writes that empty the caches and last until the host has sent everything on its
 * way, so that no call waits for the host. Where one lead-in serves a whole batch, samples follow one another: the stamp
 * that ends one begins the next, and what the ticks of the clock take from one they give to its neighbour. */

#define LEAD_BYTES ((size_t)256 << 20) /* more than any cache: filling it leaves nothing else there */
#define FIRST_ENQUEUE_S 30e-6          /* of a call, before it is known */
#define LONGEST_LEAD_S 5e-3            /* a call that waits for the device would ask for more and more */

static fk_status fill_lead(runner *r)
{
    return r->backend->fill_bytes(r->backend, fk_ctx_stream(r->ctx), r->lead, 0x5a, LEAD_BYTES);
}

static fk_status make_lead(runner *r)
{
    if (r->lead) return FK_OK;
    FK_TRY(r->backend->alloc(r->backend, LEAD_BYTES, &r->lead));
    for (int i = 0; i < 2; i++) { /* the second counts */
        FK_TRY(stamp(r, 0));
        FK_TRY(fill_lead(r));
        FK_TRY(stamp(r, 1));
        FK_TRY(elapsed(r, 0, 1, &r->fill_s));
    }
    if (r->fill_s < 1e-6) r->fill_s = 1e-6;
    return FK_OK;
}

/* Leaves the caches cold and the device busy for as long as the host needs to send `calls` calls. */
static fk_status lead_in(runner *r, const fkp_run_head *head, int calls)
{
    double call_s = r->call_enqueue_s[head->replay != 0], wanted = 20e-6 + 1.5 * calls * (call_s > 0 ? call_s : FIRST_ENQUEUE_S);
    if (wanted > LONGEST_LEAD_S) wanted = LONGEST_LEAD_S;
    for (double lead = 0; lead < wanted; lead += r->fill_s) FK_TRY(fill_lead(r));
    return r->backend->flush_cache(r->backend, fk_ctx_stream(r->ctx));
}

/* The calls of sample s. */
static fk_status send_sample(runner *r, const fkp_run_head *head, const int32_t *slots, int s)
{
    int from = s * head->calls_per_sample, to = from + head->calls_per_sample;
    if (head->replay) return r->backend->graph_replay(r->backend, fk_ctx_stream(r->ctx), r->graphs[s]);
    for (int i = from; i < to && i < head->num_calls; i++) FK_TRY(call(r, slots[i]));
    return FK_OK;
}

/* Samples one by one, each with its own lead-in; stamps 2 s and 2 s + 1 are those of sample s. */
static fk_status send_each(runner *r, const fkp_run_head *head, const int32_t *slots, int samples, double *enqueue_s)
{
    *enqueue_s = 0;
    for (int s = 0; s < samples; s++) {
        FK_TRY(lead_in(r, head, head->calls_per_sample));
        double begin = fkp_now();
        FK_TRY(stamp(r, 2 * s));
        FK_TRY(send_sample(r, head, slots, s));
        FK_TRY(stamp(r, 2 * s + 1));
        *enqueue_s += fkp_now() - begin;
    }
    return FK_OK;
}

/* Samples behind one lead-in; stamps s and s + 1 are those of sample s. */
static fk_status send_all(runner *r, const fkp_run_head *head, const int32_t *slots, int samples, double *enqueue_s)
{
    FK_TRY(lead_in(r, head, head->num_calls));
    double begin = fkp_now();
    FK_TRY(stamp(r, 0));
    for (int s = 0; s < samples; s++) {
        FK_TRY(send_sample(r, head, slots, s));
        FK_TRY(stamp(r, s + 1));
    }
    *enqueue_s = fkp_now() - begin;
    return FK_OK;
}

static fk_status queued_samples(runner *r, const fkp_run_head *head, const int32_t *slots, int samples, fkp_reply *reply)
{
    bool each = head->flush_each;
    int before = each ? 2 * samples : samples + 1; /* stamp of the beginning of the lead-in */
    double lead_s = 0, begin, sent;
    FK_TRY(need_events(r, before + 1));
    FK_TRY(make_lead(r));
    begin = fkp_now();
    FK_TRY(stamp(r, before));
    FK_TRY(each ? send_each(r, head, slots, samples, &reply->enqueue_s) : send_all(r, head, slots, samples, &reply->enqueue_s));
    sent = fkp_now();
    FK_TRY(fk_ctx_synchronize(r->ctx));
    for (int s = 0; s < samples; s++) FK_TRY(elapsed(r, each ? 2 * s : s, each ? 2 * s + 1 : s + 1, &r->seconds[s]));
    FK_TRY(elapsed(r, before, 0, &lead_s));
    reply->queued = each || sent - begin < lead_s;
    double call_s = reply->enqueue_s / head->num_calls, *least = &r->call_enqueue_s[head->replay != 0];
    if (!(*least > 0) || call_s < *least) *least = call_s;
    reply->num_samples = samples;
    reply->calls = head->num_calls;
    return FK_OK;
}

/* Head and slots of a RECORD or RUN message. */
static fk_status read_run(const runner *r, const fkp_message *m, fkp_run_head *head, const int32_t **slots)
{
    if (m->bytes < sizeof *head || !r->impl) return fk_fail(FK_ERROR_INTERNAL, "run before a case");
    memcpy(head, m->payload, sizeof *head);
    if (head->num_calls < 1 || head->calls_per_sample < 1 || m->bytes != sizeof *head + 4 * (uint64_t)head->num_calls)
        return fk_fail(FK_ERROR_INTERNAL, "run message cut off");
    *slots = (const int32_t *)((const char *)m->payload + sizeof *head);
    for (int i = 0; i < head->num_calls; i++)
        if ((*slots)[i] < 0 || (*slots)[i] >= r->num_slots)
            return fk_fail(FK_ERROR_INTERNAL, "slot %d of %d", (*slots)[i], r->num_slots);
    return FK_OK;
}

static int samples_of(const fkp_run_head *head)
{
    return (head->num_calls + head->calls_per_sample - 1) / head->calls_per_sample;
}

/* Keeps sample s as a graph. */
static fk_status record_sample(runner *r, const fkp_run_head *head, const int32_t *slots, int s)
{
    void *stream = fk_ctx_stream(r->ctx);
    FK_TRY(r->backend->graph_begin(r->backend, stream));
    fk_status sent = send_sample(r, head, slots, s), status = r->backend->graph_end(r->backend, stream, &r->graphs[s]);
    if (r->graphs[s]) r->num_graphs = s + 1;
    return sent != FK_OK ? sent : status;
}

/* Calls that no graph holds are no failure: they are timed as they are. */
static fk_status handle_record(runner *r, const fkp_message *m, fkp_reply *reply)
{
    fkp_run_head head;
    const int32_t *slots;
    FK_TRY(read_run(r, m, &head, &slots));
    forget_graphs(r);
    if (!r->backend->graph_begin) return FK_OK;
    int samples = samples_of(&head);
    r->graphs = calloc((size_t)samples, sizeof *r->graphs);
    if (!r->graphs) return fk_fail(FK_ERROR_MEMORY, "out of memory for %d graphs", samples);
    fk_ctx_clear(r->ctx);
    if (!r->primed) FK_TRY(call(r, slots[0])); /* scratch grows now: no graph can hold that */
    r->primed = true;
    FK_TRY(fk_ctx_synchronize(r->ctx));
    head.replay = false;
    for (int s = 0; s < samples; s++)
        if (record_sample(r, &head, slots, s) != FK_OK) {
            snprintf(reply->error, sizeof reply->error, "%s", fk_error_message());
            fk_ctx_clear(r->ctx);
            forget_graphs(r);
            return FK_OK;
        }
    r->graph_calls = head.num_calls;
    r->graph_calls_per_sample = head.calls_per_sample;
    reply->recorded = true;
    return fk_ctx_synchronize(r->ctx);
}

static fk_status handle_run(runner *r, const fkp_message *m, fkp_reply *reply)
{
    fkp_run_head head;
    const int32_t *slots;
    FK_TRY(read_run(r, m, &head, &slots));
    int samples = samples_of(&head);
    if (head.replay && (!head.queue || r->num_graphs != samples || r->graph_calls != head.num_calls ||
                        r->graph_calls_per_sample != head.calls_per_sample))
        return fk_fail(FK_ERROR_INTERNAL, "replay of what was not recorded");
    if (samples > r->max_samples) {
        free(r->seconds);
        r->max_samples = 0;
        r->seconds = calloc((size_t)samples, sizeof *r->seconds);
        if (!r->seconds) return fk_fail(FK_ERROR_MEMORY, "out of memory for %d samples", samples);
        r->max_samples = samples;
    }
    fk_ctx_clear(r->ctx);
    if (head.queue) return queued_samples(r, &head, slots, samples, reply);
    for (int i = 0; i < head.num_calls; i += head.calls_per_sample) {
        int count = head.num_calls - i < head.calls_per_sample ? head.num_calls - i : head.calls_per_sample;
        FK_TRY(sample_now(r, slots + i, count, head.flush_each, &r->seconds[reply->num_samples]));
        reply->num_samples++;
        reply->calls += count;
    }
    return fk_ctx_synchronize(r->ctx);
}

static fk_status handle(runner *r, const fkp_message *m, fkp_reply *reply)
{
    if (m->type != FKP_MESSAGE_HELLO && !r->ctx) return fk_fail(FK_ERROR_INTERNAL, "message %u before the greeting", m->type);
    switch (m->type) {
    case FKP_MESSAGE_HELLO: return handle_hello(r, m, reply);
    case FKP_MESSAGE_MEMORY: return handle_memory(r, m);
    case FKP_MESSAGE_CASE: return handle_case(r, m, reply);
    case FKP_MESSAGE_FLUSH:
        FK_TRY(r->backend->flush_cache(r->backend, fk_ctx_stream(r->ctx)));
        return fk_ctx_synchronize(r->ctx);
    case FKP_MESSAGE_RECORD: return handle_record(r, m, reply);
    case FKP_MESSAGE_RUN: return handle_run(r, m, reply);
    default: return fk_fail(FK_ERROR_INTERNAL, "message of unknown type %u", m->type);
    }
}

int fkp_runner_main(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){FKP_LOG_MAX_BYTES, FKP_LOG_MAX_BYTES}); /* a disk is not the candidate's to fill */
    fcntl(FKP_RUNNER_FD, F_SETFD, FD_CLOEXEC);
    runner r = {.memory = {.fd = -1}};
    fkp_message message = {.fd = -1};
    while (fkp_message_receive(FKP_RUNNER_FD, 0, &message) == FKP_RECEIVED) {
        fkp_reply reply = {0};
        reply.status = (int32_t)handle(&r, &message, &reply);
        if (reply.status != FK_OK)
            snprintf(reply.error, sizeof reply.error, "%s",
                     r.ctx && fk_ctx_status(r.ctx) != FK_OK ? fk_ctx_error(r.ctx) : fk_error_message());
        fkp_part parts[2] = {{&reply, sizeof reply}, {r.seconds, (uint64_t)reply.num_samples * sizeof *r.seconds}};
        if (fkp_message_send(FKP_RUNNER_FD, FKP_MESSAGE_REPLY, message.serial, parts, 2, -1) != FK_OK) break;
    }
    return 0; /* the judge closed the socket; the process ends and takes everything with it */
}
