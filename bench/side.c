/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, asking and losing runners. */
#define _GNU_SOURCE
#include "bench/side.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/runner.h"

#define SLOW_BYTES_S 100e6 /* filling the page tables of shared memory takes no longer, however busy the machine is */

void fkp_side_init(fkp_side *side, const char *role, bool judged, fk_backend *backend, const fkp_hello *hello)
{
    *side = (fkp_side){.role = role, .judged = judged, .hello = *hello, .backend = backend, .log = -1, .socket = -1,
                       .answer = {.fd = -1}, .memory = {.fd = -1}};
}

static void release_memory(fkp_side *side)
{
    if (side->memory.data) side->backend->shared_close(side->backend, &side->memory);
    side->memory = (fk_shared_memory){.fd = -1};
    free(side->readback);
    side->readback = NULL;
}

void fkp_side_stop(fkp_side *side)
{
    if (side->socket >= 0) close(side->socket);
    side->socket = -1;
    fkp_process_kill(&side->process);
    if (side->log >= 0) close(side->log);
    side->log = -1;
    release_memory(side);
}

void fkp_side_deinit(fkp_side *side)
{
    fkp_side_stop(side);
    fkp_message_deinit(&side->answer);
}

bool fkp_side_running(const fkp_side *side)
{
    return side->process.pid > 0;
}

/* The end of the runner's log, on a line of its own. */
static void append_log(const fkp_side *side, fkp_record *record)
{
    char tail[600];
    fkp_log_tail(side->log, tail, sizeof tail);
    size_t used = strlen(record->detail);
    if (tail[0]) snprintf(record->detail + used, sizeof record->detail - used, "; it wrote: %s", tail);
}

/* The runner closed its end or broke the protocol: let it end, then say how it did. */
static fkp_case_status lost(fkp_side *side, fkp_record *record, bool broken)
{
    char how[128];
    bool ended = fkp_process_wait(&side->process, fkp_now() + 1, NULL);
    if (!ended) fkp_process_kill(&side->process);
    if (broken) fkp_record_end(record, FKP_REWARD_HACK, "the %s's process sent something that is no answer", side->role);
    else if (!ended) fkp_record_end(record, FKP_CRASHED, "the %s's process closed its connection", side->role);
    else
        fkp_record_end(record, FKP_CRASHED, "the %s's process ended: %s", side->role,
                       fkp_process_end(&side->process, how, sizeof how));
    append_log(side, record);
    fkp_side_stop(side);
    return record->status;
}

static fkp_case_status ask(fkp_side *side, fkp_message_type type, const fkp_part *parts, int num_parts, int fd,
                           double timeout_s, fkp_record *record)
{
    if (getrandom(&side->serial, sizeof side->serial, 0) != sizeof side->serial)
        return fkp_record_end(record, FKP_NOT_RUN, "no random numbers: %s", strerror(errno));
    if (fkp_message_send(side->socket, type, side->serial, parts, num_parts, fd) != FK_OK) return lost(side, record, false);
    fkp_receive_result result = fkp_message_receive(side->socket, fkp_now() + timeout_s, &side->answer);
    if (side->answer.fd >= 0) {
        close(side->answer.fd); /* no answer carries a descriptor */
        return lost(side, record, true);
    }
    if (result == FKP_TIMED_OUT) {
        fkp_record_end(record, FKP_TIMEOUT, "the %s did not return within %.3g s", side->role, timeout_s);
        append_log(side, record);
        fkp_side_stop(side);
        return record->status;
    }
    if (result == FKP_CLOSED) return lost(side, record, false);
    const fkp_reply *reply = fkp_side_reply(side);
    if (result == FKP_BROKEN || side->answer.type != FKP_MESSAGE_REPLY || side->answer.serial != side->serial ||
        side->answer.bytes < sizeof *reply || reply->num_samples < 0 ||
        side->answer.bytes != sizeof *reply + (uint64_t)reply->num_samples * sizeof(double) ||
        !memchr(reply->error, 0, sizeof reply->error) || !memchr(reply->implementation, 0, sizeof reply->implementation))
        return lost(side, record, true);
    if (reply->status == FK_OK) return FKP_PASSED;
    fkp_record_end(record, FKP_RUNTIME_ERROR, "%s: %s", side->role, reply->error);
    if (reply->status == FK_ERROR_DEVICE || reply->status == FK_ERROR_INTERNAL) fkp_side_stop(side); /* the device's context may be lost */
    return record->status;
}

