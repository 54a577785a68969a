/*
 * conversation.h - the messages of a chat, and their token ids by the model's chat template.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_CONVERSATION_H
#define FT_RUNTIME_TOOLS_RUN_CONVERSATION_H

#include "runtime/model/model.h"

typedef struct ft_conversation {
    ft_chat_template *template;
    ft_chat_message *message; /* contents owned */
    size_t count;
    int64_t date; /* ft_chat_options.date */
} ft_conversation;

/*
 * Open the model's chat template.  FT_EUNSUPPORTED: it has none, or one that is not supported. Free
 * with ft_conversation_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_conversation_init(ft_conversation *out, const ft_model *model,
                                           int64_t date, ft_error *err);
void ft_conversation_fini(ft_conversation *conversation);

/* Append a message of role "system", "user" or "assistant"; content is copied, role is borrowed. */
FT_MUST_USE ft_status ft_conversation_add(ft_conversation *conversation, const char *role,
                                          const char *content, ft_error *err);

/* Remove messages from the end until `count` are left. */
void ft_conversation_truncate(ft_conversation *conversation, size_t count);

/* Render and encode all messages with the generation prompt; free(*ids), also after a failure. */
FT_MUST_USE ft_status ft_conversation_encode(const ft_conversation *conversation,
                                             const ft_tokenizer *tokenizer, int32_t **ids,
                                             size_t *count, ft_error *err);

#endif
