/*
 * conversation.c - the messages of a chat, and their rendering to token ids with the chat template.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/conversation.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/tools/run/encode_text.h"

#include <stdlib.h>
#include <string.h>

/* Detect the template from the tokenizer and, if present, the checkpoint's model_type. */
static ft_chat find_format(const ft_model *model, const ft_tokenizer *tokenizer)
{
    ft_json_reader in = { .file = model->path };
    (void) ft_artifact_load_json(model->artifact, "config.json", &in);
    ft_chat format =
        ft_chat_detect(tokenizer, json_string_value(json_object_get(in.json, "model_type")));
    json_decref(in.json);
    return format;
}

ft_status ft_conversation_init(ft_conversation *out, const ft_model *model,
                               const ft_tokenizer *tokenizer, const char *system, ft_error *err)
{
    *out = (ft_conversation){ .format = find_format(model, tokenizer) };
    if (out->format == FT_CHAT_NONE)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: no known chat template: its tokenizer has none of the tokens that "
                       "begin and end messages; run it without --chat",
                       model->path);
    return system != NULL ? ft_conversation_add(out, "system", system, err) : FT_OK;
}

void ft_conversation_fini(ft_conversation *conversation)
{
    while (conversation->count > 0)
        ft_conversation_pop(conversation);
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

void ft_conversation_pop(ft_conversation *conversation)
{
    free((char *) (uintptr_t) conversation->message[--conversation->count].content);
}

ft_status ft_conversation_encode(const ft_conversation *conversation, const ft_tokenizer *tokenizer,
                                 int32_t **ids, size_t *count, ft_error *err)
{
    size_t bytes;
    FT_TRY(ft_chat_render(conversation->format, conversation->message, conversation->count, NULL, 0,
                          &bytes, err));
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return ft_fail(err, FT_ENOMEM, "no memory for a conversation");
    ft_status status = ft_chat_render(conversation->format, conversation->message,
                                      conversation->count, text, bytes, &bytes, err);
    text[bytes] = '\0';
    if (status == FT_OK)
        status = ft_text_encode(tokenizer, text, true, ids, count, err);
    free(text);
    return status;
}