fkp_case_status fkp_side_ask(fkp_side *side, fkp_message_type type, const fkp_part *parts, int num_parts, int fd,
                             double timeout_s, fkp_record *record)
{
    fkp_case_status result = ask(side, type, parts, num_parts, fd, timeout_s, record);
    if (result != FKP_PASSED && !side->judged) result = record->status = FKP_NOT_RUN;
    return result;
}

fkp_case_status fkp_side_start(fkp_side *side, double timeout_s, fkp_record *record)
{
    if (fkp_side_running(side)) return FKP_PASSED;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return fkp_record_end(record, FKP_NOT_RUN, "no socket pair: %s", strerror(errno));
    side->log = fkp_log_create();
    char *argv[] = {"/proc/self/exe", FKP_RUNNER_ARGUMENT, NULL}, threads[32];
    snprintf(threads, sizeof threads, "OMP_NUM_THREADS=%d", (int)side->hello.threads);
    const char *variables[] = {side->hello.threads > 0 ? threads : NULL, NULL};
    fk_status status = fkp_process_start(&side->process, argv, side->log, pair[1], variables);
    close(pair[1]);
    side->socket = pair[0];
    if (status != FK_OK) {
        fkp_side_stop(side);
        return fkp_record_end(record, FKP_NOT_RUN, "%s", fk_error_message());
    }
    fkp_part part = {&side->hello, sizeof side->hello};
    fkp_case_status result = fkp_side_ask(side, FKP_MESSAGE_HELLO, &part, 1, -1, timeout_s, record);
    if (result == FKP_PASSED) side->empty_call_s = fkp_side_reply(side)->empty_call_s;
    else fkp_side_stop(side); /* a runner without its implementation is of no use */
    return result;
}

/* Scalars as bit patterns; strings as offsets into `strings`. */
static void encode_scalars(const fkp_case *c, uint64_t *scalars, char *strings, uint64_t *string_bytes)
{
    *string_bytes = 0;
    for (int i = 0; i < c->op->num_fields; i++) {
        const fk_field *f = &c->op->fields[i];
        const void *at = fk_op_field_ptr(c->op, c->args, i);
        scalars[i] = 0;
        if (fk_field_is_tensor(f)) continue;
        if (f->attr_type == FK_ATTR_string) {
            const char *value = *(const char *const *)at;
            scalars[i] = UINT64_MAX;
            if (!value) continue;
            scalars[i] = *string_bytes;
            if (strings) memcpy(strings + *string_bytes, value, strlen(value) + 1);
            *string_bytes += strlen(value) + 1;
        } else {
            memcpy(&scalars[i], at, f->attr_type == FK_ATTR_int ? 8 : f->attr_type == FK_ATTR_float ? 4 : 1);
        }
    }
}

static fkp_case_status send_case(fkp_side *side, const fkp_layout *layout, const fkp_case *c, double timeout_s,
                                 fkp_record *record)
{
    size_t n = (size_t)c->op->num_fields, cells = n * (size_t)layout->num_slots;
    uint64_t string_bytes;
    uint64_t *scalars = calloc(n, sizeof *scalars), *offsets = calloc(cells, sizeof *offsets);
    fkp_wire_tensor *tensors = calloc(n, sizeof *tensors);
    char *strings = NULL;
    fkp_case_status result = FKP_NOT_RUN;
    if (scalars) {
        encode_scalars(c, scalars, NULL, &string_bytes);
        strings = calloc(1, string_bytes + 1);
    }
    if (scalars && offsets && tensors && strings) {
        encode_scalars(c, scalars, strings, &string_bytes);
        for (size_t i = 0; i < n; i++) {
            const fk_tensor *t = &c->tensors[i];
            tensors[i] = (fkp_wire_tensor){.dtype = (int32_t)t->dtype, .ndim = t->ndim};
            memcpy(tensors[i].shape, t->shape, sizeof t->shape);
            memcpy(tensors[i].strides, t->strides, sizeof t->strides);
        }
        for (size_t i = 0; i < cells; i++) offsets[i] = layout->regions[i].data;
        fkp_case_head head = {layout->num_slots, (int32_t)n, string_bytes};
        fkp_part parts[5] = {{&head, sizeof head}, {scalars, n * sizeof *scalars}, {tensors, n * sizeof *tensors},
                             {offsets, cells * sizeof *offsets}, {strings, string_bytes}};
        result = fkp_side_ask(side, FKP_MESSAGE_CASE, parts, 5, -1, timeout_s, record);
        if (result == FKP_PASSED) memcpy(side->implementation, fkp_side_reply(side)->implementation, sizeof side->implementation);
    } else {
        fkp_record_end(record, FKP_NOT_RUN, "out of memory for a case of %s", c->op->name);
    }
    free(scalars);
    free(offsets);
    free(tensors);
    free(strings);
    return result;
}

