/*
 * special_names.c - read the special tokens of a tokenizer and make them added tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/draft/special_names.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <string.h>

const ft_special_names ft_roberta_names = { .unk = "<unk>",
                                            .bos = "<s>",
                                            .eos = "</s>",
                                            .sep = "</s>",
                                            .cls = "<s>",
                                            .pad = "<pad>",
                                            .mask = "<mask>" };

static const struct {
    const char *role;
    size_t offset;
} roles[] = {
    { "unk_token", offsetof(ft_special_names, unk) },
    { "bos_token", offsetof(ft_special_names, bos) },
    { "eos_token", offsetof(ft_special_names, eos) },
    { "sep_token", offsetof(ft_special_names, sep) },
    { "cls_token", offsetof(ft_special_names, cls) },
    { "pad_token", offsetof(ft_special_names, pad) },
    { "mask_token", offsetof(ft_special_names, mask) },
};

static const char **name_at(ft_special_names *names, size_t role)
{
    return (const char **) ((char *) names + roles[role].offset);
}

ft_status ft_special_names_read(ft_special_names *names, const ft_tokenizer_source *source)
{
    for (size_t i = 0; i < FT_COUNT(roles); i++) {
        const char **name = name_at(names, i);
        *name = ft_tokenizer_source_role(source, roles[i].role, *name);
        if (*name != NULL && (*name)[0] == '\0')
            *name = NULL;
        if (*name != NULL && strlen(*name) > FT_SPECIAL_NAME_MAX)
            return ft_fail(source->err, FT_EUNSUPPORTED,
                           "tokenizer_config.json: %s: %zu bytes, expected at most %d",
                           roles[i].role, strlen(*name), FT_SPECIAL_NAME_MAX);
    }
    return FT_OK;
}

ft_status ft_special_names_require(const ft_tokenizer_source *source, const char *role,
                                   const char *name)
{
    if (name != NULL)
        return FT_OK;
    return ft_fail(source->err, FT_EFORMAT,
                   "tokenizer_config.json: %s: found null, expected the token that this class adds",
                   role);
}

ft_status ft_special_names_add(ft_tokenizer_draft *draft, const ft_special_names *names,
                               bool mask_lstrip)
{
    ft_special_names by_role = *names;
    FT_TRY(ft_tokenizer_draft_add_listed(draft));
    for (size_t i = 0; i < FT_COUNT(roles); i++) {
        const char *name = *name_at(&by_role, i);
        bool lstrip = mask_lstrip && strcmp(roles[i].role, "mask_token") == 0;
        bool given = ft_tokenizer_source_role(draft->source, roles[i].role, NULL) != NULL;
        if (name != NULL && (given || ft_tokenizer_draft_id(draft, name) >= 0))
            FT_TRY(ft_tokenizer_draft_add_token(draft, name, (ft_match_flags){ .lstrip = lstrip }));
    }
    return ft_tokenizer_draft_add_extra(draft);
}
