/* SPDX-License-Identifier: Apache-2.0 */
/* The index is {"metadata": {...}, "weight_map": {tensor name: shard file name}}, as huggingface_hub and transformers write
 * it. */
#define _POSIX_C_SOURCE 200809L
#include "core/safetensors_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "core/names.h"
#include "core/safetensors.h"

#define MAX_SHARDS 10000 /* each holds a map open; the largest published checkpoints have some hundreds */

typedef struct shard {
    char *name; /* of the file in the folder */
    fk_safetensors *file;
} shard;

struct fk_checkpoint {
    char *folder;
    shard *shards;
    size_t shard_count, tensor_count;
    json_t *index;        /* NULL for a single file */
    fkp_name_ref *names;  /* tensor name -> shard, sorted; NULL for a single file */
};

static fk_status out_of_memory(const fk_checkpoint *c)
{
    return fk_fail(FK_ERROR_MEMORY, "%s: out of memory for the index of %zu tensors", c->folder, c->tensor_count);
}

static fk_status path_in(const fk_checkpoint *c, const char *name, char **path)
{
    size_t size = strlen(c->folder) + strlen(name) + 2;
    *path = malloc(size);
    if (!*path) return out_of_memory(c);
    snprintf(*path, size, "%s/%s", c->folder, name);
    return FK_OK;
}

/* A shard is named by a plain file name: no way out of the folder. */
static fk_status check_shard_name(const json_t *value, const char *tensor)
{
    char quoted[FKP_QUOTED_SIZE], quoted_tensor[FKP_QUOTED_SIZE];
    fkp_quote(quoted_tensor, tensor, strlen(tensor));
    if (!json_is_string(value)) return fk_fail(FK_ERROR_INVALID, "the shard of tensor %s is no string", quoted_tensor);
    const char *name = json_string_value(value), *suffix = ".safetensors";
    size_t length = strlen(name), end = strlen(suffix);
    fkp_quote(quoted, name, length);
    if (strpbrk(name, "/\\") || name[0] == '.')
        return fk_fail(FK_ERROR_INVALID, "tensor %s: shard %s is not a file name in the folder", quoted_tensor, quoted);
    if (length <= end || length > 255 || strcmp(name + length - end, suffix) != 0)
        return fk_fail(FK_ERROR_INVALID, "tensor %s: shard %s is not named *.safetensors", quoted_tensor, quoted);
    return FK_OK;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct shard names of weight_map, sorted, into c->shards. */
static fk_status collect_shards(fk_checkpoint *c, json_t *map)
{
    const char *tensor;
    json_t *value;
    size_t count = 0;
    const char **all = malloc((c->tensor_count + 1) * sizeof *all);
    if (!all) return out_of_memory(c);
    fk_status status = FK_OK;
    json_object_foreach(map, tensor, value)
    {
        status = check_shard_name(value, tensor);
        if (status != FK_OK) goto done;
        all[count++] = json_string_value(value);
    }
    if (count > 1) qsort(all, count, sizeof *all, compare_text);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(all[i], all[i - 1]) != 0) all[distinct++] = all[i];
    if (distinct > MAX_SHARDS) {
        status = fk_fail(FK_ERROR_INVALID, "%zu shards, at most %d are allowed", distinct, MAX_SHARDS);
        goto done;
    }
    c->shards = calloc(distinct + 1, sizeof *c->shards);
    status = c->shards ? FK_OK : out_of_memory(c);
    for (size_t i = 0; i < distinct && status == FK_OK; i++) {
        c->shards[i].name = strdup(all[i]);
        if (c->shards[i].name) c->shard_count++;
        else status = out_of_memory(c);
    }
done:
    free(all);
    return status;
}

static fk_status open_shards(fk_checkpoint *c)
{
    for (size_t i = 0; i < c->shard_count; i++) {
        char *path = NULL;
        FK_TRY(path_in(c, c->shards[i].name, &path));
        fk_status status = fk_safetensors_open(path, &c->shards[i].file);
        free(path);
        if (status != FK_OK) return status;
    }
    return FK_OK;
}

static size_t find_shard(const fk_checkpoint *c, const char *name)
{
    size_t low = 0, high = c->shard_count; /* sorted by name, and the name is there */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(c->shards[middle].name, name) <= 0) low = middle;
        else high = middle;
    }
    return low;
}

/* Some writers say it in floating point. */
static fk_status check_total_size(const fk_checkpoint *c, size_t bytes)
{
    const json_t *total = json_object_get(json_object_get(c->index, "metadata"), "total_size");
    if (!total || json_is_null(total)) return FK_OK;
    if (!json_is_number(total)) return fk_fail(FK_ERROR_INVALID, "metadata.total_size is no number");
    bool equal = json_is_integer(total) ? json_integer_value(total) >= 0 && (uint64_t)json_integer_value(total) == bytes
                                        : json_real_value(total) == (double)bytes;
    if (equal) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "metadata.total_size is %.0f, but the listed tensors have %zu bytes", json_number_value(total),
                   bytes);
}

