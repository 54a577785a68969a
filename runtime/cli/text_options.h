/*
 * text_options.h - the options that name a file of texts, common to the tools that read one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CLI_TEXT_OPTIONS_H
#define FT_RUNTIME_CLI_TEXT_OPTIONS_H

#include "runtime/cli/options.h"
#include "runtime/data/model_texts.h"

enum {
    FT_OPTION_TEXT = 600,
    FT_OPTION_PAIRS,
    FT_OPTION_FIELDS,
    FT_OPTION_WHOLE,
    FT_OPTION_MAX_LENGTH,
    FT_OPTION_SOURCE_LANGUAGE,
    FT_OPTION_TARGET_LANGUAGE,
};

/* Rows of a tool's table. */
#define FT_TEXT_OPTIONS                                                                            \
    { FT_OPTION_TEXT, "text", "FILE",                                                              \
      "read texts instead of -d: one a line, or JSON Lines\n"                                      \
      "if the name ends in .jsonl; - is standard input" },                                         \
        { FT_OPTION_PAIRS, "pairs", NULL, "each line is a pair of texts parted by a tab" },        \
        { FT_OPTION_FIELDS, "fields", "NAMES",                                                     \
          "read JSON Lines: the member with the text, or the\n"                                    \
          "two with a pair, separated by a comma" },                                               \
        { FT_OPTION_WHOLE, "whole", NULL, "the whole file is one text" },                          \
        { FT_OPTION_MAX_LENGTH, "max-length", "N",                                                 \
          "truncate texts to N tokens; default the length that\n"                                  \
          "the model was made for" },                                                              \
        { FT_OPTION_SOURCE_LANGUAGE, "source-lang", "NAME",                                        \
          "of translators: the language of the first texts" },                                     \
    {                                                                                              \
        FT_OPTION_TARGET_LANGUAGE, "target-lang", "NAME",                                          \
            "of translators: the language of the second texts"                                     \
    }

/* Parse one of these options into `source`; false: another option. */
bool ft_tool_text_option(const ft_tool *tool, ft_text_source *source, int option,
                         const char *text);

/* Usage errors: options that need --text or exclude each other. */
void ft_tool_check_text_options(const ft_tool *tool, const ft_text_source *source);

#endif
