/*
 * chat-t.c - rendered conversations equal the chat templates of Hugging Face `transformers`.
 *
 * golden/make-chat.py generates the data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/golden_rows.h"
#include "tests/lib/models/tiny_tokenizer.h"

#include <string.h>

enum { MAX_MESSAGES = 8, MAX_TEXT = 4096 };

static ft_chat chat_of(const char *name)
{
    ft_chat chat = FT_CHAT_NONE;
    while (ft_chat_name(chat) != NULL && strcmp(ft_chat_name(chat), name) != 0)
        chat++;
    return chat;
}

static bool is_rendered(const json_t *row)
{
    static char text[MAX_TEXT];
    ft_chat_message messages[MAX_MESSAGES];
    const json_t *list = json_array_get(row, 1), *expected = json_array_get(row, 2);
    ft_chat chat = chat_of(json_string_value(json_array_get(row, 0)));
    size_t count = json_array_size(list), bytes;
    ft_error err;
    for (size_t i = 0; i < count && i < MAX_MESSAGES; i++) {
        const json_t *message = json_array_get(list, i);
        messages[i].role = json_string_value(json_array_get(message, 0));
        messages[i].content = json_string_value(json_array_get(message, 1));
    }
    if (ft_chat_render(chat, messages, count, text, MAX_TEXT, &bytes, &err) != FT_OK)
        bail_out("%s", err.text);
    if (bytes == json_string_length(expected) &&
        memcmp(text, json_string_value(expected), bytes) == 0)
        return true;
    diag("found \"%.*s\", expected \"%s\"", (int) bytes, text, json_string_value(expected));
    return false;
}

static void test_golden(void)
{
    FILE *file = open_golden("tests/golden/chat.jsonl");
    int rows[8] = { 0 }, equal[8] = { 0 };
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row)) {
        ft_chat chat = chat_of(json_string_value(json_array_get(row, 0)));
        rows[chat]++;
        equal[chat] += is_rendered(row);
    }
    for (ft_chat chat = FT_CHAT_LLAMA2; ft_chat_name(chat) != NULL; chat++)
        ok(rows[chat] == 25 && equal[chat] == rows[chat],
           "all %d conversations in the %s format render as in transformers", rows[chat],
           ft_chat_name(chat));
    fclose(file);
}

/* ------------------------------------------------------------------------------------------ */

static void refused(ft_chat chat, const ft_chat_message *messages, size_t count, ft_status status,
                    const char *says)
{
    ft_error err = { 0 };
    size_t bytes = 99;
    is_int(ft_chat_render(chat, messages, count, NULL, 0, &bytes, &err), status,
           "ft_chat_render refuses the messages: %s", says);
    has(err.text, says, "the error of the refused messages is: %s", says);
    is_int((long long) bytes, 0, "nothing is rendered after: %s", says);
}

static void test_refused(void)
{
    static const ft_chat_message user = { "user", "a" }, assistant = { "assistant", "b" },
                                 system = { "system", "c" }, tool = { "tool", "d" },
                                 invalid = { "user", "e\xff" };
    refused(FT_CHAT_NONE, &user, 1, FT_EARG, "found no chat format");
    refused((ft_chat) 99, &user, 1, FT_EARG, "found no chat format");
    refused(FT_CHAT_QWEN2, &user, 0, FT_EARG, "found no messages, expected at least one");
    refused(FT_CHAT_LLAMA3, (ft_chat_message[]){ user, tool }, 2, FT_EARG,
            "message 1: found role \"tool\", expected system, user or assistant");
    refused(FT_CHAT_LLAMA3, (ft_chat_message[]){ system, invalid }, 2, FT_EFORMAT,
            "message 1: byte 1 is 0xff, expected valid UTF-8");
    for (ft_chat chat = FT_CHAT_LLAMA2; chat <= FT_CHAT_MISTRAL; chat += 2) {
        refused(chat, &assistant, 1, FT_EARG, "message 0: found assistant, expected role user");
        refused(chat, &system, 1, FT_EARG, "message 1: found none, expected role user");
        refused(chat, (ft_chat_message[]){ system, assistant }, 2, FT_EARG,
                "message 1: found assistant, expected role user");
        refused(chat, (ft_chat_message[]){ user, user }, 2, FT_EARG,
                "message 1: found user, expected role assistant");
        refused(chat, (ft_chat_message[]){ user, system }, 2, FT_EARG,
                "message 1: found system, expected role assistant");
    }
}

static void test_room(void)
{
    static const ft_chat_message user = { "user", "Hi" };
    char text[12] = "...........";
    size_t bytes;
    is_int(ft_chat_render(FT_CHAT_MISTRAL, &user, 1, text, 10, &bytes, NULL), FT_OK,
           "a buffer that is too small for the conversation is not an error");
    ok(bytes == 20 && strcmp(text, "<s>[INST] .") == 0,
       "ft_chat_render writes nothing past the end of the buffer");
}

/* ------------------------------------------------------------------------------------------ */

static ft_chat found(const char *one, const char *other, const char *model_type)
{
    char words[128];
    snprintf(words, sizeof words, "'%s': 0, '%s': 1, 'c': 2", one, other);
    char *json = edited(tiny_bpe_json, "'a': 0, 'b': 1, 'c': 2", words);
    for (char *quote = json; (quote = strchr(quote, '"')) != NULL;)
        *quote = '\'';
    ft_tokenizer *tokenizer =
        open_edited(json, "['a b', ['ab', 'c'], '\\u0120 a', ['b', 'c'], ['a', 'a'], ", "[");
    ft_chat chat = ft_chat_detect(tokenizer, model_type);
    ft_tokenizer_close(tokenizer);
    free(json);
    return chat;
}

static void test_finding(void)
{
    is_int(found("<|start_header_id|>", "<|eot_id|>", "llama"), FT_CHAT_LLAMA3,
           "the Llama 3 format is detected by its special tokens");
    is_int(found("<|im_start|>", "<|im_end|>", "llama"), FT_CHAT_QWEN2,
           "the Qwen2 format is detected by its special tokens");
    is_int(found("</s>", "x", "llama"), FT_CHAT_LLAMA2,
           "the Llama 2 format is detected by the model type");
    is_int(found("</s>", "x", "mistral"), FT_CHAT_MISTRAL,
           "the Mistral format is detected by the model type");
    is_int(found("</s>", "x", "bert"), FT_CHAT_NONE,
           "no chat format is detected for other model types");
    is_int(found("</s>", "x", NULL), FT_CHAT_NONE,
           "no chat format is detected without a model type");
    is_int(found("x", "<|im_start|>", "mistral"), FT_CHAT_NONE,
           "no chat format is detected when only one of its special tokens exists");
    ok(strcmp(ft_chat_name(FT_CHAT_NONE), "none") == 0 && ft_chat_name((ft_chat) 5) == NULL &&
           ft_chat_name((ft_chat) -1) == NULL,
       "every chat format has a name and other values have none");
}

int main(void)
{
    test_golden();
    test_refused();
    test_room();
    test_finding();
    return done_testing();
}