/* Every listed tensor stands in its shard and in no other, and their sizes add up. */
static fk_status match(fk_checkpoint *c, json_t *map)
{
    char quoted[FKP_QUOTED_SIZE];
    const char *name;
    json_t *value;
    fk_tensor tensor;
    size_t count = 0, shard_of, bytes = 0;
    c->names = malloc((c->tensor_count + 1) * sizeof *c->names);
    if (!c->names) return out_of_memory(c);
    json_object_foreach(map, name, value)
    {
        size_t s = find_shard(c, json_string_value(value));
        if (fk_safetensors_find(c->shards[s].file, name, &tensor) != FK_OK)
            return fk_fail(FK_ERROR_INVALID, "tensor %s is not in shard '%s', where the index puts it",
                           fkp_quote(quoted, name, strlen(name)), c->shards[s].name);
        bytes += fk_tensor_nbytes(&tensor); /* distinct parts of mapped files: no overflow */
        c->names[count++] = (fkp_name_ref){name, s};
    }
    FK_TRY(check_total_size(c, bytes));
    fkp_names_sort(c->names, count); /* duplicate keys do not pass the JSON parser */
    for (size_t s = 0; s < c->shard_count; s++)
        for (size_t i = 0; i < fk_safetensors_count(c->shards[s].file); i++) {
            name = fk_safetensors_at(c->shards[s].file, i)->name;
            if (fkp_names_find(c->names, count, name, &shard_of) && shard_of != s)
                return fk_fail(FK_ERROR_INVALID, "tensor %s occurs in shards '%s' and '%s'",
                               fkp_quote(quoted, name, strlen(name)), c->shards[shard_of].name, c->shards[s].name);
        }
    return FK_OK;
}

static fk_status open_index(fk_checkpoint *c, const char *path)
{
    const fkp_json_limits limits = {.max_depth = 16, .max_values = 4000000};
    FK_TRY(fkp_json_load_file(path, limits, &c->index));
    json_t *map = json_object_get(c->index, "weight_map");
    fk_status status = FK_OK;
    if (!json_is_object(map)) status = fk_fail(FK_ERROR_INVALID, "no weight_map, or it is no object");
    else if (json_object_size(map) == 0) status = fk_fail(FK_ERROR_INVALID, "weight_map is empty");
    if (status == FK_OK) {
        c->tensor_count = json_object_size(map);
        status = collect_shards(c, map);
    }
    if (status == FK_OK) status = open_shards(c);
    if (status == FK_OK) status = match(c, map);
    return status == FK_OK ? FK_OK : fk_fail_context(status, "%s", path);
}

static fk_status open_single(fk_checkpoint *c, const char *path)
{
    c->shards = calloc(1, sizeof *c->shards);
    if (!c->shards) return out_of_memory(c);
    c->shard_count = 1;
    FK_TRY(fk_safetensors_open(path, &c->shards[0].file));
    c->tensor_count = fk_safetensors_count(c->shards[0].file);
    return FK_OK;
}

fk_status fk_checkpoint_open(const char *folder, fk_checkpoint **out)
{
    char *index = NULL, *single = NULL;
    *out = NULL;
    fk_checkpoint *c = calloc(1, sizeof *c);
    if (!c || !(c->folder = strdup(folder))) {
        free(c);
        return fk_fail(FK_ERROR_MEMORY, "%s: out of memory", folder);
    }
    fk_status status = path_in(c, "model.safetensors.index.json", &index);
    if (status == FK_OK) status = path_in(c, "model.safetensors", &single);
    if (status == FK_OK) {
        if (access(index, F_OK) == 0) status = open_index(c, index);
        else if (access(single, F_OK) == 0) status = open_single(c, single);
        else
            status = fk_fail(FK_ERROR_MISSING, "%s has neither model.safetensors nor model.safetensors.index.json", folder);
    }
    free(index);
    free(single);
    if (status == FK_OK) *out = c;
    else fk_checkpoint_close(c);
    return status;
}

void fk_checkpoint_close(fk_checkpoint *c)
{
    if (!c) return;
    for (size_t i = 0; i < c->shard_count; i++) {
        free(c->shards[i].name);
        fk_safetensors_close(c->shards[i].file);
    }
    free(c->shards);
    free(c->names);
    json_decref(c->index);
    free(c->folder);
    free(c);
}

size_t fk_checkpoint_shard_count(const fk_checkpoint *c)
{
    return c->shard_count;
}

size_t fk_checkpoint_tensor_count(const fk_checkpoint *c)
{
    return c->tensor_count;
}

fk_status fk_checkpoint_find(const fk_checkpoint *c, const char *name, fk_tensor *out)
{
    size_t shard_of = 0;
    if (c->names && !fkp_names_find(c->names, c->tensor_count, name, &shard_of))
        return fk_fail(FK_ERROR_MISSING, "%s: no tensor '%s'", c->folder, name);
    return fk_safetensors_find(c->shards[shard_of].file, name, out);
}
