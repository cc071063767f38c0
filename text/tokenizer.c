/* SPDX-License-Identifier: Apache-2.0 */
/* Building the tokenizer's tables from a vocabulary, with every check made here, once; and the questions
 * asked of them. */
#include "text/tokenizer_internal.h"

#include "text/byte_map.h"
#include "text/pipeline.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* For messages: pieces are shown up to this many bytes. */
#define SHOWN(piece) (int)((piece).bytes < 80 ? (piece).bytes : 80), (piece).data

uint64_t fkp_hash_bytes(const uint8_t *data, size_t bytes)
{
    const uint64_t multiplier = 0x9E3779B97F4A7C15u;
    uint64_t hash = bytes * multiplier;
    while (bytes >= 8) {
        uint64_t eight;
        memcpy(&eight, data, 8);
        hash = (hash ^ eight) * multiplier;
        hash ^= hash >> 32;
        data += 8;
        bytes -= 8;
    }
    uint64_t rest = 0;
    for (size_t i = 0; i < bytes; i++) rest = rest << 8 | data[i];
    hash = (hash ^ rest) * multiplier;
    return hash ^ hash >> 32;
}

fk_status fk_merge_rule_parse(fk_piece line, fk_merge_rule *out)
{
    const char *space = line.bytes > 1 ? memchr(line.data + 1, ' ', line.bytes - 1) : NULL;
    if (!space)
        return fk_fail(FK_ERROR_INVALID, "merge '%.*s' is not two pieces with a space between", SHOWN(line));
    size_t left = (size_t)(space - line.data);
    *out = (fk_merge_rule){{line.data, left}, {space + 1, line.bytes - left - 1}};
    return FK_OK;
}

/* Slot where the name stands, or the free one where it would stand. */
static size_t find_slot(const fk_tokenizer *t, fk_piece name)
{
    size_t slot = (size_t)fkp_hash_bytes((const uint8_t *)name.data, name.bytes) & (t->num_slots - 1);
    for (; t->slots[slot]; slot = (slot + 1) & (t->num_slots - 1)) {
        fk_piece there = fkp_piece_at(&t->names, t->slots[slot] - 1);
        if (there.bytes == name.bytes && memcmp(there.data, name.data, name.bytes) == 0) break;
    }
    return slot;
}

/* The bytes of a piece written in the byte map. A piece with any other character in it stands for itself, as
 * in the reference decoders: such pieces were added to the vocabulary in plain text. */
static fk_status append_mapped(fk_bytes *out, fk_piece name)
{
    const uint8_t *text = (const uint8_t *)name.data;
    size_t start = out->bytes;
    for (size_t pos = 0; pos < name.bytes;) {
        fkp_utf8_char c = fkp_utf8_read(text + pos, name.bytes - pos);
        int byte = c.state == FKP_UTF8_VALID ? fkp_code_point_to_byte(c.code_point) : -1;
        if (byte < 0) {
            out->bytes = start;
            return fk_bytes_append(out, name.data, name.bytes);
        }
        uint8_t value = (uint8_t)byte;
        FK_TRY(fk_bytes_append(out, &value, 1));
        pos += (size_t)c.bytes;
    }
    return FK_OK;
}

/* `decoded` NULL: pieces are written in the byte map. */
static fk_status copy_pieces(fk_tokenizer *t, const fk_tokenizer_spec *spec, const fk_piece *decoded)
{
    size_t count = (size_t)spec->vocab_size;
    FK_TRY(fkp_allocate(&t->types, count, sizeof *t->types));
    FK_TRY(fkp_allocate(&t->names.offsets, count + 1, sizeof *t->names.offsets));
    FK_TRY(fkp_allocate(&t->decoded.offsets, count + 1, sizeof *t->decoded.offsets));
    /* Room for one byte, so that even a vocabulary of empty pieces has an address. */
    FK_TRY(fk_bytes_append(&t->names.text, "", 1));
    FK_TRY(fk_bytes_append(&t->decoded.text, "", 1));
    t->names.offsets[0] = t->decoded.offsets[0] = 1;
    for (size_t id = 0; id < count; id++) {
        int32_t type = spec->types ? spec->types[id] : FK_TOKEN_NORMAL;
        fk_piece name = spec->pieces[id];
        if (type < FK_TOKEN_NORMAL || type > FK_TOKEN_UNUSED)
            return fk_fail(FK_ERROR_UNSUPPORTED,
                           "token %zu '%.*s' has type %d; a byte-level vocabulary has types 1 to 5", id,
                           SHOWN(name), type);
        t->types[id] = (uint8_t)type;
        FK_TRY(fk_bytes_append(&t->names.text, name.data, name.bytes));
        if (decoded)
            FK_TRY(fk_bytes_append(&t->decoded.text, decoded[id].data, decoded[id].bytes));
        else if (type == FK_TOKEN_NORMAL)
            FK_TRY(append_mapped(&t->decoded.text, name));
        else if (type != FK_TOKEN_UNUSED)
            FK_TRY(fk_bytes_append(&t->decoded.text, name.data, name.bytes));
        t->names.offsets[id + 1] = t->names.text.bytes;
        t->decoded.offsets[id + 1] = t->decoded.text.bytes;
    }
    return FK_OK;
}

