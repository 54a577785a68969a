/*
 * wire.c - read the fields of a protobuf message one after another.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/sentencepiece/wire.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

ft_status ft_wire_fail(const ft_wire_reader *reader, const unsigned char *at, ft_status code,
                       const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ft_fail(reader->err, code, "%s: byte %zu: %s", reader->file,
                   (size_t) (at - reader->start), text);
}

/* Seven bits per byte, the lowest first; the highest bit says that another byte follows. */
static ft_status read_varint(ft_wire_reader *reader, uint64_t *out)
{
    const unsigned char *from = reader->at;
    *out = 0;
    for (int shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
        unsigned char byte = *reader->at++;
        *out |= (uint64_t) (byte & 0x7f) << shift;
        if (byte < 0x80)
            return FT_OK;
    }
    return ft_wire_fail(reader, from, FT_EFORMAT,
                        "found %s, expected an integer of at most 10 bytes",
                        reader->at == reader->end ? "the end of the message" : "a longer one");
}

static ft_status read_fixed(ft_wire_reader *reader, size_t bytes, uint64_t *out)
{
    if ((size_t) (reader->end - reader->at) < bytes)
        return ft_wire_fail(reader, reader->at, FT_EFORMAT,
                            "found the end of the message, expected %zu bytes", bytes);
    *out = bytes == 4 ? ft_load_le32(reader->at) : ft_load_le64(reader->at);
    reader->at += bytes;
    return FT_OK;
}

static ft_status read_bytes(ft_wire_reader *reader, ft_wire_field *field)
{
    uint64_t size;
    FT_TRY(read_varint(reader, &size));
    if (size > (size_t) (reader->end - reader->at))
        return ft_wire_fail(reader, field->tag, FT_EFORMAT,
                            "field %" PRIu32 ": found %zu bytes, expected %" PRIu64, field->number,
                            (size_t) (reader->end - reader->at), size);
    field->bytes = reader->at;
    field->size = (size_t) size;
    reader->at += size;
    return FT_OK;
}

ft_status ft_wire_next(ft_wire_reader *reader, ft_wire_field *field, bool *more)
{
    uint64_t tag;
    *more = reader->at < reader->end;
    *field = (ft_wire_field){ .tag = reader->at };
    if (!*more)
        return FT_OK;
    FT_TRY(read_varint(reader, &tag));
    field->number = (uint32_t) (tag >> 3);
    field->type = (ft_wire_type) (tag & 7);
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return ft_wire_fail(reader, field->tag, FT_EFORMAT,
                            "found field number %" PRIu64 ", expected 1 to 536870911", tag >> 3);
    switch (field->type) {
    case FT_WIRE_VARINT:
        return read_varint(reader, &field->integer);
    case FT_WIRE_FIXED64:
        return read_fixed(reader, 8, &field->integer);
    case FT_WIRE_FIXED32:
        return read_fixed(reader, 4, &field->integer);
    case FT_WIRE_BYTES:
        return read_bytes(reader, field);
    }
    return ft_wire_fail(reader, field->tag, FT_EFORMAT,
                        "field %" PRIu32 ": found wire type %d, expected 0, 1, 2 or 5",
                        field->number, (int) (tag & 7));
}

static ft_status require_type(const ft_wire_reader *reader, const ft_wire_field *field,
                              ft_wire_type type)
{
    if (field->type == type)
        return FT_OK;
    return ft_wire_fail(reader, field->tag, FT_EFORMAT,
                        "field %" PRIu32 ": found wire type %d, expected %d", field->number,
                        (int) field->type, (int) type);
}

ft_status ft_wire_open(const ft_wire_reader *reader, const ft_wire_field *field,
                       ft_wire_reader *nested)
{
    FT_TRY(require_type(reader, field, FT_WIRE_BYTES));
    *nested = *reader;
    nested->at = field->bytes;
    nested->end = field->bytes + field->size;
    return FT_OK;
}

ft_status ft_wire_bool(const ft_wire_reader *reader, const ft_wire_field *field, bool *out)
{
    FT_TRY(require_type(reader, field, FT_WIRE_VARINT));
    *out = field->integer != 0;
    return FT_OK;
}

/* Negative values are stored as 64 bits. */
ft_status ft_wire_int32(const ft_wire_reader *reader, const ft_wire_field *field, int32_t *out)
{
    FT_TRY(require_type(reader, field, FT_WIRE_VARINT));
    *out = (int32_t) (uint32_t) field->integer;
    return FT_OK;
}

ft_status ft_wire_float(const ft_wire_reader *reader, const ft_wire_field *field, float *out)
{
    FT_TRY(require_type(reader, field, FT_WIRE_FIXED32));
    uint32_t bits = (uint32_t) field->integer;
    memcpy(out, &bits, sizeof *out);
    return FT_OK;
}

ft_status ft_wire_string(const ft_wire_reader *reader, const ft_wire_field *field, const char **out,
                         size_t *size)
{
    FT_TRY(require_type(reader, field, FT_WIRE_BYTES));
    *out = (const char *) field->bytes;
    *size = field->size;
    return FT_OK;
}
