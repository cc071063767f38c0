/* SPDX-License-Identifier: Apache-2.0 */
/* Reading tokenizer.json: what its files share. Each reader takes the object of its part, which may be NULL or null. */
#ifndef FK_TEXT_TOKENIZER_JSON_INTERNAL_H
#define FK_TEXT_TOKENIZER_JSON_INTERNAL_H

#include "core/json.h"
#include "text/pipeline.h"

/* ---- fields; `where` names the object in messages */

/* The field, NULL when it is absent or null. */
const json_t *fkp_json_field(const json_t *object, const char *field);
fk_status fkp_json_bool(const json_t *object, const char *where, const char *field, bool fallback, bool *out);
/* Absent: "" when not required. */
fk_status fkp_json_text(const json_t *object, const char *where, const char *field, bool required, fk_piece *out);
fk_status fkp_json_count(const json_t *object, const char *where, const char *field, int64_t fallback, int64_t most, int64_t *out);
/* The "type" of a part. */
fk_status fkp_json_type(const json_t *object, const char *where, const char **type);

/* ---- parts */

fk_status fkp_read_normalizer(const json_t *part, fkp_normalizer_list *out);
/* *byte_level: the last step makes bytes of words; it is left out of the splitter unless `map_bytes`. */
fk_status fkp_read_pre_tokenizer(const json_t *part, bool map_bytes, fkp_word_splitter *out, bool *byte_level);
fk_status fkp_read_post_processor(const json_t *part, int64_t vocab_size, fkp_pipeline *out);
/* always, first or never, or what add_prefix_space says in older files. */
fk_status fkp_read_prepend_scheme(const json_t *part, const char *where, fkp_prepend_scheme *out);
/* The field "pattern", {"String": ...} or {"Regex": ...}. */
fk_status fkp_read_pattern(const json_t *object, const char *where, fkp_pattern *out);

/* A decoder: what it makes of one piece, and in the pipeline what it does to the beginning of a text. */
typedef struct fkp_decoder fkp_decoder;
fk_status fkp_decoder_create(const json_t *part, fkp_pipeline *p, fkp_decoder **out);
void fkp_decoder_destroy(fkp_decoder *d);
/* The byte of "<0x41>", -1 for any other piece. */
int fkp_fallback_byte(fk_piece piece);
/* Appends the bytes that a piece stands for; `added`: it is an added token, plain text to the byte map. */
fk_status fkp_decoder_append(const fkp_decoder *d, fk_piece piece, bool added, fk_bytes *out);

#endif
