/*
 * jinja.c - fuzz target: arbitrary bytes as a chat template, rendered with a conversation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/base/utf8.h"
#include "runtime/text/jinja/jinja.h"
#include "tests/fuzz/fuzz.h"

static const char conversation[] =
    "[{\"role\": \"system\", \"content\": \" Be terse.\\n\"},"
    " {\"role\": \"user\", \"content\": \"Stra\\u00dfe \\ud83d\\ude00 <b>\", \"n\": [1, 2.5, "
    "null]},"
    " {\"role\": \"assistant\", \"content\": \"<think>\\nhm</think>Yes\", \"ok\": true}]";

/* The text is valid and the origin of each byte is known. */
static void check_output(const ft_jinja_output *out)
{
    require(ft_utf8_valid_prefix(out->text, out->bytes) == out->bytes);
    for (size_t i = 0; i < out->bytes; i++)
        require(out->message[i] <= 1);
    free(out->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ft_jinja_template *template;
    ft_jinja_output out;
    ft_error err = { .code = FT_OK };
    ft_status status = ft_jinja_parse(&template, "t.jinja", (const char *) data, size, &err);
    require((status == FT_OK) == (template != NULL));
    if (status == FT_OK) {
        json_t *messages = json_loads(conversation, 0, NULL), *yes = json_true();
        const ft_jinja_variable variables[] = { { "messages", messages, true },
                                                { "add_generation_prompt", yes, false } };
        require(messages != NULL);
        status = ft_jinja_render(template, variables, 2, 1795176000, &out, &err);
        require((status == FT_OK) == (out.text != NULL));
        json_decref(messages);
    }
    if (status == FT_OK)
        check_output(&out);
    else
        require(err.code == status && err.text[0] != '\0');
    ft_jinja_free(template);
    return 0;
}
