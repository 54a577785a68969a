/*
 * languages.h - the languages of a translator: languages.json of an artifact, which ft-artifact(5)
 * describes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_LANGUAGES_LANGUAGES_H
#define FT_RUNTIME_TEXT_LANGUAGES_LANGUAGES_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Where the token of a language goes. */
typedef enum ft_language_place {
    FT_LANGUAGE_PREFIX, /* the first token of a text in the source language; the first one that the
                           decoder generates is that of the target language */
    FT_LANGUAGE_SUFFIX, /* the last token of a text in the source language; as before */
    FT_LANGUAGE_TEXT,   /* that of the target language, in front of the text */
} ft_language_place;

typedef struct ft_language {
    char *token; /* "deu_Latn", "__de__", ">>fra<<", "de_DE" */
    char *name;  /* the same without the signs around it: "deu_Latn", "de", "fra", "de_DE" */
    int32_t id;  /* of the token */
} ft_language;

typedef struct ft_languages {
    ft_language_place place;
    ft_language *language; /* [count], in the order of the file */
    size_t count;
    const ft_language *source, *target; /* where the user names none; NULL: none */
} ft_languages;

/*
 * Read languages.json; `name` is the file name in messages. On failure *out is NULL.
 * FT_EFORMAT: not such a file.
 */
FT_MUST_USE ft_status ft_languages_parse(ft_languages **out, const char *name, const char *json,
                                         size_t bytes, ft_error *err);
void ft_languages_free(ft_languages *languages); /* accepts NULL */

/*
 * The language of that token or name, or the only one whose name starts with it and a '_': "de" is
 * "__de__", and "de_DE" if there is no "de_AT". FT_EARG, with a list of all names: none, or
 * several.
 */
FT_MUST_USE ft_status ft_languages_find(const ft_languages *languages, const char *name,
                                        const ft_language **out, ft_error *err);

/* All names, separated by ", "; the caller frees it. NULL: no memory. */
char *ft_languages_list(const ft_languages *languages);

#pragma GCC visibility pop

#endif
