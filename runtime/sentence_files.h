/* SPDX-License-Identifier: Apache-2.0 */
/* What sentence-transformers keeps beside a BERT in a folder: how many tokens it reads of a text, and how it makes one vector of
 * theirs. */
#ifndef FK_RUNTIME_SENTENCE_FILES_H
#define FK_RUNTIME_SENTENCE_FILES_H

#include <jansson.h>

#include <fk/status.h>

/* Adds max_seq_length (of sentence_bert_config.json) and pooling_mode ("mean" or "cls", of 1_Pooling/config.json) to the config,
 * each where its file is there. Another pooling is refused by its name. */
fk_status fk_sentence_files_read(const char *folder, json_t *config);

#endif
