/*
 * piece_file.c - read a file of SentencePiece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/piece_file.h"

#include <stdlib.h>

ft_status ft_piece_file_open(ft_piece_file *file, const ft_tokenizer_source *source,
                             const char *name)
{
    size_t bytes = 0;
    ft_status rc = ft_tokenizer_source_read(source, name, &file->data, &bytes);
    return rc == FT_OK ? ft_sentencepiece_read(&file->model, name, file->data, bytes, source->err)
                       : rc;
}

void ft_piece_file_close(ft_piece_file *file)
{
    ft_sentencepiece_fini(&file->model);
    free(file->data);
    *file = (ft_piece_file){ 0 };
}
