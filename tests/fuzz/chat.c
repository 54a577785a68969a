/*
 * chat.c - fuzz target: conversations with arbitrary roles and contents in every chat format.
 *
 * Each line is a message: its first character selects the role, and the rest is the content.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/ft.h"
#include "runtime/base/utf8.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { MESSAGES = 8 };

static size_t split(char *text, ft_chat_message message[MESSAGES])
{
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line != NULL && count < MESSAGES;
         line = strtok(NULL, "\n")) {
        const char *role = line[0] == 's'   ? "system"
                           : line[0] == 'u' ? "user"
                           : line[0] == 'a' ? "assistant"
                                            : line;
        message[count++] = (ft_chat_message){ role, line + 1 };
    }
    return count;
}

/* With every capacity, as much is written as fits, and the text is valid. */
static void render(ft_chat chat, const ft_chat_message *message, size_t count)
{
    size_t bytes, again;
    ft_error err = { .code = FT_OK };
    ft_status status = ft_chat_render(chat, message, count, NULL, 0, &bytes, &err);
    if (status != FT_OK) {
        require(err.code == status && err.text[0] != '\0' && bytes == 0);
        return;
    }
    char *text = malloc(bytes + 1);
    require(text != NULL);
    text[bytes / 2] = text[bytes] = 'x';
    require(ft_chat_render(chat, message, count, text, bytes / 2, &again, &err) == FT_OK);
    require(again == bytes && text[bytes / 2] == 'x');
    require(ft_chat_render(chat, message, count, text, bytes, &again, &err) == FT_OK);
    require(again == bytes && text[bytes] == 'x' && ft_utf8_valid_prefix(text, bytes) == bytes);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ft_chat_message message[MESSAGES];
    char *text = malloc(size + 1);
    require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    size_t count = split(text, message);
    for (int chat = FT_CHAT_NONE; chat <= FT_CHAT_QWEN2 + 1; chat++)
        render((ft_chat) chat, message, count);
    free(text);
    return 0;
}
