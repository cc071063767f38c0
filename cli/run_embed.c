/* SPDX-License-Identifier: Apache-2.0 */
/* The vector of one text, or the passages of a file that fit a query best. A passage is a paragraph; in a file without blank lines,
 * a line. */
#include "cli/run_embed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fk/door.h>
#include <fk/model.h>

#include "bench/candidate_set.h"
#include "bench/protocol.h"
#include "cli/interrupt.h"
#include "cli/model_input.h"
#include "cli/output.h"
#include "runtime/embedder.h"
#include "runtime/prompt.h"
#include "runtime/trace.h"

#define SHOWN_BYTES 240 /* of a passage on the terminal */

typedef struct passage {
    fk_piece text;
    int64_t line;  /* of the file, from 1 */
    int64_t first; /* of its ids in the list of all */
    float score;
} passage;

typedef struct session {
    fkp_cli *cli;
    const fkp_embed_options *o;
    fk_model *model;
    fk_embedder *embedder;
    fkp_candidate_set candidates;
    fk_trace *trace;
    fk_bytes prompt, file;
    fk_token_list query, ids; /* of all passages, one after another */
    passage *passages;
    fk_id_span *spans;
    int64_t count, capacity, truncated;
    fk_vectors asked, found;
    double encode_s;
} session;

/* ---- text */

static fk_status read_query(session *s)
{
    const fkp_embed_options *o = s->o;
    int64_t cut = 0;
    if ((o->prompt != NULL) + (o->prompt_ids != NULL) + (o->file != NULL) > 1)
        return fk_fail(FK_ERROR_INVALID, "give one of --prompt, --prompt-ids, --file");
    if (o->prompt_ids) return fkp_parse_ids("--prompt-ids", o->prompt_ids, &s->query);
    if (!o->prompt && !o->file && isatty(STDIN_FILENO))
        return fk_fail(FK_ERROR_INVALID, "no text: give --prompt, --prompt-ids, --file, or text on stdin");
    if (o->prompt) FK_TRY(fk_bytes_append(&s->prompt, o->prompt, strlen(o->prompt)));
    else FK_TRY(fkp_read_input(o->file ? o->file : "-", &s->prompt));
    fk_piece text = {s->prompt.data, s->prompt.bytes};
    if (text.bytes == 0) return fk_fail(FK_ERROR_INVALID, "the text is empty");
    FK_TRY(fk_check_utf8("the text", text));
    FK_TRY(fk_embedder_tokenize(s->model, text, o->search ? FK_TEXT_QUERY : FK_TEXT_DOCUMENT, &s->query, &cut));
    if (cut > 0)
        fkp_warn(s->cli, "the text has %lld tokens; %s reads the first %lld", (long long)(s->query.count + cut),
                 fk_model_name(s->model), (long long)fk_embedder_max_length(s->model));
    return FK_OK;
}

static bool is_blank(const char *line, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!strchr(" \t\r\f\v", line[i])) return false;
    return true;
}

static fk_status add_passage(session *s, const char *begin, const char *end, int64_t line)
{
    if (is_blank(begin, (size_t)(end - begin))) return FK_OK;
    if (s->count == s->capacity) {
        int64_t capacity = s->capacity ? 2 * s->capacity : 256;
        passage *grown = realloc(s->passages, (size_t)capacity * sizeof *grown);
        if (!grown) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld passages", (long long)capacity);
        s->passages = grown;
        s->capacity = capacity;
    }
    passage *p = &s->passages[s->count++];
    int64_t cut = 0;
    *p = (passage){.text = {begin, (size_t)(end - begin)}, .line = line, .first = s->ids.count};
    FK_TRY(fk_embedder_tokenize(s->model, p->text, FK_TEXT_DOCUMENT, &s->ids, &cut));
    s->truncated += cut > 0;
    return FK_OK;
}

/* One pass over the lines: `apart` ends a passage at a blank line, else at every line. */
static fk_status split(session *s, bool apart)
{
    const char *at = s->file.data, *end = at + s->file.bytes, *begin = NULL;
    int64_t line = 0, first_line = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        line++;
        bool blank = is_blank(at, (size_t)(stop - at));
        if (!blank && !begin) begin = at, first_line = line;
        if (begin && (blank || !apart)) {
            FK_TRY(add_passage(s, begin, blank ? at - 1 : stop, first_line));
            begin = NULL;
        }
        at = stop + 1;
    }
    return begin ? add_passage(s, begin, end, first_line) : FK_OK;
}

static bool has_paragraphs(const fk_bytes *text)
{
    bool text_before = false, gap = false;
    for (const char *at = text->data, *end = at + text->bytes; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        bool blank = is_blank(at, (size_t)(stop - at));
        if (!blank && gap) return true;
        text_before = text_before || !blank;
        gap = text_before && blank;
        at = stop + 1;
    }
    return false;
}

