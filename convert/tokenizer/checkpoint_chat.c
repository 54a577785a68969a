/*
 * checkpoint_chat.c - read the files of a checkpoint that describe its chats.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/checkpoint_chat.h"

#include "convert/tokenizer/draft/source.h"
#include "runtime/error.h"

#include <stdio.h>
#include <stdlib.h>

static ft_status read_files(const ft_tokenizer_source *source, char *text[FT_CHAT_FILES],
                            ft_chat_file files[FT_CHAT_FILES])
{
    for (int i = 0; i < FT_CHAT_FILES; i++) {
        const char *name = ft_chat_file_name((ft_chat_file_kind) i);
        if (!ft_tokenizer_source_has(source, name))
            continue;
        FT_TRY(ft_tokenizer_source_read_text(source, name, &text[i], &files[i].bytes));
        files[i].text = text[i];
    }
    return FT_OK;
}

static ft_status open_from(ft_chat_template **out, const ft_tokenizer_source *source, ft_error *err)
{
    char label[600], *text[FT_CHAT_FILES] = { NULL };
    ft_chat_file files[FT_CHAT_FILES] = { 0 };
    snprintf(label, sizeof label, "%.500s/", source->folder);
    ft_status status = read_files(source, text, files);
    if (status == FT_OK)
        status = ft_chat_template_read(out, label, files, err);
    for (int i = 0; i < FT_CHAT_FILES; i++)
        free(text[i]);
    if (status == FT_OK && *out == NULL)
        status = ft_fail(err, FT_EUNSUPPORTED,
                         "%s: has no chat template: found neither a chat_template.jinja nor a "
                         "chat_template in tokenizer_config.json",
                         source->folder);
    return status;
}

ft_status ft_chat_template_open_checkpoint(ft_chat_template **out, const char *folder,
                                           ft_error *err)
{
    ft_tokenizer_source source;
    *out = NULL;
    ft_status status = ft_tokenizer_source_open(&source, folder, err);
    if (status == FT_OK)
        status = open_from(out, &source, err);
    ft_tokenizer_source_close(&source);
    return status;
}
