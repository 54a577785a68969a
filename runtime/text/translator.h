/*
 * translator.h - the tokenizers of a translator for a pair of languages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_TRANSLATOR_H
#define FT_RUNTIME_TEXT_TRANSLATOR_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

/* Zero-initialized means closed. */
typedef struct ft_translator {
    ft_tokenizer *source; /* encodes texts; of any model */
    ft_tokenizer *target; /* decodes translations, and encodes targets; may be the same */
    int32_t first_id;     /* the first token of a translation: its language; -1: none */
} ft_translator;

/* The languages of a translation, by the names of ft_languages_find(). */
typedef struct ft_language_pair {
    const char *source, *target; /* NULL: the default of the model, if it has one */
    bool requires_target;        /* fail without a target language where the model needs one */
} ft_language_pair;

/* The text of a file; NULL and 0 where there is none. */
typedef struct ft_file_text {
    const char *text;
    size_t bytes;
} ft_file_text;

/* Files of an artifact, which ft-artifact(5) describes. */
typedef struct ft_translator_files {
    const char *path;          /* of the artifact, in messages */
    ft_file_text target;       /* tokenizer_target.json */
    ft_file_text languages;    /* languages.json */
    const int32_t *forced_bos; /* forced_bos_token_id of the model, -1: none; NULL: as -1 */
} ft_translator_files;

/*
 * Make a translator of the tokenizer for texts, which it takes over, on failure too. The model is
 * none if there is neither of the files. FT_EARG, with the names of the model's languages: an
 * unknown language, or no target language.
 */
FT_MUST_USE ft_status ft_translator_init(ft_translator *out, ft_tokenizer *source,
                                         const ft_translator_files *files,
                                         const ft_language_pair *pair, ft_error *err);
void ft_translator_close(ft_translator *translator);

#pragma GCC visibility pop

#endif
