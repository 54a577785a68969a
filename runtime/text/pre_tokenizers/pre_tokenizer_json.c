/*
 * pre_tokenizer_json.c - parse the section "pre_tokenizer".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/pre_tokenizers/pre_tokenizer.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/pre_tokenizers/splits.h"
#include "runtime/text/pre_tokenizers/transforms.h"
#include "runtime/text/unicode/regex_json.h"
#include "runtime/text/unicode/unicode.h"

#include <stdio.h>
#include <string.h>

/* GPT-2's split pattern, the default of ByteLevel. */
static const char gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static ft_status add_step(ft_pretokenizer *p, const ft_json_reader *in, ft_pretokenize_fn apply,
                          ft_pretokenize_step **step)
{
    *step = NULL;
    if (p->count == FT_PRETOKENIZE_MAX_STEPS)
        return ft_json_fail_type(in, "fewer steps");
    *step = &p->step[p->count++];
    (*step)->apply = apply;
    return FT_OK;
}

static ft_status add_character(ft_pretokenizer *p, const ft_json_reader *in,
                               ft_pretokenize_fn apply, const char *character,
                               ft_pretokenize_step **step)
{
    FT_TRY(add_step(p, in, apply, step));
    snprintf((*step)->character, sizeof(*step)->character, "%s", character);
    return FT_OK;
}

/* Split at characters that `matches` accepts. */
static ft_status add_matches(ft_pretokenizer *p, const ft_json_reader *in,
                             bool (*matches)(uint32_t c), ft_split_behavior split)
{
    ft_pretokenize_step *step;
    FT_TRY(add_step(p, in, ft_split_at_characters, &step));
    step->matches = matches;
    step->split = split;
    return FT_OK;
}

static ft_status compile_gpt2(ft_regex *regex, const ft_json_reader *in)
{
    char expected[FT_REGEX_ERROR_SIZE];
    ft_status status = ft_regex_compile(regex, gpt2_pattern, expected);
    if (status == FT_ENOMEM)
        return ft_json_fail_no_memory(in);
    return status == FT_OK ? FT_OK : ft_json_fail_value(in, status, "use_regex", NULL, expected);
}

static ft_status read_byte_level(ft_pretokenizer *p, const ft_json_reader *in)
{
    bool prefix, use_split;
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "add_prefix_space", "trim_offsets", "use_regex"));
    FT_TRY(ft_json_read_bool(in, "add_prefix_space", &prefix));
    FT_TRY(ft_json_read_optional_bool(in, "use_regex", true, &use_split));
    if (prefix)
        FT_TRY(add_character(p, in, ft_prepend_character, " ", &step));
    if (use_split) {
        FT_TRY(add_step(p, in, ft_split_at_regex, &step));
        FT_TRY(compile_gpt2(&step->regex, in));
    }
    return add_step(p, in, ft_bytes_to_chars, &step);
}

static ft_status read_behavior(ft_split_behavior *split, const ft_json_reader *in)
{
    static const char *const names[] = {
        [FT_SPLIT_ISOLATED] = "Isolated",
        [FT_SPLIT_REMOVED] = "Removed",
        [FT_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [FT_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
        [FT_SPLIT_CONTIGUOUS] = "Contiguous",
    };
    const char *name;
    size_t i = 0;
    FT_TRY(ft_json_read_string(in, "behavior", &name));
    while (i < FT_COUNT(names) && strcmp(names[i], name) != 0)
        i++;
    *split = (ft_split_behavior) i;
    if (i < FT_COUNT(names))
        return FT_OK;
    return ft_json_fail_value(
        in, FT_EUNSUPPORTED, "behavior", json_object_get(in->json, "behavior"),
        "Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
}

static ft_status read_split(ft_pretokenizer *p, const ft_json_reader *in)
{
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "pattern", "behavior", "invert"));
    FT_TRY(add_step(p, in, ft_split_at_regex, &step));
    FT_TRY(read_behavior(&step->split, in));
    FT_TRY(ft_json_read_bool(in, "invert", &step->invert));
    return ft_regex_read_json(&step->regex, in);
}

/* A string of exactly one character. */
static ft_status read_character(const ft_json_reader *in, const char *key, const char **text)
{
    FT_TRY(ft_json_read_string(in, key, text));
    const char *next = *text;
    if (next[0] != '\0')
        ft_utf8_decode_next(&next);
    if (next > *text && *next == '\0')
        return FT_OK;
    return ft_json_fail_member(in, key, "one character");
}

/* Old files have "add_prefix_space" instead of, or in addition to, "prepend_scheme". */
static ft_status read_scheme(const ft_json_reader *in, bool *never, bool *first)
{
    bool prefix;
    const char *name = "always";
    const json_t *scheme = json_object_get(in->json, "prepend_scheme");
    if (scheme != NULL)
        FT_TRY(ft_json_read_string(in, "prepend_scheme", &name));
    *first = strcmp(name, "first") == 0;
    *never = strcmp(name, "never") == 0;
    if (!*first && !*never && strcmp(name, "always") != 0)
        return ft_json_fail_value(in, FT_EUNSUPPORTED, "prepend_scheme", scheme,
                                  "always, first or never");
    FT_TRY(ft_json_read_optional_bool(in, "add_prefix_space", true, &prefix));
    if (!prefix && !*never)
        return ft_json_fail_value(in, FT_EFORMAT, "add_prefix_space", json_false(),
                                  "true, or the prepend_scheme \"never\"");
    return FT_OK;
}

static ft_status read_metaspace(ft_pretokenizer *p, const ft_json_reader *in)
{
    const char *character;
    bool never, first, use_split;
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "replacement", "prepend_scheme", "add_prefix_space",
                                  "split", "str_rep"));
    FT_TRY(read_character(in, "replacement", &character));
    FT_TRY(read_scheme(in, &never, &first));
    FT_TRY(ft_json_read_optional_bool(in, "split", true, &use_split));
    FT_TRY(add_character(p, in, ft_replace_spaces, character, &step));
    if (!never) {
        FT_TRY(add_character(p, in, ft_prepend_character, character, &step));
        step->only_first = first;
    }
    if (!use_split)
        return FT_OK;
    FT_TRY(add_character(p, in, ft_split_at_character, character, &step));
    step->split = FT_SPLIT_MERGED_WITH_NEXT;
    return FT_OK;
}