fkp_case_status fkp_side_share(fkp_side *side, const fkp_layout *layout, const fkp_case *c, double timeout_s,
                               fkp_record *record)
{
    release_memory(side);
    timeout_s += (double)layout->bytes / SLOW_BYTES_S;
    fk_status status = side->backend->shared_create(side->backend, layout->bytes, &side->memory);
    if (status == FK_OK && side->backend->device.type != FK_CPU) {
        side->readback = malloc(layout->bytes);
        if (!side->readback) status = fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes", (size_t)layout->bytes);
    }
    if (status != FK_OK) return fkp_record_end(record, FKP_NOT_RUN, "%s", fk_error_message());
    fkp_memory_head head = {side->memory.bytes, (uint64_t)layout->num_guards};
    fkp_part parts[2] = {{&head, sizeof head}, {layout->guards, (uint64_t)layout->num_guards * sizeof *layout->guards}};
    fkp_case_status result = fkp_side_ask(side, FKP_MESSAGE_MEMORY, parts, 2, side->memory.fd, timeout_s, record);
    if (result != FKP_PASSED) return result;
    return send_case(side, layout, c, timeout_s, record);
}

/* Evicts host memory from the caches of all processors: what the judge wrote last must not be warmer than the rest. */
static void evict(const char *data, uint64_t bytes)
{
#ifdef __x86_64__
    const char *line = (const char *)((uintptr_t)data & ~(uintptr_t)63);
    for (; line < data + bytes; line += 64) __builtin_ia32_clflush(line);
    __builtin_ia32_mfence();
#else
    (void)data, (void)bytes;
#endif
}

fk_status fkp_side_write(fkp_side *side, const char *image, fkp_range range)
{
    fk_backend *b = side->backend;
    char *to = (char *)side->memory.data + range.begin;
    FK_TRY(b->copy(b, NULL, to, image + range.begin, range.end - range.begin, FK_HOST_TO_DEVICE));
    if (b->device.type == FK_CPU) evict(to, range.end - range.begin);
    return FK_OK;
}

fk_status fkp_side_read(fkp_side *side, fkp_range range, char **image)
{
    fk_backend *b = side->backend;
    if (!side->readback) {
        *image = side->memory.data;
        return FK_OK;
    }
    FK_TRY(b->copy(b, NULL, side->readback + range.begin, (const char *)side->memory.data + range.begin,
                   range.end - range.begin, FK_DEVICE_TO_HOST));
    FK_TRY(b->stream_synchronize(b, NULL));
    *image = side->readback;
    return FK_OK;
}

fkp_case_status fkp_side_record(fkp_side *side, const fkp_run_head *head, const int32_t *slots, double timeout_s,
                                fkp_record *record, bool *recorded)
{
    fkp_part parts[2] = {{head, sizeof *head}, {slots, (uint64_t)head->num_calls * sizeof *slots}};
    fkp_case_status result = fkp_side_ask(side, FKP_MESSAGE_RECORD, parts, 2, -1, timeout_s, record);
    *recorded = result == FKP_PASSED && fkp_side_reply(side)->recorded;
    return result;
}

fkp_case_status fkp_side_run(fkp_side *side, const fkp_run_head *head, const int32_t *slots, double timeout_s, fkp_record *record)
{
    fkp_part parts[2] = {{head, sizeof *head}, {slots, (uint64_t)head->num_calls * sizeof *slots}};
    fkp_case_status result = fkp_side_ask(side, FKP_MESSAGE_RUN, parts, 2, -1, timeout_s, record);
    if (result != FKP_PASSED) return result;
    const fkp_reply *reply = fkp_side_reply(side);
    int samples = (head->num_calls + head->calls_per_sample - 1) / head->calls_per_sample;
    if (reply->calls != head->num_calls || reply->num_samples != samples)
        return fkp_record_end(record, FKP_REWARD_HACK, "the %s's process answered for %d of %d calls", side->role,
                              reply->calls, head->num_calls);
    return FKP_PASSED;
}
