/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a scenario with libyaml. The file is a person's own, but mistakes in it must be named with their line: every key
 * is known, every value of its kind and in its range. */
#define _GNU_SOURCE
#include "bench/scenario.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/nearest.h"

#define MAX_BYTES (1 << 20)
#define MAX_DEPTH 16 /* of collections in collections; a scenario has 4 */
#define MAX_REQUESTS 100000
#define MAX_TOKENS (1 << 24)
#define DEFAULT_MAX_TOKENS 32
#define DEFAULT_NUM_SEQS 32

typedef struct reader {
    const char *path;
    yaml_document_t document;
} reader;

static fk_status bad(const reader *r, const yaml_node_t *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
static fk_status bad(const reader *r, const yaml_node_t *at, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fk_fail(FK_ERROR_INVALID, "scenario %s, line %zu: %s", r->path, at->start_mark.line + 1, text);
}

static yaml_node_t *node_at(reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

static const char *scalar(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static fk_status read_text(reader *r, const char *key, const yaml_node_t *node, char **out)
{
    if (node->type != YAML_SCALAR_NODE) return bad(r, node, "%s is no text", key);
    if (strlen(scalar(node)) != node->data.scalar.length) return bad(r, node, "%s holds a NUL byte", key);
    if (node->data.scalar.length == 0) return bad(r, node, "%s is empty", key);
    free(*out);
    *out = strdup(scalar(node));
    return *out ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory for a scenario");
}

static fk_status read_int(reader *r, const char *key, const yaml_node_t *node, int64_t least, int64_t most, int64_t *out)
{
    const char *text = node->type == YAML_SCALAR_NODE ? scalar(node) : "";
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || text[0] == ' ')
        return bad(r, node, "%s is '%s', no whole number", key, node->type == YAML_SCALAR_NODE ? text : "(a collection)");
    if (value < least || value > most)
        return bad(r, node, "%s is %lld; it goes from %lld to %lld", key, value, (long long)least, (long long)most);
    *out = value;
    return FK_OK;
}

static fk_status read_bool(reader *r, const char *key, const yaml_node_t *node, bool *out)
{
    const char *text = node->type == YAML_SCALAR_NODE ? scalar(node) : "";
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) return bad(r, node, "%s is '%s', not true or false", key, text);
    *out = text[0] == 't';
    return FK_OK;
}

static fk_status read_ids(reader *r, const yaml_node_t *node, fkp_scenario_request *q)
{
    if (node->type != YAML_SEQUENCE_NODE) return bad(r, node, "prompt_ids is no list of numbers");
    int64_t count = node->data.sequence.items.top - node->data.sequence.items.start;
    if (count == 0) return bad(r, node, "prompt_ids is empty");
    free(q->ids);
    q->num_ids = 0;
    q->ids = calloc((size_t)count, sizeof *q->ids);
    if (!q->ids) return fk_fail(FK_ERROR_MEMORY, "out of memory for a scenario");
    for (int64_t i = 0; i < count; i++) {
        int64_t id;
        FK_TRY(read_int(r, "an id of prompt_ids", node_at(r, node->data.sequence.items.start[i]), 0, INT32_MAX, &id));
        q->ids[i] = (int32_t)id;
    }
    q->num_ids = count;
    return FK_OK;
}

static fk_status unknown_key(const reader *r, const yaml_node_t *key, const char *const *known)
{
    fkp_nearest nearest = {.word = scalar(key)};
    char list[256] = "";
    for (int i = 0; known[i]; i++) {
        fkp_nearest_offer(&nearest, known[i]);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", known[i]);
    }
    return bad(r, key, "unknown key '%s'; %s%s%s", scalar(key), nearest.best ? "did you mean '" : "known are ",
               nearest.best ? nearest.best : list, nearest.best ? "'?" : "");
}

/* Calls `field` for each key of a mapping: a known one returns FK_OK with *known set. */
static fk_status read_mapping(reader *r, const yaml_node_t *node, const char *what, const char *const *keys,
                              fk_status (*field)(reader *r, void *self, const char *key, yaml_node_t *value), void *self)
{
    if (!node || node->type != YAML_MAPPING_NODE) {
        if (!node) return fk_fail(FK_ERROR_INVALID, "scenario %s is empty", r->path);
        return bad(r, node, "%s is no mapping of keys to values", what);
    }
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(r, pair->key);
        if (key->type != YAML_SCALAR_NODE) return bad(r, key, "a key that is no word");
        int k = 0;
        while (keys[k] && strcmp(keys[k], scalar(key)) != 0) k++;
        if (!keys[k]) return unknown_key(r, key, keys);
        for (const yaml_node_pair_t *earlier = node->data.mapping.pairs.start; earlier < pair; earlier++)
            if (strcmp(scalar(node_at(r, earlier->key)), keys[k]) == 0) return bad(r, key, "%s stands there twice", keys[k]);
        FK_TRY(field(r, self, keys[k], node_at(r, pair->value)));
    }
    return FK_OK;
}

