/*
 * ft-tokenize.c - show what a tokenizer makes of texts, pairs, token ids and conversations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/tokenize/tokenize.h"

#include "runtime/cli/date.h"
#include "runtime/cli/options.h"
#include "runtime/error.h"

#include <string.h>
#include <unistd.h>

enum {
    PAIRS = FT_LONG_ONLY,
    FIELDS,
    WHOLE_FILE,
    OFFSETS,
    TYPE_IDS,
    TOKENS,
    NO_SPECIAL,
    MAX_LENGTH,
    DECODE,
    KEEP_SPECIAL,
    SOURCE_LANGUAGE,
    TARGET_LANGUAGE,
    CHAT,
    IDS,
    NO_GENERATION_PROMPT,
    CHAT_TEMPLATE,
    BOS,
    EOS,
    DATE,
};

static const ft_option options[] = {
    { 'i', "input", "FILE", "an artifact, a checkpoint or a tokenizer.json" },
    { PAIRS, "pairs", NULL, "each line is a pair of texts parted by a tab" },
    { FIELDS, "fields", "NAMES",
      "read JSON Lines: the member with the text, or the\n"
      "two with a pair, separated by a comma" },
    { WHOLE_FILE, "whole", NULL, "the whole file is one text" },
    { OFFSETS, "offsets", NULL, "print the characters that each token comes from" },
    { TYPE_IDS, "type-ids", NULL, "print token type ids" },
    { TOKENS, "tokens", NULL, "print the tokens themselves" },
    { NO_SPECIAL, "no-special-tokens", NULL, "do not add special tokens" },
    { MAX_LENGTH, "max-length", "N", "truncate to N tokens, of a pair the longer text" },
    { SOURCE_LANGUAGE, "source-lang", "NAME", "the language of the texts of a translator" },
    { TARGET_LANGUAGE, "target-lang", "NAME", "the language that they are translated into" },
    { DECODE, "decode", NULL, "read token ids, and print texts" },
    { KEEP_SPECIAL, "keep-special", NULL, "decode special tokens, too" },
    { CHAT, "chat", "FILE",
      "print the conversation of a JSON file as the model's\n"
      "chat template renders it" },
    { IDS, "ids", NULL, "print its token ids instead" },
    { NO_GENERATION_PROMPT, "no-generation-prompt", NULL,
      "do not open the answer of the assistant" },
    { CHAT_TEMPLATE, "chat-template", "FILE", "render this Jinja file; -i is not needed" },
    { BOS, "bos", "TOKEN", "bos_token of that template" },
    { EOS, "eos", "TOKEN", "eos_token of that template" },
    { DATE, "date", "WHEN", "YYYY-MM-DD[THH:MM] for the template; default now" },
    { 0, NULL, NULL, NULL },
};

static const ft_tool tool = {
    .name = "ft-tokenize",
    .usage = "-i FILE [OPTION]... [FILE|-]\n"
             "-i FILE --decode [FILE|-]\n"
             "-i FILE --chat MESSAGES.json [--ids]",
    .about = "Print the token ids of each line of a file or of standard input, as one JSON\n"
             "list a line, or as one object a line if more than ids is asked for.",
    .option = options,
};

static void set_option(ft_tokenize *t, int option, const char *value)
{
    switch (option) {
    case 'i':
        t->input = value;
        break;
    case PAIRS:
        t->pairs = true;
        break;
    case FIELDS:
        t->fields = value;
        break;
    case WHOLE_FILE:
        t->whole_file = true;
        break;
    case OFFSETS:
        t->offsets = true;
        break;
    case TYPE_IDS:
        t->type_ids = true;
        break;
    case TOKENS:
        t->tokens = true;
        break;
    case NO_SPECIAL:
        t->no_special_tokens = true;
        break;
    case MAX_LENGTH:
        t->max_length = ft_tool_int(&tool, option, value, 1);
        break;
    case DECODE:
        t->decode = true;
        break;
    case KEEP_SPECIAL:
        t->keep_special = true;
        break;
    case CHAT:
        t->chat = value;
        break;
    case IDS:
        t->ids = true;
        break;
    case NO_GENERATION_PROMPT:
        t->no_generation_prompt = true;
        break;
    case CHAT_TEMPLATE:
        t->chat_template = value;
        break;
    case BOS:
        t->bos_token = value;
        break;
    case EOS:
        t->eos_token = value;
        break;
    case DATE:
        if (!ft_date_parse(value, &t->date))
            ft_tool_usage_error(&tool, "--date %s: expected YYYY-MM-DD or YYYY-MM-DDTHH:MM", value);
        break;
    case SOURCE_LANGUAGE:
        t->languages.source = value;
        break;
    case TARGET_LANGUAGE:
        t->languages.target = value;
        break;
    }
}

static bool has_text_options(const ft_tokenize *t)
{
    return t->pairs || t->fields != NULL || t->whole_file || t->offsets || t->type_ids ||
           t->tokens || t->no_special_tokens || t->max_length > 0 || t->languages.source != NULL ||
           t->languages.target != NULL;
}

static void check_chat(const ft_tokenize *t)
{
    bool chats = t->ids || t->no_generation_prompt || t->chat_template != NULL || t->date != 0;
    if (chats && t->chat == NULL)
        ft_tool_usage_error(&tool, "--ids, --no-generation-prompt, --chat-template and --date "
                                   "require --chat FILE");
    if ((t->bos_token != NULL || t->eos_token != NULL) && t->chat_template == NULL)
        ft_tool_usage_error(&tool, "--bos and --eos require --chat-template");
    if (t->chat != NULL && (t->decode || has_text_options(t)))
        ft_tool_usage_error(&tool, "--chat reads messages: options for texts do not apply");
    if (t->ids && t->input == NULL)
        ft_tool_usage_error(&tool, "--ids: no tokenizer given: use -i FILE");
}

static void check(const ft_tokenize *t)
{
    check_chat(t);
    if (t->input == NULL && t->chat_template == NULL)
        ft_tool_usage_error(&tool, "no tokenizer given: use -i FILE");
    if (t->decode && has_text_options(t))
        ft_tool_usage_error(&tool, "--decode reads token ids: options for texts do not apply");
    if (t->keep_special && !t->decode)
        ft_tool_usage_error(&tool, "--keep-special requires --decode");
    if (t->whole_file && (t->pairs || t->fields != NULL))
        ft_tool_usage_error(&tool, "--whole reads one text: --pairs and --fields do not apply");
}

static void parse(ft_tokenize *t, int argc, char **argv)
{
    const char *value;
    for (int option; (option = ft_options_next(&tool, argc, argv, &value)) != -1;)
        set_option(t, option, value);
    check(t);
    if (t->chat != NULL && t->date == 0 && !ft_date_of_environment(&t->date))
        ft_tool_usage_error(&tool, "SOURCE_DATE_EPOCH: expected seconds since 1970");
    if (t->chat == NULL)
        t->texts = optind < argc ? argv[optind++] : "-";
    ft_tool_check_no_operands(&tool, argc, argv);
}

static ft_status print(const ft_tokenize *t, const ft_translator *tokenizers, ft_error *err)
{
    if (t->chat != NULL)
        return ft_tokenize_chat(t, tokenizers->source, err);
    return t->decode ? ft_tokenize_decode(t, tokenizers->target, err)
                     : ft_tokenize_encode(t, tokenizers->source, err);
}

static ft_status run(const ft_tokenize *t, ft_error *err)
{
    ft_translator tokenizers;
    if (t->chat != NULL && !t->ids)
        return ft_tokenize_chat(t, NULL, err);
    FT_TRY(ft_tokenize_open(&tokenizers, t, err));
    ft_status status = print(t, &tokenizers, err);
    ft_translator_close(&tokenizers);
    return status;
}

int main(int argc, char **argv)
{
    ft_tokenize t = { 0 };
    ft_error err;
    parse(&t, argc, argv);
    return ft_tool_exit_status(&tool, run(&t, &err) == FT_OK ? 0 : ft_tool_error(&tool, err.text));
}
