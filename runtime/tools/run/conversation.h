/*
 * conversation.h - a conversation with a model: what has been said, and the tokens to go on from.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TOOLS_RUN_CONVERSATION_H
#define FT_RUNTIME_TOOLS_RUN_CONVERSATION_H

#include "runtime/model/model.h"

typedef struct ft_talk {
    ft_chat format;
    ft_chat_message *message; /* contents owned */
    size_t count;
} ft_talk;

/*
 * Find the model's format; `system` (or NULL) is said first.  FT_EUNSUPPORTED where the model has
 * no format that we know.  Free with ft_talk_fini(), also after a failure.
 */
FT_MUST_USE ft_status ft_talk_init(ft_talk *out, const ft_model *model,
                                   const ft_tokenizer *tokenizer, const char *system,
                                   ft_error *err);
void ft_talk_fini(ft_talk *talk);

/* A copy of what "user" or "assistant" says is added; the role is borrowed. */
FT_MUST_USE ft_status ft_talk_say(ft_talk *talk, const char *role, const char *content,
                                  ft_error *err);

/* Take back the last message. */
void ft_talk_unsay(ft_talk *talk);

/* All of it, with the beginning of an answer, as ids; free(*ids), also after a failure.
 */
FT_MUST_USE ft_status ft_talk_encode(const ft_talk *talk, const ft_tokenizer *tokenizer,
                                     int32_t **ids, size_t *count, ft_error *err);

#endif