static fk_status hash_pieces(fk_tokenizer *t)
{
    t->num_slots = 16;
    while (t->num_slots < 2 * (size_t)t->vocab_size) t->num_slots *= 2;
    FK_TRY(fkp_allocate(&t->slots, t->num_slots, sizeof *t->slots));
    for (int64_t id = 0; id < t->vocab_size; id++) {
        fk_piece name = fkp_piece_at(&t->names, id);
        if (name.bytes == 0) continue;
        size_t slot = find_slot(t, name);
        if (t->slots[slot])
            return fk_fail(FK_ERROR_INVALID, "tokens %u and %lld are both '%.*s'", t->slots[slot] - 1,
                           (long long)id, SHOWN(name));
        t->slots[slot] = (uint32_t)id + 1;
    }
    return FK_OK;
}

static fk_status find_merge_piece(const fk_tokenizer *t, fk_piece name, int64_t rank, const char *role,
                                  int32_t *id)
{
    *id = fk_tokenizer_find(t, name);
    if (*id >= 0) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "merge %lld: its %s piece '%.*s' is not in the vocabulary of %lld",
                   (long long)rank, role, SHOWN(name), (long long)t->vocab_size);
}

static void find_byte_ids(fk_tokenizer *t)
{
    for (int byte = 0; byte < 256; byte++) {
        uint8_t name[4];
        int bytes = fkp_utf8_write(fkp_byte_to_code_point((uint8_t)byte), name);
        int32_t id = fk_tokenizer_find(t, (fk_piece){(const char *)name, (size_t)bytes});
        bool made_of_text = id >= 0 && (t->pipeline ? t->pipeline->in_model[id] : t->types[id] == FK_TOKEN_NORMAL);
        if (made_of_text) t->bpe.byte_ids[byte] = id;
    }
}

static fk_status build_merges(fk_tokenizer *t, const fk_tokenizer_spec *spec)
{
    FK_TRY(fkp_bpe_init(&t->bpe, (size_t)spec->num_merges));
    find_byte_ids(t);
    fk_bytes joined = {0};
    fk_status status = FK_OK;
    for (int64_t rank = 0; rank < spec->num_merges && status == FK_OK; rank++) {
        const fk_merge_rule *rule = &spec->merges[rank];
        fkp_merge merge = {.rank = (uint32_t)rank};
        fk_bytes_clear(&joined);
        /* The mark of pieces that go on with a word ("##") stands within no piece. */
        size_t mark = t->pipeline ? t->pipeline->continuing_prefix.bytes : 0;
        if (mark > rule->right.bytes) mark = rule->right.bytes;
        status = fk_bytes_append(&joined, rule->left.data, rule->left.bytes);
        if (status == FK_OK) status = fk_bytes_append(&joined, rule->right.data + mark, rule->right.bytes - mark);
        if (status == FK_OK) status = find_merge_piece(t, rule->left, rank, "left", &merge.left);
        if (status == FK_OK) status = find_merge_piece(t, rule->right, rank, "right", &merge.right);
        if (status == FK_OK)
            status =
                find_merge_piece(t, (fk_piece){joined.data, joined.bytes}, rank, "joined", &merge.joined);
        if (status == FK_OK) status = fkp_bpe_add_merge(&t->bpe, merge);
    }
    fk_bytes_deinit(&joined);
    if (status != FK_OK || spec->num_merges > 0) return status;

    /* Without a byte map a character may be four bytes, and names of bytes decode to one. */
    size_t longest_symbol = t->pipeline && !t->pipeline->by_bytes ? 4 : 1;
    for (int64_t id = 0; id < t->vocab_size; id++)
        if (t->types[id] == FK_TOKEN_NORMAL && fkp_piece_at(&t->decoded, id).bytes > longest_symbol)
            return fk_fail(FK_ERROR_INVALID,
                           "the vocabulary has no merges, so token %lld '%.*s' could never be made",
                           (long long)id, SHOWN(fkp_piece_at(&t->names, id)));
    return FK_OK;
}

