/*
 * json_scan.h - the words of a safetensors header: strict JSON, one token at a time.  The
 * large tables of a tokenizer.json are read by it too.
 *
 * A header has a fixed grammar of depth three, so there is no tree, no recursion and no skipping
 * of unknown values: the reader asks for exactly what must come next, and everything else is an
 * error that says where.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_JSON_SCAN_H
#define FT_RUNTIME_BASE_JSON_SCAN_H

#include "runtime/ft.h"

typedef struct ft_scan {
    const char *file;                      /* for messages */
    const char *tensor, *field;            /* for messages: what is being read, or NULL */
    const char *what;                      /* for messages: the text is; NULL: "header" */
    const unsigned char *start, *at, *end; /* the text */
    char *room;                            /* where the next string goes: see ft_scan_string */
    ft_error *err;
} ft_scan;

/* Step over the mark (one of {}[]:,") if it comes next; white space before it never matters. */
bool ft_scan_take(ft_scan *scan, char mark);

/* The same, where only that mark may come. */
ft_status ft_scan_expect(ft_scan *scan, char mark);

/* After an item: step over `close`, since no comma came. */
ft_status ft_scan_close(ft_scan *scan, char close);

/*
 * Decode a string to scan->room, terminated, and move room behind it.  No string is longer than
 * its source with the quotes, so room for the whole text is room enough.  A string holding
 * U+0000 is refused: what C would read is not what the file says.
 */
ft_status ft_scan_string(ft_scan *scan, const char **text);

/* A whole number from 0 to INT64_MAX: no sign, fraction, exponent or leading zero. */
ft_status ft_scan_whole(ft_scan *scan, int64_t *number);

/* Nothing but white space may be left. */
ft_status ft_scan_end(ft_scan *scan);

/* Fail with FT_EFORMAT and "FILE: TENSOR: FIELD: header byte N: ...". */
ft_status ft_scan_fail(const ft_scan *scan, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The same with "expected WHAT, found ..." and what is there. */
ft_status ft_scan_expected(const ft_scan *scan, const char *what);

/* Bytes of the well-formed UTF-8 sequence that starts at `at`; 0 when none does. */
size_t ft_utf8_length(const unsigned char *at, const unsigned char *end);

#endif
