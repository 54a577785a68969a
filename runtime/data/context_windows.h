/*
 * context_windows.h - a question with a long context: windows that overlap.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_DATA_CONTEXT_WINDOWS_H
#define FT_RUNTIME_DATA_CONTEXT_WINDOWS_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Tokens that neighbouring windows have in common, unless they have no more. */
enum { FT_CONTEXT_STRIDE = 128 };

/* The tokens of both texts, and where the next window starts. */
typedef struct ft_context_windows ft_context_windows;

/* The texts are not needed afterwards. The errors of ft_tokenizer_encode_text(). */
FT_MUST_USE ft_status ft_context_windows_new(ft_context_windows **out,
                                             const ft_tokenizer *tokenizer, const char *question,
                                             size_t question_bytes, const char *context,
                                             size_t context_bytes, ft_error *err);
void ft_context_windows_free(ft_context_windows *windows); /* accepts NULL */

/* Tokens that each window has besides those of the context. */
size_t ft_context_windows_fixed_tokens(const ft_context_windows *windows);

/*
 * The next window as a pair with special tokens and offsets, or NULL after the one that ends with
 * the context. It has at most `max_length` tokens, which must be more than the fixed ones, and
 * begins with the last `stride` tokens of the context in the window before it.
 */
FT_MUST_USE ft_status ft_context_windows_next(ft_context_windows *windows, size_t max_length,
                                              size_t stride, ft_encoding **out, ft_error *err);

#pragma GCC visibility pop

#endif
