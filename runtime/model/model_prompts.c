/*
 * model_prompts.c - the prompts of an artifact that embeds texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/model.h"

#include "runtime/error.h"

static ft_status fail_unknown(const ft_model *model, const ft_embedding_prompts *prompts,
                              const char *name, ft_error *err)
{
    char names[400];
    if (ft_embedding_prompts_count(prompts) == 0)
        return ft_fail(err, FT_EARG, "%s: has no prompts, so \"%s\" is not one", model->path, name);
    return ft_fail(err, FT_EARG, "%s: has no prompt \"%s\"; its prompts are %s", model->path, name,
                   ft_embedding_prompts_names(prompts, names, sizeof names));
}

ft_status ft_embedding_prompts_open_model(ft_embedding_prompts *out, const char **prompt,
                                          const ft_model *model, const char *name, ft_error *err)
{
    const ft_artifact_entry *file =
        model->artifact == NULL ? NULL : ft_artifact_find_file(model->artifact, FT_PROMPTS_FILE);
    *out = (ft_embedding_prompts){ .default_text = "" };
    if (file != NULL)
        FT_TRY(ft_embedding_prompts_parse(out, FT_PROMPTS_FILE, file->data, file->bytes, err));
    *prompt = name == NULL ? out->default_text : ft_embedding_prompts_find(out, name);
    return *prompt != NULL ? FT_OK : fail_unknown(model, out, name, err);
}
