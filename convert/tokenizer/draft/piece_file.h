/*
 * piece_file.h - read a file of SentencePiece from a checkpoint's folder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_PIECE_FILE_H
#define FT_CONVERT_TOKENIZER_DRAFT_PIECE_FILE_H

#include "convert/tokenizer/draft/piece_model.h"

/* The model points to the data. Zero-initialized means empty. */
typedef struct ft_piece_file {
    char *data;
    ft_sentencepiece model;
} ft_piece_file;

/* On failure too, free with ft_piece_file_close(). */
FT_MUST_USE ft_status ft_piece_file_open(ft_piece_file *file, const ft_tokenizer_source *source,
                                         const char *name);
void ft_piece_file_close(ft_piece_file *file);

#endif
