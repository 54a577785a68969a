/*
 * json_scan.h - a strict JSON scanner for safetensors headers, one token at a time; also reads the
 * large tables of a tokenizer.json.
 *
 * Both have up to 100,000s of entries, whose tree would take many times the memory of the text;
 * json_reader.h reads everything else. A header has a fixed grammar of depth three, so there is no
 * tree, no recursion and no skipping of unknown values: the reader asks for exactly the token that
 * must come next, and anything else is an error with its position.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_BASE_JSON_SCAN_H
#define FT_RUNTIME_BASE_JSON_SCAN_H

#include "runtime/ft.h"

typedef struct ft_json_scanner {
    const char *file;                      /* for messages */
    const char *tensor, *field;            /* for messages: what is being read, or NULL */
    const char *what;                      /* for messages: kind of text; NULL: "header" */
    const unsigned char *start, *at, *end; /* the text */
    char *out;                             /* output of the next ft_json_scan_string */
    ft_error *err;
} ft_json_scanner;

/* Consume `mark` (one of {}[]:,") if it comes next; white space before it is skipped. */
bool ft_json_scan_accept(ft_json_scanner *scan, char mark);

/* The same, but fail if another token comes next. */
ft_status ft_json_scan_expect(ft_json_scanner *scan, char mark);

/* After an item that no comma follows: consume `close`. */
ft_status ft_json_scan_close(ft_json_scanner *scan, char close);

/*
 * Decode a string to scan->out, zero-terminated, and advance scan->out behind it. A decoded
 * string is never longer than its source with the quotes, so a buffer as long as the text is always
 * large enough. A string that contains U+0000 is rejected, because C code would see it truncated.
 */
ft_status ft_json_scan_string(ft_json_scanner *scan, const char **text);

/* An integer from 0 to INT64_MAX: no sign, fraction, exponent or leading zero. */
ft_status ft_json_scan_integer(ft_json_scanner *scan, int64_t *number);

/* Fail unless only white space is left. */
ft_status ft_json_scan_end(ft_json_scanner *scan);

/* Fail with FT_EFORMAT and "FILE: TENSOR: FIELD: header byte N: ...". */
ft_status ft_json_scan_fail(const ft_json_scanner *scan, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The same with "expected WHAT, found ..." and the offending character. */
ft_status ft_json_scan_fail_expected(const ft_json_scanner *scan, const char *what);

/* Length in bytes of the well-formed UTF-8 sequence that starts at `at`; 0 when it is malformed. */
size_t ft_utf8_sequence_length(const unsigned char *at, const unsigned char *end);

#endif
