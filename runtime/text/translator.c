/*
 * translator.c - languages.json tells where the tokens of both languages go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/translator.h"

#include "runtime/error.h"
#include "runtime/text/languages/languages.h"
#include "runtime/text/tokenizer.h"

#include <stdlib.h>

static ft_status fail_no_languages(const ft_translator_files *files, const char *name,
                                   ft_error *err)
{
    return ft_fail(
        err, FT_EARG,
        "%s: found the language \"%.64s\", but this model has no languages: leave it out",
        files->path, name);
}

static ft_status fail_no_target(const ft_translator_files *files, const ft_languages *languages,
                                ft_error *err)
{
    char *names = ft_languages_list(languages);
    (void) ft_fail(err, FT_EARG, "%s: no target language given: the model translates into %.700s",
                   files->path, names == NULL ? "several" : names);
    free(names);
    return FT_EARG;
}

/* The language with that name, else the default one, which may be NULL. */
static ft_status choose(const ft_languages *languages, const char *name,
                        const ft_language *fallback, const ft_language **out, ft_error *err)
{
    *out = fallback;
    return name == NULL ? FT_OK : ft_languages_find(languages, name, out, err);
}

/* The language of targets is the token that the decoder generates first. */
static ft_status set_target(ft_translator *out, const ft_translator_files *files,
                            const ft_languages *languages, ft_error *err)
{
    int32_t first = out->first_id >= 0          ? out->first_id
                    : files->forced_bos != NULL ? *files->forced_bos
                                                : -1;
    if (first < 0 || languages->place == FT_LANGUAGE_TEXT)
        return FT_OK;
    return ft_tokenizer_set_target_language(out->target, languages, first, err);
}

/* A text may itself start with the token of its target language; nothing is required then. */
static ft_status set_languages(ft_translator *out, const ft_translator_files *files,
                               const ft_languages *languages, const ft_language_pair *pair,
                               ft_error *err)
{
    const ft_language *source, *target;
    bool is_in_text = languages->place == FT_LANGUAGE_TEXT;
    FT_TRY(choose(languages, pair->source, languages->source, &source, err));
    FT_TRY(choose(languages, pair->target, languages->target, &target, err));
    if (target == NULL && pair->requires_target && !is_in_text)
        return fail_no_target(files, languages, err);
    if (target != NULL && !is_in_text)
        out->first_id = target->id;
    FT_TRY(set_target(out, files, languages, err));
    const ft_language *added = is_in_text ? target : source;
    return added == NULL ? FT_OK : ft_tokenizer_set_language(out->source, languages, added, err);
}

static ft_status read_languages(ft_translator *out, const ft_translator_files *files,
                                const ft_language_pair *pair, ft_error *err)
{
    ft_languages *languages;
    if (files->languages.text == NULL && (pair->source != NULL || pair->target != NULL))
        return fail_no_languages(files, pair->target != NULL ? pair->target : pair->source, err);
    if (files->languages.text == NULL)
        return FT_OK;
    FT_TRY(ft_languages_parse(&languages, "languages.json", files->languages.text,
                              files->languages.bytes, err));
    ft_status status = set_languages(out, files, languages, pair, err);
    ft_languages_free(languages);
    return status;
}

static ft_status open_target(ft_translator *out, const ft_file_text *file, ft_error *err)
{
    if (file->text != NULL)
        return ft_tokenizer_parse(&out->target, "tokenizer_target.json", file->text, file->bytes,
                                  err);
    out->target = out->source;
    return FT_OK;
}

ft_status ft_translator_init(ft_translator *out, ft_tokenizer *source,
                             const ft_translator_files *files, const ft_language_pair *pair,
                             ft_error *err)
{
    *out = (ft_translator){ .source = source, .first_id = -1 };
    ft_status status = open_target(out, &files->target, err);
    if (status == FT_OK)
        status = read_languages(out, files, pair, err);
    if (status != FT_OK)
        ft_translator_close(out);
    return status;
}

void ft_translator_close(ft_translator *translator)
{
    if (translator->target != translator->source)
        ft_tokenizer_close(translator->target);
    ft_tokenizer_close(translator->source);
    *translator = (ft_translator){ .first_id = -1 };
}
