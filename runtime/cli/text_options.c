/*
 * text_options.c - parse the options that name a file of texts.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/cli/text_options.h"

bool ft_tool_text_option(const ft_tool *tool, ft_text_source *source, int option, const char *text)
{
    switch (option) {
    case FT_OPTION_TEXT:
        source->path = text;
        return true;
    case FT_OPTION_PAIRS:
        source->format.pairs = true;
        return true;
    case FT_OPTION_FIELDS:
        source->format.fields = text;
        return true;
    case FT_OPTION_WHOLE:
        source->format.whole_file = true;
        return true;
    case FT_OPTION_MAX_LENGTH:
        source->max_length = ft_tool_int(tool, option, text, 1);
        return true;
    case FT_OPTION_SOURCE_LANGUAGE:
        source->languages.source = text;
        return true;
    case FT_OPTION_TARGET_LANGUAGE:
        source->languages.target = text;
        return true;
    default:
        return false;
    }
}

/* An option that needs --text; NULL: none is given. */
static const char *option_of_texts(const ft_text_source *source)
{
    return source->format.pairs               ? "pairs"
           : source->format.fields != NULL    ? "fields"
           : source->format.whole_file        ? "whole"
           : source->max_length > 0           ? "max-length"
           : source->languages.source != NULL ? "source-lang"
           : source->languages.target != NULL ? "target-lang"
                                              : NULL;
}

void ft_tool_check_text_options(const ft_tool *tool, const ft_text_source *source)
{
    const ft_examples_options *format = &source->format;
    const char *needing = option_of_texts(source);
    if (source->path == NULL && needing != NULL)
        ft_tool_usage_error(tool, "--%s requires --text", needing);
    if (format->whole_file && (format->pairs || format->fields != NULL))
        ft_tool_usage_error(tool, "--whole reads one text: --%s does not apply",
                            format->pairs ? "pairs" : "fields");
}
