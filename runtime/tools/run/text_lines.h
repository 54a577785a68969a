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
    FT_TEXT_MAX_BYTES = 16 << 20,   /* per text */
    FT_TEXTS_MAX_BYTES = 128 << 20, /* of all texts in memory, with an overhead per text */
};

/* Reads a file text by text. */
typedef struct ft_text_reader {
    FILE *file;
    const char *name; /* of the file, for messages */
    bool whole_file;  /* the whole file is one text, including line ends; otherwise one per line */
    size_t count;     /* texts so far, which is the number of the last line */
    ft_strbuf text;
} ft_text_reader;

/* "-" is standard input.  `path` must last as long as the reader. */
FT_MUST_USE ft_status ft_text_reader_open(ft_text_reader *out, const char *path, bool whole_file,
                                          ft_error *err);
void ft_text_reader_close(ft_text_reader *reader);

/*
 * The next text without its line end, NUL-terminated and valid until the next call; NULL at the
 * end. FT_ELIMIT: more than FT_TEXT_MAX_BYTES; FT_EFORMAT: a NUL byte or invalid UTF-8.  The error
 * names file and line.  Nothing is read ahead, so the file may be a terminal or a pipe.
 */
FT_MUST_USE ft_status ft_text_reader_next(ft_text_reader *reader, const char **text, ft_error *err);

/* A list of texts. */
typedef struct ft_texts {
    char **line; /* without line ends; owned */
    size_t count;
    size_t bytes; /* with overhead */
} ft_texts;

/* Read all texts of a file.  FT_ELIMIT: more than FT_TEXTS_MAX_BYTES; FT_EFORMAT: no text. */
FT_MUST_USE ft_status ft_texts_read(ft_texts *out, const char *path, bool whole_file,
                                    ft_error *err);

FT_MUST_USE ft_status ft_texts_copy(ft_texts *out, char *const *line, size_t count, ft_error *err);

void ft_texts_fini(ft_texts *texts);

/* Encode a text, without adding special tokens if `bare`; free(*ids), also after a failure. */
FT_MUST_USE ft_status ft_text_encode(const ft_tokenizer *tokenizer, const char *text, bool bare,
                                     int32_t **ids, size_t *count, ft_error *err);

#endif
