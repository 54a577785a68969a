/*
 * text_lines.h - lines of text from a file, standard input or the command line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_TEXT_LINES_H
#define FT_RUNTIME_TOOLS_RUN_TEXT_LINES_H

#include "runtime/base/strbuf.h"

#include <stdio.h>

enum {
    FT_TEXT_MAX_BYTES = 16 << 20,   /* of one text */
    FT_TEXTS_MAX_BYTES = 128 << 20, /* of all texts that are kept at once, with what each costs */
};

/* A file of texts, read one at a time. */
typedef struct ft_text_reader {
    FILE *file;
    const char *name; /* of the file, in messages */
    bool whole;       /* all of the file is one text, with its line ends; else each line is one */
    size_t count;     /* texts so far: of lines, the number of the last one */
    ft_text text;
} ft_text_reader;

/* "-" is standard input.  `path` must last as long as the reader. */
FT_MUST_USE ft_status ft_text_reader_open(ft_text_reader *out, const char *path, bool whole,
                                          ft_error *err);
void ft_text_reader_close(ft_text_reader *reader);

/*
 * The next text without its line end, terminated, which lasts until the next call; NULL at the end.
 * FT_ELIMIT for more than FT_TEXT_MAX_BYTES, FT_EFORMAT for a NUL or what is not UTF-8; both name
 * the file and the line.  No more than that is read ahead, so it may be a terminal or a pipe.
 */
FT_MUST_USE ft_status ft_text_reader_next(ft_text_reader *reader, const char **text, ft_error *err);

/* Texts that are kept at once. */
typedef struct ft_texts {
    char **line; /* without line ends; owned */
    size_t count;
    size_t bytes; /* what they cost */
} ft_texts;

/* All texts of a file, at most FT_TEXTS_MAX_BYTES and at least one. */
FT_MUST_USE ft_status ft_texts_read(ft_texts *out, const char *path, bool whole, ft_error *err);

FT_MUST_USE ft_status ft_texts_copy(ft_texts *out, char *const *line, size_t count, ft_error *err);

void ft_texts_fini(ft_texts *texts);

/* Encode a text, without special tokens around it if `bare`; free(*ids), also after a failure. */
FT_MUST_USE ft_status ft_text_encode(const ft_tokenizer *tokenizer, const char *text, bool bare,
                                     int32_t **ids, size_t *count, ft_error *err);

#endif
