/*
 * conversation.h - the messages of a chat, and their rendering to token ids with the chat template.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_CONVERSATION_H
#define FT_RUNTIME_TOOLS_RUN_CONVERSATION_H

#include "runtime/model/model.h"

typedef struct ft_conversation {
    ft_chat format;
    ft_chat_message *message; /* contents owned */
    size_t count;
} ft_conversation;

/*
 * Detect the model's chat template and add the `system` message, if not NULL.  FT_EUNSUPPORTED: no
 * known template.  Free with ft_conversation_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_conversation_init(ft_conversation *out, const ft_model *model,
                                           const ft_tokenizer *tokenizer, const char *system,
                                           ft_error *err);
void ft_conversation_fini(ft_conversation *conversation);

/* Append a message of role "user" or "assistant"; content is copied, role is borrowed. */
FT_MUST_USE ft_status ft_conversation_add(ft_conversation *conversation, const char *role,
                                          const char *content, ft_error *err);

/* Remove the last message. */
void ft_conversation_pop(ft_conversation *conversation);

/* Render and encode all messages with the generation prompt; free(*ids), also after a failure. */
FT_MUST_USE ft_status ft_conversation_encode(const ft_conversation *conversation,
                                             const ft_tokenizer *tokenizer, int32_t **ids,
                                             size_t *count, ft_error *err);

#endif