/* The id of a piece that words may become, -1 when there is none. */
static int32_t find_in_model(const fk_tokenizer *t, fk_piece name)
{
    int32_t id = fk_tokenizer_find(t, name);
    return id >= 0 && t->pipeline->in_model[id] ? id : -1;
}

/* Merges out of the ranks of pieces: any two pieces that make a third may be joined, at the rank of that one.
 */
static fk_status build_rank_merges(fk_tokenizer *t)
{
    enum {
        MOST_PIECE_BYTES = 512
    }; /* every way to cut a piece is tried; o200k's longest are 128 spaces, 256 bytes */
    FK_TRY(fkp_bpe_init(&t->bpe, 2 * (size_t)t->vocab_size));
    find_byte_ids(t);
    for (int64_t id = 0; id < t->vocab_size; id++) {
        fkp_merge merge = {.joined = (int32_t)id, .rank = t->pipeline->ranks[id]};
        fk_piece name = fkp_piece_at(&t->names, id);
        if (merge.rank == FKP_NO_RANK) continue;
        if (name.bytes > MOST_PIECE_BYTES)
            return fk_fail(FK_ERROR_UNSUPPORTED,
                           "token %lld '%.*s' has %zu bytes; the longest that is built has %d", (long long)id,
                           SHOWN(name), name.bytes, MOST_PIECE_BYTES);
        for (size_t at = 0, next; at < name.bytes; at = next) {
            next = at + (size_t)fkp_utf8_read((const uint8_t *)name.data + at, name.bytes - at).bytes;
            if (find_in_model(t, (fk_piece){name.data + at, next - at}) < 0)
                return fk_fail(FK_ERROR_UNSUPPORTED,
                               "token %lld '%.*s': its part '%.*s' is no token, so it could never be made",
                               (long long)id, SHOWN(name), (int)(next - at), name.data + at);
            merge.left = find_in_model(t, (fk_piece){name.data, at});
            merge.right = find_in_model(t, (fk_piece){name.data + at, name.bytes - at});
            if (merge.left >= 0 && merge.right >= 0) FK_TRY(fkp_bpe_add_merge(&t->bpe, merge));
        }
    }
    return FK_OK;
}

typedef struct special_order {
    size_t bytes;
    int32_t id;
} special_order;

