/*
 * context_windows.c - both texts are encoded once; each window takes a part of the context.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/context_windows.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/tokenizer.h"

#include <assert.h>
#include <stdlib.h>

struct ft_context_windows {
    const ft_tokenizer *tokenizer;
    ft_token_list question, context;
    size_t start; /* of the next window in the context */
    bool done;
};

static ft_status encode(ft_context_windows *windows, const char *question, size_t question_bytes,
                        const char *context, size_t context_bytes, ft_error *err)
{
    const ft_tokenizer *tokenizer = windows->tokenizer;
    FT_TRY(ft_encode_tokens(tokenizer, question, question_bytes, NULL, &windows->question, err));
    return ft_encode_tokens(tokenizer, context, context_bytes, NULL, &windows->context, err);
}

ft_status ft_context_windows_new(ft_context_windows **out, const ft_tokenizer *tokenizer,
                                 const char *question, size_t question_bytes, const char *context,
                                 size_t context_bytes, ft_error *err)
{
    ft_context_windows *windows = ft_calloc(1, sizeof *windows);
    *out = NULL;
    if (windows == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for the windows of a context");
    *windows = (ft_context_windows){ .tokenizer = tokenizer,
                                     .question.has_ranges = true,
                                     .context.has_ranges = true };
    ft_status status = encode(windows, question, question_bytes, context, context_bytes, err);
    if (status == FT_OK)
        *out = windows;
    else
        ft_context_windows_free(windows);
    return status;
}

void ft_context_windows_free(ft_context_windows *windows)
{
    if (windows == NULL)
        return;
    ft_token_list_fini(&windows->question);
    ft_token_list_fini(&windows->context);
    free(windows);
}

size_t ft_context_windows_fixed_tokens(const ft_context_windows *windows)
{
    return windows->question.count + ft_tokenizer_special_tokens(windows->tokenizer, true);
}

ft_status ft_context_windows_next(ft_context_windows *windows, size_t max_length, size_t stride,
                                  ft_encoding **out, ft_error *err)
{
    size_t fixed = ft_context_windows_fixed_tokens(windows);
    *out = NULL;
    assert(max_length > fixed);
    if (windows->done)
        return FT_OK;
    size_t length = max_length - fixed;
    size_t end = ft_min_size(windows->start + length, windows->context.count);
    const ft_token_part question = { &windows->question, 0, windows->question.count };
    const ft_token_part part = { &windows->context, windows->start, end };
    FT_TRY(ft_post_process(windows->tokenizer, question, part, true, out, err));
    windows->done = end == windows->context.count;
    windows->start += length > stride ? length - stride : length;
    return FT_OK;
}
