/*
 * normalizer.c - each step reads the output of the previous one; two buffers are swapped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizer.h"

#include "runtime/text/unicode/nfc.h"

#include <stdlib.h>
#include <string.h>

static bool prepend(const char *content, const char *text, size_t bytes, ft_strbuf *out)
{
    return bytes == 0 ||
           (ft_strbuf_append(out, content, strlen(content)) && ft_strbuf_append(out, text, bytes));
}

static bool replace(const char *pattern, const char *content, const char *text, size_t bytes,
                    ft_strbuf *out)
{
    size_t pattern_bytes = strlen(pattern), content_bytes = strlen(content);
    const char *end = text + bytes, *found;
    while ((found = memmem(text, (size_t) (end - text), pattern, pattern_bytes)) != NULL) {
        if (!ft_strbuf_append(out, text, (size_t) (found - text)) ||
            !ft_strbuf_append(out, content, content_bytes))
            return false;
        text = found + pattern_bytes;
    }
    return ft_strbuf_append(out, text, (size_t) (end - text));
}

static bool apply_step(const ft_normalizer_step *step, const char *text, size_t bytes,
                       ft_strbuf *out)
{
    switch (step->kind) {
    case FT_NORMALIZE_BERT:
        return ft_bert_normalize(&step->bert, text, bytes, out) == FT_OK;
    case FT_NORMALIZE_NFC:
        return ft_normalize_nfc(text, bytes, out);
    case FT_NORMALIZE_PREPEND:
        return prepend(step->content, text, bytes, out);
    case FT_NORMALIZE_REPLACE:
        return replace(step->pattern, step->content, text, bytes, out);
    }
    return false;
}

ft_status ft_normalizer_run(const ft_normalizer *normalizer, const char **text, size_t *bytes,
                            ft_normalizer_buffers *buffers)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        ft_strbuf_reset(&buffers->to, *bytes + buffers->growth_left);
        if (!apply_step(&normalizer->step[i], *text, *bytes, &buffers->to))
            return buffers->to.overflowed ? FT_ELIMIT : FT_ENOMEM;
        ft_strbuf result = buffers->to;
        buffers->to = buffers->from;
        buffers->from = result;
        buffers->growth_left -= result.bytes > *bytes ? result.bytes - *bytes : 0;
        *text = result.data;
        *bytes = result.bytes;
    }
    return FT_OK;
}

void ft_normalizer_buffers_fini(ft_normalizer_buffers *buffers)
{
    ft_strbuf_fini(&buffers->from);
    ft_strbuf_fini(&buffers->to);
}

void ft_normalizer_fini(ft_normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        free(normalizer->step[i].pattern);
        free(normalizer->step[i].content);
    }
    *normalizer = (ft_normalizer){ 0 };
}
