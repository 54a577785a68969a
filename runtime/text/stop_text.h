/*
 * stop_text.h - incremental detokenization up to a stop string.
 *
 * Text that may still become a stop string is held back, so that no part of a stop string is ever
 * returned.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_STOP_TEXT_H
#define FT_RUNTIME_TEXT_STOP_TEXT_H

#include "runtime/base/strbuf.h"

typedef struct ft_stop_decoder {
    ft_detokenizer *decoder;
    const char *const *stop; /* NULL-terminated, no empty strings; or NULL */
    ft_strbuf buffer;        /* decoded text; its first n_emitted bytes have been returned */
    size_t n_emitted;
} ft_stop_decoder;

/* Free with ft_stop_decoder_fini(), also after a failure. */
FT_MUST_USE ft_status ft_stop_decoder_init(ft_stop_decoder *out, const ft_tokenizer *tokenizer,
                                           ft_error *err);
void ft_stop_decoder_fini(ft_stop_decoder *text);

/* Start another text. */
void ft_stop_decoder_reset(ft_stop_decoder *text, const char *const *stop);

/*
 * Decode a token, or none if id < 0, and return in *shown the text that is final, valid until the
 * next call: all remaining text if this is the `last` call. *stopped: a stop string has appeared;
 * the text before it is returned, and the text is finished.
 */
FT_MUST_USE ft_status ft_stop_decoder_push(ft_stop_decoder *text, int32_t id, bool last,
                                           const char **shown, size_t *bytes, bool *stopped,
                                           ft_error *err);

#endif
