/*
 * languages.h - the languages of a translator, which become languages.json of the artifact.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_LANGUAGES_H
#define FT_CONVERT_TOKENIZER_LANGUAGES_H

#include "convert/tokenizer/draft/source.h"
#include "runtime/text/languages/languages.h"

/* How a tokenizer's class writes languages. */
typedef struct ft_language_form {
    ft_language_place place;
    const char *shape;       /* "aaa_Aaaa": letters of either case; '*' is any text */
    const char *const *code; /* the tokens by their ids, up to a NULL */
    const char *source; /* the language of texts by default, as the settings name it; or NULL */
} ft_language_form;

extern const ft_language_form ft_mbart_languages, ft_mbart50_languages, ft_nllb_languages;
extern const ft_language_form ft_m2m100_languages, ft_wmt21_languages, ft_marian_languages;

/* Whether a token has the shape of a language. */
bool ft_language_form_matches(const ft_language_form *form, const char *token);

/* Where the settings put the token of the language; older models of NLLB have it behind the text.
 */
FT_MUST_USE ft_status ft_language_form_place(const ft_language_form *form,
                                             const ft_tokenizer_source *source,
                                             ft_language_place *place);

/*
 * The languages among the added tokens of a tokenizer.json, with the defaults of the settings, as
 * languages.json; *out is NULL when there are none. ft-artifact(5) describes the file.
 */
FT_MUST_USE ft_status ft_languages_make(json_t **out, const ft_language_form *form,
                                        const ft_tokenizer_source *source, const json_t *tokenizer);

#endif
