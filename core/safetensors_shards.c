/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a checkpoint folder: shards of bounded size and their index, named as huggingface_hub and transformers name them. */
#define _POSIX_C_SOURCE 200809L
#include "core/safetensors_index.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SINGLE_NAME "model.safetensors"
#define INDEX_NAME "model.safetensors.index.json"

typedef struct writing {
    const char *folder;
    char *path; /* room for the folder and a file name */
    size_t path_size;
    const fk_safetensors_entry *entries;
    size_t count, num_shards;
    size_t *first; /* [num_shards + 1]: first entry of each shard */
} writing;

static const char *in_folder(const writing *w, const char *name)
{
    snprintf(w->path, w->path_size, "%s/%s", w->folder, name);
    return w->path;
}

static void shard_name(const writing *w, size_t shard, char name[64])
{
    snprintf(name, 64, "model-%05zu-of-%05zu.safetensors", shard + 1, w->num_shards);
}

/* Entries go to shards in order; one that is larger than a shard has its own. */
static void split(writing *w, uint64_t max_shard_bytes)
{
    uint64_t bytes = 0;
    w->num_shards = 0;
    for (size_t i = 0; i < w->count; i++) {
        uint64_t size = fk_tensor_nbytes(&w->entries[i].tensor);
        if (i == 0 || (max_shard_bytes > 0 && bytes + size > max_shard_bytes && bytes > 0)) {
            w->first[w->num_shards++] = i;
            bytes = 0;
        }
        bytes += size;
    }
    if (w->num_shards == 0) w->first[w->num_shards++] = 0; /* a file without tensors is one too */
    w->first[w->num_shards] = w->count;
}

static fk_status write_shards(const writing *w)
{
    static const fk_safetensors_metadata_pair format = {"format", "pt"};
    for (size_t s = 0; s < w->num_shards; s++) {
        char name[64] = SINGLE_NAME;
        if (w->num_shards > 1) shard_name(w, s, name);
        FK_TRY(fk_safetensors_write(in_folder(w, name), w->entries + w->first[s], w->first[s + 1] - w->first[s], &format, 1));
    }
    return FK_OK;
}

static fk_status index_of(const writing *w, json_t **out)
{
    json_t *map = json_object();
    json_int_t total = 0;
    fk_status status = FK_OK;
    for (size_t s = 0; s < w->num_shards && status == FK_OK; s++) {
        char name[64];
        shard_name(w, s, name);
        for (size_t i = w->first[s]; i < w->first[s + 1] && status == FK_OK; i++) {
            total += (json_int_t)fk_tensor_nbytes(&w->entries[i].tensor);
            if (json_object_get(map, w->entries[i].name))
                status = fk_fail(FK_ERROR_INVALID, "%s: tensor '%s' occurs twice", w->folder, w->entries[i].name);
            else if (json_object_set_new(map, w->entries[i].name, json_string(name)) != 0)
                status = fk_fail(FK_ERROR_INVALID, "%s: tensor name '%s' is not valid UTF-8", w->folder, w->entries[i].name);
        }
    }
    *out = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", total, "weight_map", map);
    if (status == FK_OK && !*out) status = fk_fail(FK_ERROR_MEMORY, "%s: out of memory for an index", w->folder);
    return status;
}

static fk_status fail_errno(const char *doing, const char *path)
{
    return fk_fail(FK_ERROR_IO, "cannot %s '%s': %s", doing, path, strerror(errno));
}

/* The index gets its name when all of it is on disk, and comes last: until then the folder is what it was. */
static fk_status write_index(const writing *w, const json_t *index)
{
    char temporary[80];
    snprintf(temporary, sizeof temporary, INDEX_NAME ".%ld.tmp", (long)getpid());
    char *from = strdup(in_folder(w, temporary));
    const char *to = in_folder(w, INDEX_NAME);
    if (!from) return fk_fail(FK_ERROR_MEMORY, "%s: out of memory", w->folder);
    fk_status status = FK_OK;
    int fd = open(from, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) status = fail_errno("create", from);
    if (status == FK_OK && (json_dumpfd(index, fd, JSON_INDENT(2) | JSON_SORT_KEYS) != 0 || write(fd, "\n", 1) != 1 || fsync(fd) != 0))
        status = fail_errno("write", from);
    if (fd >= 0 && close(fd) != 0 && status == FK_OK) status = fail_errno("write", from);
    if (status == FK_OK && rename(from, to) != 0) status = fail_errno("replace", to);
    if (fd >= 0 && status != FK_OK) unlink(from);
    free(from);
    return status;
}

/* Readers differ in which of both they prefer; the one of an earlier checkpoint goes. */
static fk_status remove_other(const writing *w)
{
    const char *path = in_folder(w, w->num_shards > 1 ? SINGLE_NAME : INDEX_NAME);
    return unlink(path) == 0 || errno == ENOENT ? FK_OK : fail_errno("remove", path);
}

fk_status fk_checkpoint_write(const char *folder, const fk_safetensors_entry *entries, size_t count, uint64_t max_shard_bytes)
{
    writing w = {.folder = folder, .path_size = strlen(folder) + 128, .entries = entries, .count = count};
    json_t *index = NULL;
    w.path = malloc(w.path_size);
    w.first = malloc((count + 2) * sizeof *w.first);
    fk_status status = w.path && w.first ? FK_OK : fk_fail(FK_ERROR_MEMORY, "%s: out of memory", folder);
    if (status == FK_OK) {
        split(&w, max_shard_bytes);
        if (w.num_shards > 1) status = index_of(&w, &index);
    }
    if (status == FK_OK) status = write_shards(&w);
    if (status == FK_OK && index) status = write_index(&w, index);
    if (status == FK_OK) status = remove_other(&w);
    json_decref(index);
    free(w.path);
    free(w.first);
    return status;
}
