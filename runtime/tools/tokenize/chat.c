/*
 * chat.c - a conversation as the model reads it: rendered by a chat template, and its token ids.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/tokenize/tokenize.h"

#include "convert/tokenizer/checkpoint_chat.h"
#include "runtime/cli/json_stream.h"
#include "runtime/data/texts/examples.h"
#include "runtime/error.h"
#include "runtime/model/model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static ft_status open_artifact_template(ft_chat_template **out, const char *path, ft_error *err)
{
    ft_model *model;
    FT_TRY(ft_model_open(&model, path, NULL, err));
    ft_status status = ft_chat_template_open_model(out, model, err);
    ft_model_close(model);
    return status;
}

static ft_status open_template(ft_chat_template **out, const ft_tokenize *options, ft_error *err)
{
    struct stat info;
    if (options->chat_template != NULL)
        return ft_chat_template_open(out, options->chat_template, options->bos_token,
                                     options->eos_token, err);
    if (stat(options->input, &info) != 0)
        return ft_fail_errno(err, "%s", options->input);
    if (S_ISDIR(info.st_mode))
        return ft_chat_template_open_checkpoint(out, options->input, err);
    if (ft_tokenize_is_json(options->input))
        return ft_fail(err, FT_EARG,
                       "%s: a tokenizer.json has no chat template: give an artifact or the folder "
                       "of a checkpoint, or use --chat-template FILE",
                       options->input);
    return open_artifact_template(out, options->input, err);
}

static ft_status render(const ft_tokenize *options, const ft_chat_template *template,
                        ft_chat_text *out, ft_error *err)
{
    const ft_examples_options whole_file = { .whole_file = true };
    const ft_chat_options chat = { .size = sizeof chat,
                                   .no_generation_prompt = options->no_generation_prompt,
                                   .date = options->date };
    ft_examples messages;
    ft_status status = ft_examples_read(&messages, options->chat, &whole_file, err);
    if (status == FT_OK)
        status = ft_chat_render_file(template, messages.name, messages.example[0].text,
                                     strlen(messages.example[0].text), &chat, out, err);
    ft_examples_fini(&messages);
    return status;
}

static ft_status print_ids(const ft_tokenizer *tokenizer, const ft_chat_text *text, ft_error *err)
{
    ft_encoding *encoded;
    ft_json_stream json = { .file = stdout, .compact = true };
    FT_TRY(ft_chat_text_encode(tokenizer, text, &encoded, err));
    ft_json_stream_ints(&json, NULL, encoded->ids, encoded->count);
    ft_encoding_free(encoded);
    return FT_OK;
}

static ft_status print(const ft_tokenize *options, const ft_tokenizer *tokenizer,
                       const ft_chat_text *text, ft_error *err)
{
    if (options->ids)
        return print_ids(tokenizer, text, err);
    fwrite(text->text, 1, text->bytes, stdout);
    return FT_OK;
}

ft_status ft_tokenize_chat(const ft_tokenize *options, const ft_tokenizer *tokenizer, ft_error *err)
{
    ft_chat_template *template;
    ft_chat_text text = { 0 };
    FT_TRY(open_template(&template, options, err));
    ft_status status = render(options, template, &text, err);
    if (status == FT_OK)
        status = print(options, tokenizer, &text, err);
    free(text.text);
    ft_chat_template_close(template);
    return status;
}
