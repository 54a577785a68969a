/*
 * text_reader.h - read a file text by text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_TEXTS_TEXT_READER_H
#define FT_RUNTIME_DATA_TEXTS_TEXT_READER_H

#include "runtime/base/strbuf.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum { FT_TEXT_MAX_BYTES = 16 << 20 /* per text */ };

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

#pragma GCC visibility pop

#endif
