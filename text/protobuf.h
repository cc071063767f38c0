/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a Protocol Buffers message one after the other (the wire format of protobuf.dev): enough to read
 * a message whose few fields are known, from bytes that nobody vouches for. */
#ifndef FK_TEXT_PROTOBUF_H
#define FK_TEXT_PROTOBUF_H

#include "text/buffer.h"

#include <stdbool.h>

typedef enum fkp_protobuf_type {
    FKP_PROTOBUF_VARINT = 0,
    FKP_PROTOBUF_FIXED64 = 1,
    FKP_PROTOBUF_BYTES = 2,
    FKP_PROTOBUF_FIXED32 = 5
} fkp_protobuf_type;

typedef struct fkp_protobuf_field {
    uint32_t number;
    fkp_protobuf_type type;
    uint64_t value; /* of the numbers, as it stands */
    fk_piece bytes; /* of BYTES: a text or a message, borrowed */
} fkp_protobuf_field;

/* Takes the next field off the front of *message, or sets *end. Refuses truncated fields, numbers longer than
 * 64 bits and groups. */
fk_status fkp_protobuf_next(fk_piece *message, fkp_protobuf_field *field, bool *end);

/* The field as what it should be; `where` names it in the message of a wrong type. */
fk_status fkp_protobuf_bytes(const fkp_protobuf_field *f, const char *where, fk_piece *out);
fk_status fkp_protobuf_int(const fkp_protobuf_field *f, const char *where, int64_t *out);
fk_status fkp_protobuf_bool(const fkp_protobuf_field *f, const char *where, bool *out);
fk_status fkp_protobuf_float(const fkp_protobuf_field *f, const char *where, float *out);

#endif
