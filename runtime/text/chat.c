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

typedef enum { SYSTEM, USER, ASSISTANT, N_ROLES } role;

static const char *const role_names[N_ROLES] = { "system", "user", "assistant" };

typedef struct {
    const char *name;
    const char *prefix; /* start of a conversation */
    struct {
        const char *before, *after;
    } wrap[N_ROLES];               /* of a message */
    const char *generation_prompt; /* generation prompt: opens the assistant's turn */
    const char *default_system;    /* used without a system message; or NULL */
    bool alternating_roles; /* roles alternate; system text is merged into the first user's */
    bool trim_content;      /* trim white space around contents */
} chat_format;

static const chat_format formats[] = {
    [FT_CHAT_NONE] = { .name = "none" },
    [FT_CHAT_LLAMA2] = { .name = "llama2",
                         .prefix = "",
                         .wrap = { [SYSTEM] = { "<<SYS>>\n", "\n<</SYS>>\n\n" },
                                   [USER] = { "<s>[INST] ", " [/INST]" },
                                   [ASSISTANT] = { " ", " </s>" } },
                         .generation_prompt = "",
                         .alternating_roles = true,
                         .trim_content = true },
    [FT_CHAT_LLAMA3] = { .name = "llama3",
                         .prefix = "<|begin_of_text|>",
                         .wrap = { [SYSTEM] = { "<|start_header_id|>system<|end_header_id|>\n\n",
                                                "<|eot_id|>" },
                                   [USER] = { "<|start_header_id|>user<|end_header_id|>\n\n",
                                              "<|eot_id|>" },
                                   [ASSISTANT] = { "<|start_header_id|>assistant<|end_header_id|>"
                                                   "\n\n",
                                                   "<|eot_id|>" } },
                         .generation_prompt = "<|start_header_id|>assistant<|end_header_id|>\n\n",
                         .trim_content = true },
    [FT_CHAT_MISTRAL] = { .name = "mistral",
                          .prefix = "<s>",
                          .wrap = { [SYSTEM] = { "", "\n\n" },
                                    [USER] = { "[INST] ", " [/INST]" },
                                    [ASSISTANT] = { " ", "</s>" } },
                          .generation_prompt = "",
                          .alternating_roles = true },
    [FT_CHAT_QWEN2] = { .name = "qwen2",
                        .prefix = "",
                        .wrap = { [SYSTEM] = { "<|im_start|>system\n", "<|im_end|>\n" },
                                  [USER] = { "<|im_start|>user\n", "<|im_end|>\n" },
                                  [ASSISTANT] = { "<|im_start|>assistant\n", "<|im_end|>\n" } },
                        .generation_prompt = "<|im_start|>assistant\n",
                        .default_system = "You are a helpful assistant." },
};

const char *ft_chat_name(ft_chat chat)
{
    return (size_t) chat < FT_COUNT(formats) ? formats[chat].name : NULL;
}

static bool has_tokens(const ft_tokenizer *tokenizer, const char *first, const char *second)
{
    return ft_tokenizer_token_to_id(tokenizer, first) >= 0 &&
           ft_tokenizer_token_to_id(tokenizer, second) >= 0;
}

ft_chat ft_chat_detect(const ft_tokenizer *tokenizer, const char *model_type)
{
    const char *type = model_type == NULL ? "" : model_type;
    if (tokenizer == NULL)
        return FT_CHAT_NONE;
    if (has_tokens(tokenizer, "<|start_header_id|>", "<|eot_id|>"))
        return FT_CHAT_LLAMA3;
    if (has_tokens(tokenizer, "<|im_start|>", "<|im_end|>"))
        return FT_CHAT_QWEN2;
    if (!has_tokens(tokenizer, "<s>", "</s>"))
        return FT_CHAT_NONE;
    if (strcmp(type, "mistral") == 0)
        return FT_CHAT_MISTRAL;
    return strcmp(type, "llama") == 0 ? FT_CHAT_LLAMA2 : FT_CHAT_NONE;
}

/* ---- Checking ----------------------------------------------------------------------------- */

static role role_of(const ft_chat_message *message)
{
    role r = SYSTEM;
    while (r < N_ROLES && strcmp(role_names[r], message->role) != 0)
        r++;
    return r;
}

