/* SPDX-License-Identifier: Apache-2.0 */
/* What run, tokenize, detokenize and eval take from the command line alike: ids, texts from files, dtypes. */
#ifndef FK_CLI_MODEL_INPUT_H
#define FK_CLI_MODEL_INPUT_H

#include <jansson.h>

#include <fk/tensor.h>

#include "text/buffer.h"

/* "1,2,3" or "1 2 3"; `what` names the option. */
fk_status fkp_parse_ids(const char *what, const char *text, fk_token_list *out);
json_t *fkp_ids_json(const fk_token_list *ids);
/* The whole of a file; "-" is stdin. */
fk_status fkp_read_input(const char *path, fk_bytes *out);
/* "f32", "bf16", "f16"; NULL is FK_NONE. */
fk_status fkp_parse_dtype(const char *text, fk_dtype *out);

#endif
