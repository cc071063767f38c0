/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors writer: header, data, fsync, rename. The bytes depend on the arguments alone; the header is
 * padded with spaces so that data start at a multiple of 8. */
#define _POSIX_C_SOURCE 200809L
#include "core/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "core/names.h"

/* Adds `value` (taken over) under a key that must be new UTF-8. */
static fk_status add_new(json_t *object, const char *key, json_t *value, const char *what)
{
    char quoted[FKP_QUOTED_SIZE];
    bool twice = json_object_get(object, key) != NULL;
    if (!twice && value && json_object_set_new(object, key, value) == 0) return FK_OK;
    if (twice) json_decref(value);
    return fk_fail(FK_ERROR_INVALID, "%s %s %s", what, fkp_quote(quoted, key, strlen(key)),
                   twice ? "occurs twice" : "is not valid UTF-8, or its value is not");
}

/* Checks the entry and describes it as placed at *end, which moves on. */
static fk_status describe(const fk_safetensors_entry *entry, uint64_t *end, json_t **out)
{
    const fk_tensor *t = &entry->tensor;
    const char *dtype = fkp_safetensors_dtype_name(t->dtype);
    if (strcmp(entry->name, "__metadata__") == 0)
        return fk_fail(FK_ERROR_INVALID, "a tensor cannot have this name");
    if (!fk_tensor_present(t)) return fk_fail(FK_ERROR_INVALID, "the tensor is absent");
    if (!dtype)
        return fk_fail(FK_ERROR_UNSUPPORTED, "dtype %s has no name in this format", fk_dtype_name(t->dtype));
    if (t->device.type != FK_CPU) return fk_fail(FK_ERROR_INVALID, "the tensor is not in host memory");
    if (!fk_tensor_is_contiguous(t)) return fk_fail(FK_ERROR_INVALID, "the tensor is not contiguous");
    if (fk_tensor_numel(t) * fk_dtype_bits(t->dtype) % 8 != 0)
        return fk_fail(FK_ERROR_INVALID, "%lld elements of %s are no whole number of bytes",
                       (long long)fk_tensor_numel(t), dtype);
    json_t *shape = json_array();
    for (int i = 0; i < t->ndim; i++) json_array_append_new(shape, json_integer(t->shape[i]));
    uint64_t begin = *end;
    *end += fk_tensor_nbytes(t);
    *out = json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)*end);
    return *out ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory");
}

static fk_status make_header(const fk_safetensors_entry *entries, size_t count,
                             const fk_safetensors_metadata_pair *metadata, size_t metadata_count, char **text)
{
    fk_status status = FK_OK;
    uint64_t end = 0;
    json_t *root = json_object(), *pairs = NULL;
    if (metadata_count > 0) {
        pairs = json_object(); /* owned by root after the next line */
        status = add_new(root, "__metadata__", pairs, "metadata");
    }
    for (size_t i = 0; i < metadata_count && status == FK_OK; i++)
        status = add_new(pairs, metadata[i].key, json_string(metadata[i].value), "metadata");
    for (size_t i = 0; i < count && status == FK_OK; i++) {
        char quoted[FKP_QUOTED_SIZE];
        json_t *info;
        status = describe(&entries[i], &end, &info);
        if (status == FK_OK)
            status = add_new(root, entries[i].name, info, "tensor");
        else
            fk_fail_context(status, "tensor %s", fkp_quote(quoted, entries[i].name, strlen(entries[i].name)));
    }
    if (status == FK_OK) {
        *text = json_dumps(root, JSON_COMPACT);
        if (!*text) status = fk_fail(FK_ERROR_MEMORY, "out of memory for the header of %zu tensors", count);
    }
    json_decref(root);
    return status;
}

static bool write_all(int fd, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size > 0) {
        ssize_t written = write(fd, at, size < 1u << 30 ? size : 1u << 30);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

static bool write_content(int fd, const char *header, size_t length, const fk_safetensors_entry *entries,
                          size_t count)
{
    static const char spaces[8] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};
    size_t padded = (length + 7) / 8 * 8;
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = (uint8_t)((uint64_t)padded >> (8 * i));
    if (!write_all(fd, prefix, 8) || !write_all(fd, header, length) ||
        !write_all(fd, spaces, padded - length))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!write_all(fd, entries[i].tensor.data, fk_tensor_nbytes(&entries[i].tensor))) return false;
    return fsync(fd) == 0;
}

static fk_status fail_errno(const char *doing, const char *path, int error)
{
    return fk_fail(error == ENOENT ? FK_ERROR_MISSING : FK_ERROR_IO, "cannot %s '%s': %s (errno %d)", doing,
                   path, strerror(error), error);
}

/* Makes the rename itself durable. File systems that cannot sync a folder say EINVAL, which is no failure. */
static fk_status sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
    if (!folder) return fk_fail(FK_ERROR_MEMORY, "out of memory");
    fk_status status = FK_OK;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fsync(fd) != 0 && errno != EINVAL) status = fail_errno("sync folder", folder, errno);
    if (fd >= 0) close(fd); /* a folder that may be written but not read cannot be synced: leave it */
    free(folder);
    return status;
}

/* A new file beside `path`; its name (owned by the caller) in *temporary, NULL when nothing was created. */
static int create_beside(const char *path, char **temporary)
{
    static atomic_uint serial; /* threads of one process may write the same path */
    size_t size = strlen(path) + 48;
    char *name = malloc(size);
    *temporary = NULL;
    if (!name) return -1;
    snprintf(name, size, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
        *temporary = name;
    } else {
        int error = errno;
        free(name);
        errno = error;
    }
    return fd;
}

fk_status fk_safetensors_write(const char *path, const fk_safetensors_entry *entries, size_t count,
                               const fk_safetensors_metadata_pair *metadata, size_t metadata_count)
{
    char *header = NULL, *temporary = NULL;
    int fd = -1;
    fk_status status = make_header(entries, count, metadata, metadata_count, &header);
    if (status != FK_OK) {
        fk_fail_context(status, "%s", path);
        goto done;
    }
    size_t length = strlen(header);
    if (length > FK_SAFETENSORS_MAX_HEADER - 7) {
        status = fk_fail(FK_ERROR_INVALID, "%s: header of %zu bytes, the format allows %u", path, length,
                         FK_SAFETENSORS_MAX_HEADER);
        goto done;
    }
    fd = create_beside(path, &temporary);
    if (fd < 0) {
        status = fail_errno("create", path, errno);
        goto done;
    }
    if (!write_content(fd, header, length, entries, count)) {
        status = fail_errno("write", path, errno);
        goto done;
    }
    int closed = close(fd); /* network file systems report a full disk here */
    fd = -1;
    if (closed != 0) {
        status = fail_errno("write", path, errno);
        goto done;
    }
    if (rename(temporary, path) != 0) {
        status = fail_errno("replace", path, errno);
        goto done;
    }
    free(temporary);
    temporary = NULL;
    status = sync_folder(path);
done:
    if (fd >= 0) close(fd);
    if (temporary) unlink(temporary);
    free(temporary);
    free(header);
    return status;
}