static ft_status check_message(const ft_chat_message *messages, size_t i, ft_error *err)
{
    const char *content = messages[i].content;
    if (content == NULL || messages[i].role == NULL)
        return ft_fail(err, FT_EARG, "message %zu: its %s is NULL", i,
                       content == NULL ? "content" : "role");
    size_t bytes = strlen(content), valid = ft_utf8_valid_prefix(content, bytes);
    if (role_of(&messages[i]) == N_ROLES)
        return ft_fail(err, FT_EARG,
                       "message %zu: found role \"%.64s\", expected system, user or assistant", i,
                       messages[i].role);
    if (valid < bytes)
        return ft_fail(err, FT_EFORMAT, "message %zu: byte %zu is 0x%02x, expected valid UTF-8", i,
                       valid, (unsigned) (unsigned char) content[valid]);
    return FT_OK;
}

/* Check that the roles alternate: an optional system message, user, assistant, user... */
static ft_status check_alternation(const ft_chat_message *messages, size_t count, ft_error *err)
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
    return formats[chat].alternating_roles ? check_alternation(messages, count, err) : FT_OK;
}

/* ---- Writing ------------------------------------------------------------------------------ */

static bool append(ft_strbuf *out, const char *text)
{
    return ft_strbuf_append(out, text, strlen(text));
}

/* Python's str.strip(), which these templates use, also strips the information separators. */
static bool is_space(uint32_t c)
{
    return ft_char_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

static bool append_content(const chat_format *f, ft_strbuf *out, const char *content)
{
    const char *end = content + strlen(content), *next = content;
    while (f->trim_content && content < end && is_space(ft_utf8_decode_next(&next)))
        content = next;
    while (f->trim_content && content < end && is_space(ft_utf8_decode_prev(end)))
        do
            end--;
        while (ft_utf8_is_continuation(*end));
    return ft_strbuf_append(out, content, (size_t) (end - content));
}

static bool append_message(const chat_format *f, ft_strbuf *out, role r, const char *content)
{
    return append(out, f->wrap[r].before) && append_content(f, out, content) &&
           append(out, f->wrap[r].after);
}

/* The first user's content after the system's; they are trimmed as one. */
static bool append_merged_first_turn(const chat_format *f, ft_strbuf *out, const char *system,
                                     const char *user)
{
    ft_strbuf merged = { 0 };
    bool ok = append(&merged, f->wrap[SYSTEM].before) && append(&merged, system) &&
              append(&merged, f->wrap[SYSTEM].after) && append(&merged, user) &&
              ft_strbuf_append(&merged, "", 1) && append_message(f, out, USER, merged.data);
    ft_strbuf_fini(&merged);
    return ok;
}

static bool append_conversation(const chat_format *f, ft_strbuf *out,
                                const ft_chat_message *messages, size_t count)
{
    size_t i = 0;
    bool system = role_of(&messages[0]) == SYSTEM, ok = append(out, f->prefix);
    if (f->default_system != NULL && !system)
        ok = ok && append_message(f, out, SYSTEM, f->default_system);
    if (f->alternating_roles && system) {
        ok = ok && append_merged_first_turn(f, out, messages[0].content, messages[1].content);
        i = 2;
    }
    for (; i < count; i++)
        ok = ok && append_message(f, out, role_of(&messages[i]), messages[i].content);
    if (role_of(&messages[count - 1]) != ASSISTANT)
        ok = ok && append(out, f->generation_prompt);
    return ok;
}

ft_status ft_chat_render(ft_chat chat, const ft_chat_message *messages, size_t count, char *text,
                         size_t capacity, size_t *bytes, ft_error *err)
{
    ft_strbuf out = { 0 };
    FT_REQUIRE(bytes, err);
    *bytes = 0;
    FT_REQUIRE_ARRAY(messages, count, err);
    FT_REQUIRE_ARRAY(text, capacity, err);
    FT_TRY(check_all(chat, messages, count, err));
    bool ok = append_conversation(&formats[chat], &out, messages, count);
    if (ok) {
        *bytes = out.bytes;
        if (capacity > 0)
            memcpy(text, out.data, ft_min_size(capacity, out.bytes));
    }
    ft_strbuf_fini(&out);
    return ok ? FT_OK : ft_fail(err, FT_ENOMEM, "chat: no memory");
}
