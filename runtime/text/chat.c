/*
 * chat.c - render conversations as text: one table of chat formats.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/strbuf.h"
#include "runtime/text/unicode/unicode.h"
#include "runtime/base/utf8.h"

#include <string.h>

typedef enum { SYSTEM, USER, ASSISTANT, ROLES } role;

static const char *const role_names[ROLES] = { "system", "user", "assistant" };

typedef struct {
    const char *name;
    const char *begin; /* start of a conversation */
    struct {
        const char *before, *after;
    } around[ROLES];            /* of a message */
    const char *answer;         /* generation prompt: opens the assistant's turn */
    const char *default_system; /* used without a system message; or NULL */
    bool takes_turns;           /* roles alternate; system text is merged into the first user's */
    bool trims;                 /* trim white space around contents */
} format;

static const format formats[] = {
    [FT_CHAT_NONE] = { .name = "none" },
    [FT_CHAT_LLAMA2] = { .name = "llama2",
                         .begin = "",
                         .around = { [SYSTEM] = { "<<SYS>>\n", "\n<</SYS>>\n\n" },
                                     [USER] = { "<s>[INST] ", " [/INST]" },
                                     [ASSISTANT] = { " ", " </s>" } },
                         .answer = "",
                         .takes_turns = true,
                         .trims = true },
    [FT_CHAT_LLAMA3] = { .name = "llama3",
                         .begin = "<|begin_of_text|>",
                         .around = { [SYSTEM] = { "<|start_header_id|>system<|end_header_id|>\n\n",
                                                  "<|eot_id|>" },
                                     [USER] = { "<|start_header_id|>user<|end_header_id|>\n\n",
                                                "<|eot_id|>" },
                                     [ASSISTANT] = { "<|start_header_id|>assistant<|end_header_id|>"
                                                     "\n\n",
                                                     "<|eot_id|>" } },
                         .answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",
                         .trims = true },
    [FT_CHAT_MISTRAL] = { .name = "mistral",
                          .begin = "<s>",
                          .around = { [SYSTEM] = { "", "\n\n" },
                                      [USER] = { "[INST] ", " [/INST]" },
                                      [ASSISTANT] = { " ", "</s>" } },
                          .answer = "",
                          .takes_turns = true },
    [FT_CHAT_QWEN2] = { .name = "qwen2",
                        .begin = "",
                        .around = { [SYSTEM] = { "<|im_start|>system\n", "<|im_end|>\n" },
                                    [USER] = { "<|im_start|>user\n", "<|im_end|>\n" },
                                    [ASSISTANT] = { "<|im_start|>assistant\n", "<|im_end|>\n" } },
                        .answer = "<|im_start|>assistant\n",
                        .default_system = "You are a helpful assistant." },
};

const char *ft_chat_name(ft_chat chat)
{
    return (size_t) chat < FT_COUNT(formats) ? formats[chat].name : NULL;
}

static bool has(const ft_tokenizer *tokenizer, const char *one, const char *other)
{
    return ft_tokenizer_find(tokenizer, one) >= 0 && ft_tokenizer_find(tokenizer, other) >= 0;
}

ft_chat ft_chat_find(const ft_tokenizer *tokenizer, const char *model_type)
{
    const char *type = model_type == NULL ? "" : model_type;
    if (tokenizer == NULL)
        return FT_CHAT_NONE;
    if (has(tokenizer, "<|start_header_id|>", "<|eot_id|>"))
        return FT_CHAT_LLAMA3;
    if (has(tokenizer, "<|im_start|>", "<|im_end|>"))
        return FT_CHAT_QWEN2;
    if (!has(tokenizer, "<s>", "</s>"))
        return FT_CHAT_NONE;
    if (strcmp(type, "mistral") == 0)
        return FT_CHAT_MISTRAL;
    return strcmp(type, "llama") == 0 ? FT_CHAT_LLAMA2 : FT_CHAT_NONE;
}

/* ---- Checking ----------------------------------------------------------------------------- */

static role role_of(const ft_chat_message *message)
{
    role r = SYSTEM;
    while (r < ROLES && strcmp(role_names[r], message->role) != 0)
        r++;
    return r;
}