static fk_status read_passages(session *s)
{
    FK_TRY(fkp_read_input(s->o->search, &s->file));
    FK_TRY(fk_check_utf8(s->o->search, (fk_piece){s->file.data, s->file.bytes}));
    FK_TRY(split(s, has_paragraphs(&s->file)));
    if (s->count == 0) return fk_fail(FK_ERROR_INVALID, "%s has no text to search", s->o->search);
    s->spans = malloc((size_t)s->count * sizeof *s->spans);
    if (!s->spans) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld passages", (long long)s->count);
    for (int64_t i = 0; i < s->count; i++) {
        int64_t end = i + 1 < s->count ? s->passages[i + 1].first : s->ids.count;
        s->spans[i] = (fk_id_span){s->ids.ids + s->passages[i].first, end - s->passages[i].first};
    }
    if (s->truncated > 0)
        fkp_warn(s->cli, "%lld of %lld passages are longer than the %lld tokens that %s reads of one: their ends are not searched",
                 (long long)s->truncated, (long long)s->count, (long long)fk_embedder_max_length(s->model), fk_model_name(s->model));
    return FK_OK;
}

/* ---- running */

static int by_score(const void *a, const void *b)
{
    const passage *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->line > y->line) - (x->line < y->line);
}

static fk_status encode(session *s)
{
    double start = fkp_now();
    fk_id_span query = {s->query.ids, s->query.count};
    FK_TRY(fk_embedder_encode(s->embedder, &query, 1, fkp_interrupted, &s->asked));
    if (s->o->search) {
        FK_TRY(fk_embedder_encode(s->embedder, s->spans, s->count, fkp_interrupted, &s->found));
        float *scores = malloc((size_t)s->count * sizeof *scores);
        if (!scores) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld scores", (long long)s->count);
        fk_status status = fk_embedder_score(s->embedder, &s->asked, 0, &s->found, s->spans, scores);
        for (int64_t i = 0; i < s->count; i++) s->passages[i].score = scores[i];
        free(scores);
        FK_TRY(status);
        qsort(s->passages, (size_t)s->count, sizeof *s->passages, by_score);
    }
    s->encode_s = fkp_now() - start;
    return FK_OK;
}

static json_t *reached_json(session *s)
{
    json_t *reached = json_object();
    for (int i = 0; i < s->candidates.count; i++) {
        int64_t calls, total;
        fk_door_counts(fk_embedder_ctx(s->embedder), s->candidates.ops[i], &calls, &total);
        json_object_set_new(reached, s->candidates.ops[i]->name, json_integer(calls));
        if (calls == 0) fkp_warn(s->cli, "no call reached candidate %s", s->candidates.ops[i]->name);
    }
    return reached;
}

/* ---- what is shown */

