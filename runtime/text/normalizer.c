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

static bool prepend(const char *content, const char *text, size_t bytes, ft_text *out)
{
    return bytes == 0 ||
           (ft_text_put(out, content, strlen(content)) && ft_text_put(out, text, bytes));
}

static bool replace(const char *pattern, const char *content, const char *text, size_t bytes,
                    ft_text *out)
{
    size_t pattern_bytes = strlen(pattern), content_bytes = strlen(content);
    const char *end = text + bytes, *found;
    while ((found = memmem(text, (size_t) (end - text), pattern, pattern_bytes)) != NULL) {
        if (!ft_text_put(out, text, (size_t) (found - text)) ||
            !ft_text_put(out, content, content_bytes))
            return false;
        text = found + pattern_bytes;
    }
    return ft_text_put(out, text, (size_t) (end - text));
}

static bool take_step(const ft_normalizer_step *step, const char *text, size_t bytes, ft_text *out)
{
    switch (step->kind) {
    case FT_NORMALIZE_BERT:
        return ft_bert_normalize(&step->bert, text, bytes, out) == FT_OK;
    case FT_NORMALIZE_NFC:
        return ft_nfc(text, bytes, out);
    case FT_NORMALIZE_PREPEND:
        return prepend(step->content, text, bytes, out);
    case FT_NORMALIZE_REPLACE:
        return replace(step->pattern, step->content, text, bytes, out);
    }
    return false;
}

ft_status ft_normalizer_run(const ft_normalizer *normalizer, const char **text, size_t *bytes,
                            ft_normal_text *room)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        ft_text_begin(&room->to, *bytes + room->growth);
        if (!take_step(&normalizer->step[i], *text, *bytes, &room->to))
            return room->to.full ? FT_ELIMIT : FT_ENOMEM;
        ft_text written = room->to;
        room->to = room->from;
        room->from = written;
        room->growth -= written.bytes > *bytes ? written.bytes - *bytes : 0;
        *text = written.data;
        *bytes = written.bytes;
    }
    return FT_OK;
}

void ft_normal_text_fini(ft_normal_text *room)
{
    ft_text_fini(&room->from);
    ft_text_fini(&room->to);
}

void ft_normalizer_fini(ft_normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->count; i++) {
        free(normalizer->step[i].pattern);
        free(normalizer->step[i].content);
    }
    *normalizer = (ft_normalizer){ 0 };
}
