/* SPDX-License-Identifier: Apache-2.0 */
/* Framing of messages; partial reads and writes, deadlines, descriptors. */
#define _GNU_SOURCE
#include "bench/protocol.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x464b4d53u
#define MAX_PARTS 8

typedef struct header {
    uint32_t magic, type;
    uint64_t serial, bytes;
} header;

double fkp_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

fk_status fkp_message_send(int socket, fkp_message_type type, uint64_t serial, const fkp_part *parts, int num_parts, int fd)
{
    header h = {MAGIC, (uint32_t)type, serial, 0};
    struct iovec iov[MAX_PARTS + 1] = {{&h, sizeof h}};
    if (num_parts > MAX_PARTS) return fk_fail(FK_ERROR_INTERNAL, "message of %d parts", num_parts);
    for (int i = 0; i < num_parts; i++) {
        h.bytes += parts[i].bytes;
        iov[i + 1] = (struct iovec){(void *)(uintptr_t)parts[i].data, parts[i].bytes};
    }
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)num_parts + 1};
    if (fd >= 0) {
        m.msg_control = control.bytes;
        m.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    while (m.msg_iovlen > 0) {
        ssize_t n = sendmsg(socket, &m, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fk_fail(FK_ERROR_IO, "sending to the other process: %s", strerror(errno));
        m.msg_control = NULL;
        m.msg_controllen = 0;
        size_t left = (size_t)n;
        while (m.msg_iovlen > 0 && left >= m.msg_iov->iov_len) {
            left -= m.msg_iov->iov_len;
            m.msg_iov++;
            m.msg_iovlen--;
        }
        if (m.msg_iovlen > 0) {
            m.msg_iov->iov_base = (char *)m.msg_iov->iov_base + left;
            m.msg_iov->iov_len -= left;
        }
    }
    return FK_OK;
}

static fkp_receive_result read_all(int socket, double deadline_s, void *data, size_t bytes, int *fd)
{
    for (size_t done = 0; done < bytes;) {
        struct pollfd p = {.fd = socket, .events = POLLIN};
        int timeout_ms = -1;
        if (deadline_s > 0) {
            double left = deadline_s - fkp_now();
            timeout_ms = left <= 0 ? 0 : left > 1e6 ? 1000000000 : (int)(left * 1000) + 1;
        }
        int ready = poll(&p, 1, timeout_ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return FKP_TIMED_OUT;
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control;
        struct iovec iov = {(char *)data + done, bytes - done};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
        ssize_t n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return FKP_CLOSED;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
            if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
            int got;
            memcpy(&got, CMSG_DATA(c), sizeof got);
            if (fd && *fd < 0) *fd = got;
            else close(got);
        }
        done += (size_t)n;
    }
    return FKP_RECEIVED;
}

fkp_receive_result fkp_message_receive(int socket, double deadline_s, fkp_message *message)
{
    header h;
    message->fd = -1;
    fkp_receive_result result = read_all(socket, deadline_s, &h, sizeof h, &message->fd);
    if (result != FKP_RECEIVED) return result;
    if (h.magic != MAGIC || h.bytes > FKP_MESSAGE_MAX_BYTES) return FKP_BROKEN;
    if (h.bytes > message->capacity) {
        void *grown = realloc(message->payload, h.bytes);
        if (!grown) return FKP_BROKEN;
        message->payload = grown;
        message->capacity = h.bytes;
    }
    message->type = h.type;
    message->serial = h.serial;
    message->bytes = h.bytes;
    return read_all(socket, deadline_s, message->payload, h.bytes, &message->fd);
}

void fkp_message_deinit(fkp_message *message)
{
    free(message->payload);
    *message = (fkp_message){.fd = -1};
}
