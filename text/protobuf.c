/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format: a key (number << 3 | type), then the value. */
#include "text/protobuf.h"

#include <string.h>

static fk_status truncated(void)
{
    return fk_fail(FK_ERROR_INVALID, "the message ends within a field");
}

static fk_status read_varint(fk_piece *message, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < 10; i++) {
        if (i == message->bytes) return truncated();
        const uint8_t byte = (uint8_t)message->data[i];
        if (i == 9 && byte > 1) break;
        *out |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte & 0x80) continue;
        *message = (fk_piece){message->data + i + 1, message->bytes - i - 1};
        return FK_OK;
    }
    return fk_fail(FK_ERROR_INVALID, "a number is longer than 64 bits");
}

static fk_status read_fixed(fk_piece *message, size_t bytes, uint64_t *out)
{
    if (message->bytes < bytes) return truncated();
    *out = 0;
    for (size_t i = 0; i < bytes; i++) *out |= (uint64_t)(uint8_t)message->data[i] << (8 * i);
    *message = (fk_piece){message->data + bytes, message->bytes - bytes};
    return FK_OK;
}

fk_status fkp_protobuf_next(fk_piece *message, fkp_protobuf_field *field, bool *end)
{
    uint64_t key, length;
    *end = message->bytes == 0;
    if (*end) return FK_OK;
    FK_TRY(read_varint(message, &key));
    if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF)
        return fk_fail(FK_ERROR_INVALID, "a field has the number %llu", (unsigned long long)(key >> 3));
    *field = (fkp_protobuf_field){.number = (uint32_t)(key >> 3), .type = (fkp_protobuf_type)(key & 7)};
    switch (field->type) {
    case FKP_PROTOBUF_VARINT:
        return read_varint(message, &field->value);
    case FKP_PROTOBUF_FIXED64:
        return read_fixed(message, 8, &field->value);
    case FKP_PROTOBUF_FIXED32:
        return read_fixed(message, 4, &field->value);
    case FKP_PROTOBUF_BYTES:
        FK_TRY(read_varint(message, &length));
        if (length > message->bytes) return truncated();
        field->bytes = (fk_piece){message->data, (size_t)length};
        *message = (fk_piece){message->data + length, message->bytes - (size_t)length};
        return FK_OK;
    default:
        return fk_fail(FK_ERROR_INVALID, "field %u has wire type %d", field->number, (int)field->type);
    }
}

static fk_status expect(const fkp_protobuf_field *f, const char *where, fkp_protobuf_type type)
{
    return f->type == type
               ? FK_OK
               : fk_fail(FK_ERROR_INVALID, "%s has wire type %d, not %d", where, (int)f->type, (int)type);
}

fk_status fkp_protobuf_bytes(const fkp_protobuf_field *f, const char *where, fk_piece *out)
{
    FK_TRY(expect(f, where, FKP_PROTOBUF_BYTES));
    *out = f->bytes;
    return FK_OK;
}

fk_status fkp_protobuf_int(const fkp_protobuf_field *f, const char *where, int64_t *out)
{
    FK_TRY(expect(f, where, FKP_PROTOBUF_VARINT));
    memcpy(out, &f->value, sizeof *out);
    return FK_OK;
}

fk_status fkp_protobuf_bool(const fkp_protobuf_field *f, const char *where, bool *out)
{
    FK_TRY(expect(f, where, FKP_PROTOBUF_VARINT));
    *out = f->value != 0;
    return FK_OK;
}

fk_status fkp_protobuf_float(const fkp_protobuf_field *f, const char *where, float *out)
{
    FK_TRY(expect(f, where, FKP_PROTOBUF_FIXED32));
    const uint32_t bits = (uint32_t)f->value;
    memcpy(out, &bits, sizeof *out);
    return FK_OK;
}
