/*
 * model_chat.c - the chat template inside a model.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/model/model.h"
#include "runtime/text/chat_template.h"

#include <stdio.h>

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
