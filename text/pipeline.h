/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer.json says beyond vocabulary and merges: added tokens, normalizer, pre-tokenizer, how the model reads
 * a word, post-processor and decoder. A tokenizer that has one encodes as the `tokenizers` package does; one without
 * (GGUF) as llama.cpp does. */
#ifndef FK_TEXT_PIPELINE_H
#define FK_TEXT_PIPELINE_H

#include "text/normalizer.h"
#include "text/string_matcher.h"
#include "text/tokenizer.h"
#include "text/unigram.h"
#include "text/word_splitter.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fkp_pipeline_token {
    int32_t id;
    size_t bytes;        /* of the text that is looked for */
    bool special;        /* found only where control tokens are allowed */
    bool single_word;    /* not found inside of a word */
    bool lstrip, rstrip; /* takes the white space on that side */
} fkp_pipeline_token;

/* Added tokens that are looked for together, leftmost first, then the longest. */
typedef struct fkp_token_set {
    fkp_string_matcher matcher; /* pattern i is tokens[i] */
    fkp_pipeline_token *tokens;
    size_t count;
    bool any_plain; /* some are not special */
} fkp_token_set;

/* How a word becomes ids, by the names of tokenizer.json. */
typedef enum fkp_model_kind {
    FKP_MODEL_BPE,       /* symbols, then merges in the order of their ranks */
    FKP_MODEL_WORDPIECE, /* the longest pieces from the left */
    FKP_MODEL_WORDLEVEL, /* the word is a piece, or unknown */
    FKP_MODEL_UNIGRAM    /* the most probable pieces */
} fkp_model_kind;

struct fkp_pipeline {
    fkp_token_set raw, normalized; /* looked for before and after normalizing */
    fkp_normalizer_list normalizer;
    fkp_word_splitter splitter;
    fkp_model_kind model;
    bool by_bytes; /* symbols are bytes, the splitter's last step ByteLevel is left out; else characters */
    bool ignore_merges, byte_fallback, fuse_unknown;
    int32_t unknown_id;                     /* -1: characters without a piece are left out */
    fk_bytes continuing_prefix, end_suffix; /* of the names of symbols that begin no word, that end one */
    int32_t fallback_ids[256];              /* "<0x41>", -1 where there is none */
    fkp_unigram unigram;                    /* UNIGRAM */
    uint32_t *ranks;       /* BPE without a list of merges: [vocab_size] rank of the merge that makes a piece,
                              FKP_NO_RANK where none does; NULL: the merges are listed */
    fkp_trie user_defined; /* BPE: symbols that merge with nothing; the values are ids */
    int64_t max_chars;                      /* WORDPIECE: longer words are unknown */
    size_t longest_piece;                   /* bytes of the longest piece of the model */
    uint8_t *in_model;                      /* [vocab_size] 0: an added token only, which no word becomes */
    fk_token_list before, after;            /* what the post-processor puts around a text */
    /* Decoding is a table of bytes by id (fk_tokenizer.decoded) and these rules for the beginning of a text: */
    fk_bytes drop_from_first; /* what goes from the first piece wherever it stands, unless empty (Metaspace) */
    fk_bytes strip;           /* what goes from the front, */
    int64_t strip_count;      /* up to so many times, */
    bool strip_marks_only;    /* and only where the piece's name begins with U+2581 */
};
typedef struct fkp_pipeline fkp_pipeline;

void fkp_pipeline_destroy(fkp_pipeline *p);

/* Appends what the model makes of one word to `out`. */
struct fk_encoder;
fk_status fkp_pipeline_encode_word(struct fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out);

#ifdef __cplusplus
}
#endif
#endif