static ft_status check_message(const ft_chat_message *messages, size_t i, ft_error *err)
{
    const char *content = messages[i].content;
    if (content == NULL || messages[i].role == NULL)
        return ft_fail(err, FT_EARG, "message %zu: its %s is NULL", i,
                       content == NULL ? "content" : "role");
    size_t bytes = strlen(content), valid = ft_utf8_valid(content, bytes);
    if (role_of(&messages[i]) == ROLES)
        return ft_fail(err, FT_EARG,
                       "message %zu: found role \"%.64s\", expected system, user or assistant", i,
                       messages[i].role);
    if (valid < bytes)
        return ft_fail(err, FT_EFORMAT, "message %zu: byte %zu is 0x%02x, expected valid UTF-8", i,
                       valid, (unsigned) (unsigned char) content[valid]);
    return FT_OK;
}

/* Check that the roles alternate: an optional system message, user, assistant, user... */
static ft_status check_turns(const ft_chat_message *messages, size_t count, ft_error *err)
{
    size_t first = role_of(&messages[0]) == SYSTEM;
    for (size_t i = first; i < count || i == first; i++) {
        role expected = (i - first) % 2 == 0 ? USER : ASSISTANT;
        if (i == count || role_of(&messages[i]) != expected)
            return ft_fail(err, FT_EARG, "message %zu: found %s, expected role %s", i,
                           i == count ? "none" : messages[i].role, role_names[expected]);
    }
    return FT_OK;
}

static ft_status check_all(ft_chat chat, const ft_chat_message *messages, size_t count,
                           ft_error *err)
{
    if (chat == FT_CHAT_NONE || ft_chat_name(chat) == NULL)
        return ft_fail(err, FT_EARG,
                       "found no chat format, expected llama2, llama3, mistral or qwen2");
    if (count == 0)
        return ft_fail(err, FT_EARG, "found no messages, expected at least one");
    for (size_t i = 0; i < count; i++)
        FT_TRY(check_message(messages, i, err));
    return formats[chat].takes_turns ? check_turns(messages, count, err) : FT_OK;
}

/* ---- Writing ------------------------------------------------------------------------------ */

static bool put(ft_text *out, const char *text)
{
    return ft_text_put(out, text, strlen(text));
}

/* Python's str.strip(), which these templates use, also strips the information separators. */
static bool is_space(uint32_t c)
{
    return ft_char_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

static bool put_content(const format *f, ft_text *out, const char *content)
{
    const char *end = content + strlen(content), *next = content;
    while (f->trims && content < end && is_space(ft_utf8_next(&next)))
        content = next;
    while (f->trims && content < end && is_space(ft_utf8_before(end)))
        do
            end--;
        while (ft_utf8_continues(*end));
    return ft_text_put(out, content, (size_t) (end - content));
}

static bool put_message(const format *f, ft_text *out, role r, const char *content)
{
    return put(out, f->around[r].before) && put_content(f, out, content) &&
           put(out, f->around[r].after);
}

/* The first user's content after the system's; they are trimmed as one. */
static bool put_first_turn(const format *f, ft_text *out, const char *system, const char *user)
{
    ft_text both = { 0 };
    bool kept = put(&both, f->around[SYSTEM].before) && put(&both, system) &&
                put(&both, f->around[SYSTEM].after) && put(&both, user) &&
                ft_text_put(&both, "", 1) && put_message(f, out, USER, both.data);
    ft_text_fini(&both);
    return kept;
}

static bool put_all(const format *f, ft_text *out, const ft_chat_message *messages, size_t count)
{
    size_t i = 0;
    bool system = role_of(&messages[0]) == SYSTEM, kept = put(out, f->begin);
    if (f->default_system != NULL && !system)
        kept = kept && put_message(f, out, SYSTEM, f->default_system);
    if (f->takes_turns && system) {
        kept = kept && put_first_turn(f, out, messages[0].content, messages[1].content);
        i = 2;
    }
    for (; i < count; i++)
        kept = kept && put_message(f, out, role_of(&messages[i]), messages[i].content);
    if (role_of(&messages[count - 1]) != ASSISTANT)
        kept = kept && put(out, f->answer);
    return kept;
}

ft_status ft_chat_render(ft_chat chat, const ft_chat_message *messages, size_t count, char *text,
                         size_t capacity, size_t *bytes, ft_error *err)
{
    ft_text out = { 0 };
    FT_NEED(bytes, err);
    *bytes = 0;
    FT_NEED_ARRAY(messages, count, err);
    FT_NEED_ARRAY(text, capacity, err);
    FT_TRY(check_all(chat, messages, count, err));
    bool kept = put_all(&formats[chat], &out, messages, count);
    if (kept) {
        *bytes = out.bytes;
        if (capacity > 0)
            memcpy(text, out.data, ft_min_size(capacity, out.bytes));
    }
    ft_text_fini(&out);
    return kept ? FT_OK : ft_fail(err, FT_ENOMEM, "chat: no memory");
}