static const char *const request_keys[] = {"prompt", "system", "raw", "prompt_ids", "random_ids", "count", "max_tokens", NULL};

static fk_status request_field(reader *r, void *self, const char *key, yaml_node_t *value)
{
    fkp_scenario_request *q = self;
    if (strcmp(key, "prompt") == 0) return read_text(r, key, value, &q->prompt);
    if (strcmp(key, "system") == 0) return read_text(r, key, value, &q->system);
    if (strcmp(key, "raw") == 0) return read_bool(r, key, value, &q->raw);
    if (strcmp(key, "prompt_ids") == 0) return read_ids(r, value, q);
    if (strcmp(key, "random_ids") == 0) return read_int(r, key, value, 1, MAX_TOKENS, &q->random_ids);
    if (strcmp(key, "count") == 0) return read_int(r, key, value, 1, MAX_REQUESTS, &q->count);
    return read_int(r, key, value, 1, MAX_TOKENS, &q->max_tokens);
}

static fk_status read_request(reader *r, const yaml_node_t *node, fkp_scenario_request *q)
{
    q->count = 1;
    FK_TRY(read_mapping(r, node, "a request", request_keys, request_field, q));
    if ((q->prompt != NULL) + (q->ids != NULL) + (q->random_ids > 0) != 1)
        return bad(r, node, "a request has one of prompt, prompt_ids, random_ids");
    if (!q->prompt && (q->raw || q->system)) return bad(r, node, "raw and system go with prompt only");
    if (q->raw && q->system) return bad(r, node, "a raw prompt has no system message");
    return FK_OK;
}

typedef struct scenario_reader {
    fkp_scenario *scenario;
    int64_t max_tokens;
    const yaml_node_t *requests;
} scenario_reader;

static const char *const scenario_keys[] = {"description", "model", "max_num_seqs", "max_tokens", "requests", NULL};

static fk_status scenario_field(reader *r, void *self, const char *key, yaml_node_t *value)
{
    scenario_reader *s = self;
    if (strcmp(key, "description") == 0) return read_text(r, key, value, &s->scenario->description);
    if (strcmp(key, "model") == 0) return read_text(r, key, value, &s->scenario->model);
    if (strcmp(key, "max_num_seqs") == 0) return read_int(r, key, value, 1, MAX_REQUESTS, &s->scenario->max_num_seqs);
    if (strcmp(key, "max_tokens") == 0) return read_int(r, key, value, 1, MAX_TOKENS, &s->max_tokens);
    s->requests = value;
    return value->type == YAML_SEQUENCE_NODE ? FK_OK : bad(r, value, "requests is no list");
}

static fk_status read_scenario(reader *r, fkp_scenario *scenario)
{
    scenario_reader s = {.scenario = scenario, .max_tokens = DEFAULT_MAX_TOKENS};
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    scenario->max_num_seqs = DEFAULT_NUM_SEQS;
    FK_TRY(read_mapping(r, root, "the scenario", scenario_keys, scenario_field, &s));
    if (!scenario->model) return bad(r, root, "model is missing");
    int64_t count = s.requests ? s.requests->data.sequence.items.top - s.requests->data.sequence.items.start : 0;
    if (count == 0) return bad(r, s.requests ? s.requests : root, "there are no requests");
    if (count > MAX_REQUESTS) return bad(r, s.requests, "%lld requests; %d at most", (long long)count, MAX_REQUESTS);
    scenario->requests = calloc((size_t)count, sizeof *scenario->requests);
    if (!scenario->requests) return fk_fail(FK_ERROR_MEMORY, "out of memory for a scenario");
    scenario->num_requests = count;
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        fkp_scenario_request *q = &scenario->requests[i];
        const yaml_node_t *node = node_at(r, s.requests->data.sequence.items.start[i]);
        FK_TRY(read_request(r, node, q));
        if (q->max_tokens == 0) q->max_tokens = s.max_tokens;
        total += q->count;
        if (total > MAX_REQUESTS) return bad(r, node, "more than %d requests together", MAX_REQUESTS);
    }
    return FK_OK;
}

