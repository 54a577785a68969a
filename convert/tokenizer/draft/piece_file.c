/*
 * piece_file.c - read a file of SentencePiece.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/piece_file.h"

#include "runtime/error.h"

#include <stdlib.h>
#include <string.h>

/* Whether the first line is a token in base64 and its rank: the format of tiktoken. */
static bool is_tiktoken(const char *data, size_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *end = memchr(data, '\n', bytes);
    if (end == NULL)
        return false;
    const char *rank = data + strspn(data, digits);
    rank += strspn(rank, "=");
    size_t encoded = (size_t) (rank - data);
    return encoded >= 4 && encoded % 4 == 0 && *rank == ' ' &&
           rank + 1 + strspn(rank + 1, "0123456789") == end && end > rank + 1;
}

ft_status ft_piece_file_open(ft_piece_file *file, const ft_tokenizer_source *source,
                             const char *name)
{
    size_t bytes = 0;
    ft_status rc = ft_tokenizer_source_read(source, name, &file->data, &bytes);
    if (rc != FT_OK)
        return rc;
    if (is_tiktoken(file->data, bytes))
        return ft_fail(source->err, FT_EUNSUPPORTED,
                       "%s: found ranks of tiktoken, expected a model of SentencePiece: save the "
                       "tokenizer with transformers, which writes tokenizer.json",
                       name);
    return ft_sentencepiece_read(&file->model, name, file->data, bytes, source->err);
}

void ft_piece_file_close(ft_piece_file *file)
{
    ft_sentencepiece_fini(&file->model);
    free(file->data);
    *file = (ft_piece_file){ 0 };
}
