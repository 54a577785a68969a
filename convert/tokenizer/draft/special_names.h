/*
 * special_names.h - the special tokens of a tokenizer's class, by their roles.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CONVERT_TOKENIZER_DRAFT_SPECIAL_NAMES_H
#define FT_CONVERT_TOKENIZER_DRAFT_SPECIAL_NAMES_H

#include "convert/tokenizer/draft/draft.h"

enum { FT_SPECIAL_NAME_MAX = 128 }; /* bytes */

/* NULL: the tokenizer has no such token. Borrowed from the source. */
typedef struct ft_special_names {
    const char *unk, *bos, *eos, *sep, *cls, *pad, *mask;
} ft_special_names;

/* Those of RoBERTa and XLM-RoBERTa, and with another unk of MPNet. */
extern const ft_special_names ft_roberta_names;

/*
 * Replace the names of the class, which are set before, by those of the settings. FT_EUNSUPPORTED:
 * a name is longer than FT_SPECIAL_NAME_MAX.
 */
FT_MUST_USE ft_status ft_special_names_read(ft_special_names *names,
                                            const ft_tokenizer_source *source);

/* A role that the class needs; FT_EFORMAT when the settings take it away. */
FT_MUST_USE ft_status ft_special_names_require(const ft_tokenizer_source *source, const char *role,
                                               const char *name);

/*
 * Add the listed tokens, the named ones and the extra ones to the draft; names of the class only if
 * the vocabulary has them. The mask token of most classes swallows the space before it.
 */
FT_MUST_USE ft_status ft_special_names_add(ft_tokenizer_draft *draft, const ft_special_names *names,
                                           bool mask_lstrip);

#endif