/* libyaml takes time by the square of the depth: looked at event by event, the file is left before that shows. */
static fk_status check_depth(const char *path, const char *text, size_t size)
{
    yaml_parser_t parser;
    yaml_event_t event;
    if (!yaml_parser_initialize(&parser)) return fk_fail(FK_ERROR_MEMORY, "out of memory for a scenario");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    fk_status status = FK_OK;
    bool end = false;
    for (int depth = 0; status == FK_OK && !end && yaml_parser_parse(&parser, &event);) { /* no YAML: the loader says so */
        depth += event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
        depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        if (depth > MAX_DEPTH)
            status = fk_fail(FK_ERROR_INVALID, "scenario %s, line %zu: more than %d collections in one another", path,
                             event.start_mark.line + 1, MAX_DEPTH);
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

static fk_status parse(const char *path, FILE *file, fkp_scenario *scenario)
{
    reader r = {.path = path};
    yaml_parser_t parser;
    char *text = malloc(MAX_BYTES + 1);
    size_t size = text ? fread(text, 1, MAX_BYTES + 1, file) : 0;
    fk_status status = FK_OK;
    if (!text || !yaml_parser_initialize(&parser)) {
        free(text);
        return fk_fail(FK_ERROR_MEMORY, "out of memory for a scenario");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    if (ferror(file)) status = fk_fail(FK_ERROR_IO, "scenario %s: reading failed", path);
    else if (size > MAX_BYTES) status = fk_fail(FK_ERROR_INVALID, "scenario %s is larger than %d bytes", path, MAX_BYTES);
    else status = check_depth(path, text, size);
    if (status == FK_OK && !yaml_parser_load(&parser, &r.document))
        status = fk_fail(FK_ERROR_INVALID, "scenario %s, line %zu: %s", path, parser.problem_mark.line + 1,
                         parser.problem ? parser.problem : "not YAML");
    if (status == FK_OK) {
        status = read_scenario(&r, scenario);
        yaml_document_delete(&r.document);
    }
    yaml_parser_delete(&parser);
    free(text);
    return status;
}

static bool strip_yaml(const char *file, char *name, size_t size)
{
    size_t n = strlen(file);
    if (n <= 5 || n >= size || strcmp(file + n - 5, ".yaml") != 0) return false;
    snprintf(name, size, "%.*s", (int)(n - 5), file);
    return true;
}

static fk_status unknown_scenario(const char *name, const char *folder)
{
    static char names[64][128]; /* nearest keeps pointers */
    fkp_nearest nearest = {.word = name};
    DIR *dir = opendir(folder);
    if (!dir) return fk_fail(FK_ERROR_MISSING, "cannot read the scenarios folder %s: %s", folder, strerror(errno));
    int n = 0;
    for (struct dirent *e; n < 64 && (e = readdir(dir));)
        if (strip_yaml(e->d_name, names[n], sizeof names[n])) fkp_nearest_offer(&nearest, names[n++]);
    closedir(dir);
    return fkp_fail_unknown("scenario", &nearest, "'fastkernels list scenarios' shows them");
}

fk_status fkp_scenario_open(const char *name, const char *folder, fkp_scenario **out)
{
    char path[4352], base[256];
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    bool is_path = slash || strip_yaml(name, base, sizeof base);
    *out = NULL;
    if (is_path) snprintf(path, sizeof path, "%s", name);
    else snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file && !is_path && errno == ENOENT) return unknown_scenario(name, folder);
    if (!file) return fk_fail(FK_ERROR_INVALID, "cannot open scenario %s: %s", path, strerror(errno));
    fkp_scenario *s = calloc(1, sizeof *s);
    if (!strip_yaml(last, base, sizeof base)) snprintf(base, sizeof base, "%.255s", last);
    if (s) s->name = strdup(base);
    fk_status status = s && s->name ? parse(path, file, s) : fk_fail(FK_ERROR_MEMORY, "out of memory for a scenario");
    fclose(file);
    if (status == FK_OK) *out = s;
    else fkp_scenario_close(s);
    return status;
}

void fkp_scenario_close(fkp_scenario *s)
{
    if (!s) return;
    for (int64_t i = 0; i < s->num_requests; i++) {
        free(s->requests[i].prompt);
        free(s->requests[i].system);
        free(s->requests[i].ids);
    }
    free(s->requests);
    free(s->name);
    free(s->description);
    free(s->model);
    free(s);
}