/* The vector of the text, or one for each token. */
static json_t *embedding_json(const fk_vectors *v, bool token_vectors)
{
    json_t *rows = json_array();
    for (int64_t r = 0; r < v->starts[v->count]; r++) {
        json_t *row = json_array();
        for (int64_t i = 0; i < v->features; i++) json_array_append_new(row, fkp_json_real((double)v->values[r * v->features + i]));
        if (!token_vectors) {
            json_decref(rows);
            return row;
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *matches_json(const session *s, int64_t shown)
{
    json_t *matches = json_array();
    for (int64_t i = 0; i < shown; i++)
        json_array_append_new(matches, json_pack("{s:I, s:o, s:I, s:o}", "rank", (json_int_t)i + 1, "score", fkp_json_real((double)s->passages[i].score),
                                                 "line", (json_int_t)s->passages[i].line, "text",
                                                 json_stringn(s->passages[i].text.data, s->passages[i].text.bytes)));
    return matches;
}

/* The passage on one line, shortened at a character's border. */
static void print_passage(session *s, const passage *p, int64_t rank)
{
    char text[SHOWN_BYTES + 1];
    size_t n = 0, i = 0;
    for (; i < p->text.bytes && n < SHOWN_BYTES; i++) {
        char c = p->text.data[i];
        bool space = strchr(" \t\r\n\f\v", c) != NULL;
        if (space && (n == 0 || text[n - 1] == ' ')) continue;
        text[n++] = space ? ' ' : (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
    }
    bool more = i < p->text.bytes;
    while (more && n > 0 && ((unsigned char)p->text.data[i] & 0xc0) == 0x80) i--, n--;
    text[n] = 0;
    fkp_print(s->cli, "%3lld  %s%8.4f%s  line %-6lld %s%s\n", (long long)rank, fkp_style_on(s->cli, FKP_BOLD), (double)p->score,
              fkp_style_off(s->cli, FKP_BOLD), (long long)p->line, text, more ? " ..." : "");
}

static void print_vector(session *s)
{
    int64_t rows = s->asked.starts[1], shown = s->asked.features < 8 ? s->asked.features : 8;
    fkp_print(s->cli, "%lld vector%s of %lld features, length 1:", (long long)rows, rows == 1 ? "" : "s, one a token,", (long long)s->asked.features);
    for (int64_t i = 0; i < shown; i++) fkp_print(s->cli, " %.6f", (double)s->asked.values[i]);
    fkp_print(s->cli, "%s\n", s->asked.features > shown || rows > 1 ? " ... (all with --json)" : "");
}

static void report(session *s)
{
    json_t *result = fkp_result(s->cli, "run");
    int64_t shown = s->count < s->o->best ? s->count : s->o->best;
    json_object_set_new(result, "model", fkp_json_text(fk_model_name(s->model)));
    json_object_set_new(result, "dtype", json_string(fk_dtype_name(fk_model_dtype(s->model))));
    json_object_set_new(result, "prompt_ids", fkp_ids_json(&s->query));
    json_object_set_new(result, "embedding", embedding_json(&s->asked, fk_model_get_info(s->model)->token_vectors));
    if (s->o->search) {
        json_object_set_new(result, "searched", fkp_json_text(s->o->search));
        json_object_set_new(result, "passages", json_integer(s->count));
        json_object_set_new(result, "passages_cut", json_integer(s->truncated));
        json_object_set_new(result, "matches", matches_json(s, shown));
    }
    json_object_set_new(result, "timings", json_pack("{s:o, s:o}", "load_ms", fkp_json_real(1e3 * fk_model_load_seconds(s->model)), "encode_ms",
                                                     fkp_json_real(1e3 * s->encode_s)));
    if (s->o->candidates) json_object_set_new(result, "reached", reached_json(s));
    fkp_emit(s->cli, result);
    for (int64_t i = 0; i < shown && fkp_prints(s->cli); i++) print_passage(s, &s->passages[i], i + 1);
    if (!s->o->search) print_vector(s);
    fkp_flush(s->cli);
    fkp_info(s->cli, "%s, %s: loaded in %.2f s; %lld tokens in %.1f ms", fk_model_name(s->model), fk_dtype_name(fk_model_dtype(s->model)),
             fk_model_load_seconds(s->model), (long long)(s->query.count + s->ids.count), 1e3 * s->encode_s);
}

static fk_status write_trace(session *s)
{
    int64_t left_out, slices = fk_trace_slices(s->trace, &left_out);
    FK_TRY(fk_trace_write(s->trace, s->o->trace));
    fkp_info(s->cli, "%lld calls in %s; open it in ui.perfetto.dev", (long long)slices, s->o->trace);
    if (left_out) fkp_warn(s->cli, "the trace is full: %lld later calls are not in it", (long long)left_out);
    return FK_OK;
}

static fk_status run_session(session *s)
{
    fk_model_options model = {.seed = s->cli->common.seed < 0 ? 0 : (uint64_t)s->cli->common.seed, .cache_dir = s->cli->common.cache};
    FK_TRY(fkp_cli_device(s->cli, &model.device));
    FK_TRY(fkp_parse_dtype(s->o->dtype, &model.dtype));
    if (!s->o->model) return fk_fail(FK_ERROR_INVALID, "which model? --model M, for example --model minilm-l6");
    FK_TRY(fk_model_open(s->o->model, &model, &s->model));
    FK_TRY(fk_embedder_create(s->model, &(fk_embedder_options){.threads = (int)s->cli->common.threads, .references_only = s->o->references_only},
                              &s->embedder));
    FK_TRY(read_query(s));
    if (s->o->search) FK_TRY(read_passages(s));
    if (s->o->candidates) {
        FK_TRY(fkp_candidate_set_open(s->o->candidates, (fk_device_type)model.device.type, s->cli->common.cache, fkp_interrupted,
                                      &s->candidates));
        FK_TRY(fkp_candidate_set_install(&s->candidates, NULL, fk_embedder_ctx(s->embedder)));
    }
    if (s->o->trace) FK_TRY(fk_trace_create(fk_embedder_ctx(s->embedder), &s->trace));
    if (s->trace) fk_trace_begin(s->trace, "encode");
    fk_status status = encode(s);
    if (s->trace) fk_trace_end(s->trace);
    FK_TRY(status);
    if (s->trace) FK_TRY(write_trace(s));
    report(s);
    return FK_OK;
}

int fkp_run_embed(fkp_cli *cli, const fkp_embed_options *options)
{
    session s = {.cli = cli, .o = options};
    int code = fkp_exit(cli, run_session(&s));
    fk_vectors_deinit(&s.asked);
    fk_vectors_deinit(&s.found);
    free(s.spans);
    free(s.passages);
    fk_token_list_deinit(&s.query);
    fk_token_list_deinit(&s.ids);
    fk_bytes_deinit(&s.prompt);
    fk_bytes_deinit(&s.file);
    fk_trace_destroy(s.trace);
    fk_embedder_destroy(s.embedder);
    fkp_candidate_set_close(&s.candidates);
    fk_model_close(s.model);
    return code;
}
