/*
 * wire.h - the wire format of protobuf: a message is a row of fields, each a number and a value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_SENTENCEPIECE_WIRE_H
#define FT_CONVERT_TOKENIZER_SENTENCEPIECE_WIRE_H

#include "runtime/ft.h"

/* A message that is being read; nested messages share `file`, `start` and `err`. */
typedef struct ft_wire_reader {
    const char *file;                      /* for messages */
    const unsigned char *start, *at, *end; /* start is that of the file */
    ft_error *err;
} ft_wire_reader;

/* How the value of a field is stored; groups are obsolete and rejected. */
typedef enum ft_wire_type {
    FT_WIRE_VARINT = 0,
    FT_WIRE_FIXED64 = 1,
    FT_WIRE_BYTES = 2, /* a string, bytes or a nested message */
    FT_WIRE_FIXED32 = 5,
} ft_wire_type;

typedef struct ft_wire_field {
    uint32_t number;
    ft_wire_type type;
    uint64_t integer;           /* of VARINT, FIXED32 and FIXED64 */
    const unsigned char *bytes; /* of BYTES, in the file */
    size_t size;
    const unsigned char *tag; /* where the field starts */
} ft_wire_field;

/* Read the next field; *more is false at the end. FT_EFORMAT: truncated or malformed. */
FT_MUST_USE ft_status ft_wire_next(ft_wire_reader *reader, ft_wire_field *field, bool *more);

/* A reader of a nested message; FT_EFORMAT, as below, for a field of another type. */
FT_MUST_USE ft_status ft_wire_open(const ft_wire_reader *reader, const ft_wire_field *field,
                                   ft_wire_reader *nested);

/* Values of the schema's types; FT_EFORMAT when the field is stored in another way. */
FT_MUST_USE ft_status ft_wire_bool(const ft_wire_reader *reader, const ft_wire_field *field,
                                   bool *out);
FT_MUST_USE ft_status ft_wire_int32(const ft_wire_reader *reader, const ft_wire_field *field,
                                    int32_t *out);
FT_MUST_USE ft_status ft_wire_float(const ft_wire_reader *reader, const ft_wire_field *field,
                                    float *out);
FT_MUST_USE ft_status ft_wire_string(const ft_wire_reader *reader, const ft_wire_field *field,
                                     const char **out, size_t *size);

/* Fail with "FILE: byte N: " and a text; `at` is a place in the file. */
ft_status ft_wire_fail(const ft_wire_reader *reader, const unsigned char *at, ft_status code,
                       const char *format, ...) __attribute__((format(printf, 4, 5), cold));

#endif
