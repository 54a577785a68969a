/*
 * chat.c - fuzz target: arbitrary bytes as tokenizer_config.json, and as a file of messages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/utf8.h"
#include "runtime/text/chat_template.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const char chatml[] = "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n"
                             "{{ m.content|trim }}{{ m|tojson }}<|im_end|>\n{% endfor %}"
                             "{{ tools|tojson(indent=2) }}{{ documents or '' }}";

static ft_status read_config(ft_chat_template **out, const char *jinja, const uint8_t *data,
                             size_t size, ft_error *err)
{
    const ft_chat_file files[FT_CHAT_FILES] = {
        [FT_CHAT_FILE_JINJA] = { jinja, jinja == NULL ? 0 : strlen(jinja) },
        [FT_CHAT_FILE_CONFIG] = { (const char *) data, size },
    };
    return ft_chat_template_read(out, "", files, err);
}

/* With every capacity, as much is written as fits, and the text is valid. */
static void render(const ft_chat_template *template)
{
    static const ft_chat_message messages[] = { { "system", " Be terse. " }, { "user", "\u00e9" } };
    const ft_chat_options options = { .date = 1795176000 };
    size_t bytes, again;
    ft_error err = { .code = FT_OK };
    ft_status status = ft_chat_render(template, messages, 2, &options, NULL, NULL, 0, &bytes, &err);
    if (status != FT_OK) {
        require(err.code == status && err.text[0] != '\0' && bytes == 0);
        return;
    }
    char *text = malloc(bytes + 1);
    require(text != NULL);
    text[bytes / 2] = text[bytes] = 'x';
    require(ft_chat_render(template, messages, 2, &options, text, NULL, bytes / 2, &again, &err) ==
            FT_OK);
    require(again == bytes && text[bytes / 2] == 'x');
    require(ft_chat_render(template, messages, 2, &options, text, NULL, bytes, &again, &err) ==
            FT_OK);
    require(again == bytes && text[bytes] == 'x' && ft_utf8_valid_prefix(text, bytes) == bytes);
    free(text);
}

static void as_config(const uint8_t *data, size_t size)
{
    ft_chat_template *template;
    ft_error err = { .code = FT_OK };
    ft_status status = read_config(&template, NULL, data, size, &err);
    require(status == FT_OK || (template == NULL && err.code == status && err.text[0] != '\0'));
    if (template != NULL)
        render(template);
    ft_chat_template_close(template);
}

static void as_messages(const uint8_t *data, size_t size)
{
    ft_chat_template *template;
    ft_chat_text text;
    ft_error err = { .code = FT_OK };
    require(read_config(&template, chatml, NULL, 0, &err) == FT_OK && template != NULL);
    ft_status status =
        ft_chat_render_file(template, "c.json", (const char *) data, size, NULL, &text, &err);
    require((status == FT_OK) == (text.text != NULL));
    if (status == FT_OK)
        require(ft_utf8_valid_prefix(text.text, text.bytes) == text.bytes);
    else
        require(err.code == status && err.text[0] != '\0');
    free(text.text);
    ft_chat_template_close(template);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_config(data, size);
    as_messages(data, size);
    return 0;
}
