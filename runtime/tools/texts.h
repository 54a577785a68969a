/*
 * texts.h - lines of text from a file, standard input or the command line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_TEXTS_H
#define FT_RUNTIME_TOOLS_TEXTS_H

#include "runtime/ft.h"

typedef struct ft_texts {
    char **line; /* without line ends; owned */
    size_t count;
} ft_texts;

/* One text a line; "-" is standard input.  FT_EFORMAT for a NUL inside, or without any line. */
FT_MUST_USE ft_status ft_texts_read(ft_texts *out, const char *path, ft_error *err);

/* All of the file is one text, with its line ends. */
FT_MUST_USE ft_status ft_texts_read_whole(ft_texts *out, const char *path, ft_error *err);

FT_MUST_USE ft_status ft_texts_copy(ft_texts *out, char *const *line, size_t count, ft_error *err);

void ft_texts_fini(ft_texts *texts);

/* Encode a text, without special tokens around it if `bare`; free(*ids), also after a failure. */
FT_MUST_USE ft_status ft_text_encode(const ft_tokenizer *tokenizer, const char *text, bool bare,
                                     int32_t **ids, size_t *count, ft_error *err);

#endif