static int longest_first(const void *left, const void *right)
{
    const special_order *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static fk_status build_special(fk_tokenizer *t)
{
    special_order *order = NULL;
    fk_piece *names = NULL;
    size_t count = 0;
    fk_status status = fkp_allocate(&order, (size_t)t->vocab_size, sizeof *order);
    if (status != FK_OK) goto done;
    for (int64_t id = 0; id < t->vocab_size; id++) {
        size_t bytes = fkp_piece_at(&t->names, id).bytes;
        if (bytes == 0 || t->types[id] == FK_TOKEN_NORMAL || t->types[id] == FK_TOKEN_UNUSED) continue;
        if (t->types[id] == FK_TOKEN_USER_DEFINED) t->has_user_defined = true;
        order[count++] = (special_order){bytes, (int32_t)id};
    }
    qsort(order, count, sizeof *order, longest_first);
    status = fkp_allocate(&names, count, sizeof *names);
    if (status == FK_OK) status = fkp_allocate(&t->special_ids, count, sizeof *t->special_ids);
    if (status != FK_OK) goto done;
    for (size_t i = 0; i < count; i++) {
        t->special_ids[i] = order[i].id;
        names[i] = fkp_piece_at(&t->names, order[i].id);
    }
    t->num_special = count;
    status = fkp_string_matcher_init(&t->special_matcher, names, count);
done:
    free(order);
    free(names);
    return status;
}

static fk_status copy_end_ids(fk_tokenizer *t, const fk_tokenizer_spec *spec)
{
    if (spec->bos_id < -1 || spec->bos_id >= spec->vocab_size)
        return fk_fail(FK_ERROR_INVALID, "begin-of-sequence id %d is outside the vocabulary of %lld",
                       spec->bos_id, (long long)spec->vocab_size);
    t->bos_id = spec->bos_id;
    t->add_bos = spec->add_bos < 0 && t->pretokenizer ? t->pretokenizer->add_bos : spec->add_bos > 0;
    if (t->add_bos && t->bos_id < 0)
        return fk_fail(FK_ERROR_INVALID,
                       "texts must begin with a begin-of-sequence token, but its id is not given");
    FK_TRY(fkp_allocate(&t->eos_ids, (size_t)spec->num_eos_ids, sizeof *t->eos_ids));
    t->num_eos_ids = spec->num_eos_ids;
    for (int64_t i = 0; i < spec->num_eos_ids; i++) {
        t->eos_ids[i] = spec->eos_ids[i];
        if (spec->eos_ids[i] < 0 || spec->eos_ids[i] >= spec->vocab_size)
            return fk_fail(FK_ERROR_INVALID, "end-of-sequence id %d is outside the vocabulary of %lld",
                           spec->eos_ids[i], (long long)spec->vocab_size);
    }
    return FK_OK;
}

static fk_status build(fk_tokenizer *t, const fk_tokenizer_spec *spec, const fk_piece *decoded)
{
    if (!t->pipeline) FK_TRY(fkp_pretokenizer_find(spec->pre, &t->pretokenizer));
    if (spec->vocab_size < 1 || spec->vocab_size > INT32_MAX)
        return fk_fail(FK_ERROR_INVALID, "a vocabulary cannot have %lld tokens", (long long)spec->vocab_size);
    if (spec->num_merges < 0 || spec->num_merges > INT32_MAX)
        return fk_fail(FK_ERROR_INVALID, "a vocabulary cannot have %lld merges", (long long)spec->num_merges);
    t->vocab_size = spec->vocab_size;
    FK_TRY(copy_pieces(t, spec, decoded));
    FK_TRY(hash_pieces(t));
    if (t->pipeline && t->pipeline->ranks)
        FK_TRY(build_rank_merges(t));
    else if (!t->pipeline || t->pipeline->model == FKP_MODEL_BPE)
        FK_TRY(build_merges(t, spec));
    FK_TRY(build_special(t));
    return copy_end_ids(t, spec);
}

static fk_status create(const fk_tokenizer_spec *spec, const fk_piece *decoded, fkp_pipeline *pipeline, fk_tokenizer **out)
{
    *out = NULL;
    fk_tokenizer *t = NULL;
    fk_status status = fkp_allocate(&t, 1, sizeof *t);
    if (status != FK_OK) {
        fkp_pipeline_destroy(pipeline);
        return status;
    }
    t->pipeline = pipeline;
    status = build(t, spec, decoded);
    if (status == FK_OK)
        *out = t;
    else
        fk_tokenizer_destroy(t);
    return fk_fail_context(status, "tokenizer");
}

fk_status fk_tokenizer_create(const fk_tokenizer_spec *spec, fk_tokenizer **out)
{
    return create(spec, NULL, NULL, out);
}

fk_status fkp_tokenizer_create_pipeline(const fk_tokenizer_spec *spec, const fk_piece *decoded, fkp_pipeline *pipeline,
                                        fk_tokenizer **out)
{
    return create(spec, decoded, pipeline, out);
}

void fk_tokenizer_destroy(fk_tokenizer *t)
{
    if (!t) return;
    fk_bytes_deinit(&t->names.text);
    fk_bytes_deinit(&t->decoded.text);
    free(t->names.offsets);
    free(t->decoded.offsets);
    free(t->types);
    free(t->slots);
    free(t->special_ids);
    free(t->eos_ids);
    fkp_bpe_deinit(&t->bpe);
    fkp_string_matcher_deinit(&t->special_matcher);
    fkp_pipeline_destroy(t->pipeline);
    free(t);
}

int64_t fk_tokenizer_vocab_size(const fk_tokenizer *t)
{
    return t->vocab_size;
}

int32_t fk_tokenizer_bos_id(const fk_tokenizer *t)
{
    return t->bos_id;
}

bool fk_tokenizer_is_eos(const fk_tokenizer *t, int32_t id)
{
    for (int64_t i = 0; i < t->num_eos_ids; i++)
        if (t->eos_ids[i] == id) return true;
    return false;
}

bool fk_tokenizer_is_special(const fk_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab_size && fkp_is_control(t, id);
}

fk_piece fk_tokenizer_piece(const fk_tokenizer *t, int32_t id)
{
    if (id < 0 || id >= t->vocab_size) return (fk_piece){"", 0};
    return fkp_piece_at(&t->decoded, id);
}

fk_piece fk_tokenizer_name(const fk_tokenizer *t, int32_t id)
{
    if (id < 0 || id >= t->vocab_size) return (fk_piece){"", 0};
    return fkp_piece_at(&t->names, id);
}

int32_t fk_tokenizer_find(const fk_tokenizer *t, fk_piece text)
{
    return text.bytes ? (int32_t)t->slots[find_slot(t, text)] - 1 : -1;
}
