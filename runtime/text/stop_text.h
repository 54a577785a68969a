/*
 * stop_text.h - the text of tokens as they come, up to a stop string.
 *
 * What could still become a stop string is held back, so that none of it is ever shown.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_STOP_TEXT_H
#define FT_RUNTIME_TEXT_STOP_TEXT_H

#include "runtime/base/strbuf.h"

typedef struct ft_stop_text {
    ft_decoder *decoder;
    const char *const *stop; /* NULL-terminated, of no empty ones; or NULL */
    ft_text held;            /* decoded; its first `given` bytes have been handed out */
    size_t given;
} ft_stop_text;

/* Free with ft_stop_text_fini(), also after a failure. */
FT_MUST_USE ft_status ft_stop_text_init(ft_stop_text *out, const ft_tokenizer *tokenizer,
                                        ft_error *err);
void ft_stop_text_fini(ft_stop_text *text);

/* Another text begins. */
void ft_stop_text_begin(ft_stop_text *text, const char *const *stop);

/*
 * Take a token, or none where id < 0, and show what is certain now, until the next call: all that
 * is left where this is the `last` one.  *stopped: a stop string has appeared; what comes before it
 * is shown, and the text is over.
 */
FT_MUST_USE ft_status ft_stop_text_push(ft_stop_text *text, int32_t id, bool last,
                                        const char **shown, size_t *bytes, bool *stopped,
                                        ft_error *err);

#endif
