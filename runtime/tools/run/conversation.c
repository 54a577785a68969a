/*
 * conversation.c - the messages of a chat, and their token ids by the model's chat template.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/conversation.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <stdlib.h>
#include <string.h>

ft_status ft_conversation_init(ft_conversation *out, const ft_model *model, int64_t date,
                               ft_error *err)
{
    ft_error why;
    *out = (ft_conversation){ .date = date };
    ft_status status = ft_chat_template_open_model(&out->template, model, &why);
    return status == FT_OK
               ? FT_OK
               : ft_fail(err, status, "%s; without --chat the model generates text", why.text);
}

void ft_conversation_fini(ft_conversation *conversation)
{
    ft_conversation_truncate(conversation, 0);
    ft_chat_template_close(conversation->template);
    free(conversation->message);
    *conversation = (ft_conversation){ 0 };
}

ft_status ft_conversation_add(ft_conversation *conversation, const char *role, const char *content,
                              ft_error *err)
{
    size_t bytes = (conversation->count + 1) * sizeof *conversation->message;
    ft_chat_message *grown = realloc(conversation->message, bytes);
    if (grown != NULL)
        conversation->message = grown;
    char *copy = ft_strdup(content);
    if (grown == NULL || copy == NULL) {
        free(copy);
        return ft_fail(err, FT_ENOMEM, "no memory for a conversation");
    }
    grown[conversation->count++] = (ft_chat_message){ role, copy };
    return FT_OK;
}

void ft_conversation_truncate(ft_conversation *conversation, size_t count)
{
    while (conversation->count > count)
        free((char *) (uintptr_t) conversation->message[--conversation->count].content);
}

ft_status ft_conversation_encode(const ft_conversation *conversation, const ft_tokenizer *tokenizer,
                                 int32_t **ids, size_t *count, ft_error *err)
{
    const ft_chat_options options = { .size = sizeof options, .date = conversation->date };
    ft_encoding *encoded;
    *ids = NULL;
    FT_TRY(ft_chat_encode(conversation->template, tokenizer, conversation->message,
                          conversation->count, &options, &encoded, err));
    *count = encoded->count;
    *ids = ft_calloc(encoded->count, sizeof **ids);
    if (*ids != NULL && encoded->count > 0)
        memcpy(*ids, encoded->ids, encoded->count * sizeof **ids);
    ft_encoding_free(encoded);
    return *ids != NULL ? FT_OK : ft_fail(err, FT_ENOMEM, "no memory for %zu tokens", *count);
}
