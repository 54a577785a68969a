/*
 * model_prompts.c - what a model puts around texts: its chat template, or prompts of embeddings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/model/model.h"

#include "runtime/error.h"
#include "runtime/text/chat_template.h"

#include <stdio.h>

/* ---- Embeddings ---------------------------------------------------------------------------- */

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

/* ---- Chat ---------------------------------------------------------------------------------- */

ft_status ft_chat_template_open_model(ft_chat_template **out, const ft_model *model, ft_error *err)
{
    char label[512];
    ft_chat_file files[FT_CHAT_FILES] = { 0 };
    FT_REQUIRE(out, err);
    *out = NULL;
    FT_REQUIRE(model, err);
    for (int i = 0; model->artifact != NULL && i < FT_CHAT_FILES; i++) {
        const char *name = ft_chat_file_name((ft_chat_file_kind) i);
        const ft_artifact_entry *entry = ft_artifact_find_file(model->artifact, name);
        if (entry != NULL)
            files[i] = (ft_chat_file){ entry->data, entry->bytes };
    }
    snprintf(label, sizeof label, "%.500s: ", model->path);
    FT_TRY(ft_chat_template_read(out, label, files, err));
    if (*out != NULL)
        return FT_OK;
    return ft_fail(err, FT_EUNSUPPORTED,
                   "%s: has no chat template: its checkpoint has neither a chat_template.jinja nor "
                   "a chat_template in tokenizer_config.json",
                   model->path);
}
