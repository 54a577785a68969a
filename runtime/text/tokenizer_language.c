/*
 * tokenizer_language.c - the token of a language among the special tokens around a text.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer.h"

#include "runtime/error.h"

#include <string.h>

static bool is_language(const ft_languages *languages, int32_t id)
{
    for (size_t i = 0; i < languages->count; i++)
        if (languages->language[i].id == id)
            return true;
    return false;
}

/* Replace the language that the post-processor has by another one; false if it has none. */
static bool replace_language(ft_template *template, const ft_languages *languages, int32_t id)
{
    for (size_t i = 0; i < template->count; i++) {
        ft_template_piece *piece = &template->piece[i];
        if (piece->kind != FT_TEMPLATE_SPECIAL || !is_language(languages, piece->id))
            continue;
        piece->id = id;
        return true;
    }
    return false;
}

/* Insert a language as piece `at`; false if there is no room. */
static bool insert_language(ft_template *template, size_t at, int32_t id)
{
    if (template->count == FT_TEMPLATE_MAX_PIECES)
        return false;
    memmove(&template->piece[at + 1], &template->piece[at],
            (template->count - at) * sizeof *template->piece);
    template->piece[at] = (ft_template_piece){ FT_TEMPLATE_SPECIAL, id, 0 };
    template->count++;
    return true;
}

static size_t find_text(const ft_template *template)
{
    size_t at = 0;
    while (template->piece[at].kind != FT_TEMPLATE_TEXT)
        at++;
    return at;
}

ft_status ft_tokenizer_set_language(ft_tokenizer *tokenizer, const ft_languages *languages,
                                    const ft_language *language, ft_error *err)
{
    ft_post_processor *p = &tokenizer->post_processor;
    bool is_text = languages->place == FT_LANGUAGE_TEXT;
    bool ok = is_text ? insert_language(&p->single, find_text(&p->single), language->id)
                      : replace_language(&p->single, languages, language->id);
    if (!is_text && p->pair.count > 0)
        (void) replace_language(&p->pair, languages, language->id);
    if (ok)
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: post_processor: has no place for the language \"%s\"",
                   tokenizer->name, language->name);
}

ft_status ft_tokenizer_set_target_language(ft_tokenizer *tokenizer, const ft_languages *languages,
                                           int32_t id, ft_error *err)
{
    ft_template *target = &tokenizer->post_processor.target;
    if (replace_language(target, languages, id) || insert_language(target, 0, id))
        return FT_OK;
    return ft_fail(err, FT_EFORMAT, "%s: post_processor: has no place for the target language",
                   tokenizer->name);
}
