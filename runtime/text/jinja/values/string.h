/*
 * string.h - strings whose bytes know their origin, and a builder for them.
 *
 * A byte comes from the template or from a message.  The origin goes through all operations, so
 * that text which a user wrote never becomes a special token.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_JINJA_VALUES_STRING_H
#define FT_RUNTIME_TEXT_JINJA_VALUES_STRING_H

#include "runtime/text/jinja/values/run.h"

/* Immutable. */
typedef struct ft_jinja_string {
    const char *data; /* [bytes], valid UTF-8, not NUL-terminated */
    size_t bytes;
    const uint8_t *mask; /* [bytes]: 1 for bytes of messages; NULL: all are as `message` says */
    bool message;
} ft_jinja_string;

/* A string of borrowed bytes. */
const ft_jinja_string *ft_jinja_string_new(ft_jinja_run *run, const char *data, size_t bytes,
                                           bool message);

/* Bytes [start, end), shared with `of`. */
const ft_jinja_string *ft_jinja_substring(ft_jinja_run *run, const ft_jinja_string *of,
                                          size_t start, size_t end);

/* Whether byte `at` comes from a message. */
static inline bool ft_jinja_is_message(const ft_jinja_string *string, size_t at)
{
    return string->mask != NULL ? string->mask[at] != 0 : string->message;
}

bool ft_jinja_string_equal(const ft_jinja_string *a, const ft_jinja_string *b);
bool ft_jinja_string_is(const ft_jinja_string *string, const char *text);

/* Three-way comparison by code points. */
int ft_jinja_string_compare(const ft_jinja_string *a, const ft_jinja_string *b);

/* ---- Characters --------------------------------------------------------------------------- */

/* Number of characters. */
size_t ft_jinja_string_length(const ft_jinja_string *string);

/* The byte where character `index` begins; `bytes` for the number of characters. */
size_t ft_jinja_string_offset(const ft_jinja_string *string, size_t index);

/* Bytes of the character at byte `at`. */
size_t ft_jinja_char_bytes(const ft_jinja_string *string, size_t at);

/* White space of Python's str.strip() and of `\s`. */
bool ft_jinja_is_space(uint32_t c);

/* The first byte at or after `from` where `part` occurs; SIZE_MAX: nowhere. */
size_t ft_jinja_string_find(ft_jinja_run *run, const ft_jinja_string *string,
                            const ft_jinja_string *part, size_t from);

/* ---- Builder ------------------------------------------------------------------------------ */

/* Initialize with { run }. */
typedef struct ft_jinja_builder {
    ft_jinja_run *run;
    char *data;
    uint8_t *mask;
    size_t bytes, capacity;
} ft_jinja_builder;

void ft_jinja_put(ft_jinja_builder *to, const char *data, size_t bytes, bool message);
void ft_jinja_put_text(ft_jinja_builder *to, const char *text); /* of the template */
void ft_jinja_put_char(ft_jinja_builder *to, uint32_t c, bool message);
void ft_jinja_put_string(ft_jinja_builder *to, const ft_jinja_string *string);
void ft_jinja_put_part(ft_jinja_builder *to, const ft_jinja_string *string, size_t start,
                       size_t end);

/* What was put; the builder must not be used any more. */
const ft_jinja_string *ft_jinja_built(ft_jinja_builder *from);

#endif