static ft_status read_digits(ft_pretokenizer *p, const ft_json_reader *in)
{
    bool individual;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "individual_digits"));
    FT_TRY(ft_json_read_bool(in, "individual_digits", &individual));
    return add_matches(p, in, ft_char_is_numeric,
                       individual ? FT_SPLIT_ISOLATED : FT_SPLIT_CONTIGUOUS);
}

static ft_status read_punctuation(ft_pretokenizer *p, const ft_json_reader *in)
{
    ft_split_behavior split = FT_SPLIT_ISOLATED;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "behavior"));
    if (json_object_get(in->json, "behavior") != NULL)
        FT_TRY(read_behavior(&split, in));
    return add_matches(p, in, ft_char_is_punctuation, split);
}

static ft_status read_delimiter(ft_pretokenizer *p, const ft_json_reader *in)
{
    const char *character;
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "delimiter"));
    FT_TRY(read_character(in, "delimiter", &character));
    FT_TRY(add_character(p, in, ft_split_at_character, character, &step));
    step->split = FT_SPLIT_REMOVED;
    return FT_OK;
}

static ft_status read_whitespace_split(ft_pretokenizer *p, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type"));
    return add_matches(p, in, ft_char_is_space, FT_SPLIT_REMOVED);
}

static ft_status read_whitespace(ft_pretokenizer *p, const ft_json_reader *in)
{
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type"));
    return add_step(p, in, ft_split_whitespace, &step);
}

static ft_status read_scripts(ft_pretokenizer *p, const ft_json_reader *in)
{
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type"));
    return add_step(p, in, ft_split_scripts, &step);
}

static ft_status read_bert(ft_pretokenizer *p, const ft_json_reader *in)
{
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type"));
    return add_step(p, in, ft_split_bert, &step);
}

static ft_status read_fixed_length(ft_pretokenizer *p, const ft_json_reader *in)
{
    int64_t length;
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "length"));
    FT_TRY(ft_json_read_integer(in, "length", 1, INT32_MAX, &length));
    FT_TRY(add_step(p, in, ft_split_fixed_length, &step));
    step->length = (size_t) length;
    return FT_OK;
}

/* ---- The section ----------------------------------------------------------------------------- */

static const struct {
    const char *type;
    ft_status (*read)(ft_pretokenizer *p, const ft_json_reader *in);
} kinds[] = {
    { "BertPreTokenizer", read_bert },
    { "ByteLevel", read_byte_level },
    { "CharDelimiterSplit", read_delimiter },
    { "Digits", read_digits },
    { "FixedLength", read_fixed_length },
    { "Metaspace", read_metaspace },
    { "Punctuation", read_punctuation },
    { "Split", read_split },
    { "UnicodeScripts", read_scripts },
    { "Whitespace", read_whitespace },
    { "WhitespaceSplit", read_whitespace_split },
};

static ft_status read_step(void *to, const ft_json_reader *in)
{
    const char *type;
    FT_TRY(ft_json_read_string(in, "type", &type));
    for (size_t i = 0; i < FT_COUNT(kinds); i++)
        if (strcmp(kinds[i].type, type) == 0)
            return kinds[i].read(to, in);
    return ft_json_fail_type(in, "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, "
                                 "FixedLength, Metaspace, Punctuation, Split, UnicodeScripts, "
                                 "Whitespace or WhitespaceSplit");
}

ft_status ft_pretokenizer_read_json(ft_pretokenizer *out, const ft_json_reader *file)
{
    return ft_json_read_pipeline(file, "pre_tokenizer", "pretokenizers", read_step, out);
}
