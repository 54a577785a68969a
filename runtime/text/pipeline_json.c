/*
 * pipeline_json.c - parse the sections "normalizer" and "pre_tokenizer".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_json.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/base/utf8.h"

#include <string.h>

/* ---- Normalizer --------------------------------------------------------------------------- */

static ft_status read_bert(ft_bert_normalizer *steps, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "clean_text", "handle_chinese_chars", "strip_accents",
                                  "lowercase"));
    FT_TRY(ft_json_read_bool(in, "clean_text", &steps->clean_text));
    FT_TRY(ft_json_read_bool(in, "handle_chinese_chars", &steps->handle_chinese_chars));
    FT_TRY(ft_json_read_bool(in, "lowercase", &steps->lowercase));
    return ft_json_read_optional_bool(in, "strip_accents", steps->lowercase, &steps->strip_accents);
}

static ft_status read_normalizer_step(void *to, const ft_json_reader *in)
{
    ft_normalizer *normalizer = to;
    const char *type;
    FT_TRY(ft_json_read_string(in, "type", &type));
    if (normalizer->count == FT_NORMALIZER_MAX_STEPS)
        return ft_json_fail_type(in, "8 steps at most");
    ft_normalizer_step *step = &normalizer->step[normalizer->count++];
    if (strcmp(type, "BertNormalizer") == 0) {
        step->kind = FT_NORMALIZE_BERT;
        return read_bert(&step->bert, in);
    }
    if (strcmp(type, "NFC") == 0) {
        step->kind = FT_NORMALIZE_NFC;
        return FT_JSON_REJECT_UNKNOWN(in, "type");
    }
    if (strcmp(type, "Prepend") == 0) {
        step->kind = FT_NORMALIZE_PREPEND;
        FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "prepend"));
        return ft_json_copy_string(in, "prepend", FT_JSON_MAX_CONTENT, &step->content);
    }
    if (strcmp(type, "Replace") == 0) {
        step->kind = FT_NORMALIZE_REPLACE;
        return ft_json_read_replace(in, &step->pattern, &step->content);
    }
    return ft_json_fail_type(in, "BertNormalizer, NFC, Prepend or Replace");
}

ft_status ft_json_read_normalizer(ft_normalizer *normalizer, const ft_json_reader *file)
{
    return ft_json_read_pipeline(file, "normalizer", "normalizers", read_normalizer_step,
                                 normalizer);
}

/* ---- Pre-tokenizer -------------------------------------------------------------------------- */

/* GPT-2's split pattern, the default of ByteLevel. */
static const char gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static ft_status add_step(ft_pretokenizer *p, const ft_json_reader *in, ft_pretokenize_kind kind,
                          ft_pretokenize_step **step)
{
    *step = NULL;
    if (p->count == FT_PRETOKENIZE_MAX_STEPS)
        return ft_json_fail_type(in, "fewer steps");
    *step = &p->step[p->count++];
    (*step)->kind = kind;
    return FT_OK;
}

static ft_status add_character(ft_pretokenizer *p, const ft_json_reader *in,
                               ft_pretokenize_kind kind, const char *character,
                               ft_pretokenize_step **step)
{
    FT_TRY(add_step(p, in, kind, step));
    snprintf((*step)->character, sizeof(*step)->character, "%s", character);
    return FT_OK;
}

static ft_status compile(ft_regex *regex, const ft_json_reader *in, const char *key,
                         const char *text)
{
    char expected[FT_REGEX_ERROR_SIZE];
    bool literal = strcmp(key, "String") == 0;
    ft_status rc =
        literal ? ft_regex_literal(regex, text, expected) : ft_regex_compile(regex, text, expected);
    if (rc == FT_ENOMEM)
        return ft_json_fail_no_memory(in);
    return rc == FT_OK ? rc
                       : ft_json_fail_value(in, rc, key, json_object_get(in->json, key), expected);
}

static ft_status read_byte_level(ft_pretokenizer *p, const ft_json_reader *in)
{
    bool prefix, use_split;
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "add_prefix_space", "trim_offsets", "use_regex"));
    FT_TRY(ft_json_read_bool(in, "add_prefix_space", &prefix));
    FT_TRY(ft_json_read_optional_bool(in, "use_regex", true, &use_split));
    if (prefix)
        FT_TRY(add_character(p, in, FT_PRETOKENIZE_PREPEND, " ", &step));
    if (use_split) {
        FT_TRY(add_step(p, in, FT_PRETOKENIZE_REGEX, &step));
        FT_TRY(compile(&step->regex, in, "use_regex", gpt2_pattern));
    }
    return add_step(p, in, FT_PRETOKENIZE_BYTE_LEVEL, &step);
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
    ft_json_reader pattern;
    const char *text;
    ft_pretokenize_step *step;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "pattern", "behavior", "invert"));
    FT_TRY(add_step(p, in, FT_PRETOKENIZE_REGEX, &step));
    FT_TRY(read_behavior(&step->split, in));
    FT_TRY(ft_json_read_bool(in, "invert", &step->invert));
    FT_TRY(ft_json_read_object(in, "pattern", &pattern));
    FT_TRY(FT_JSON_REJECT_UNKNOWN(&pattern, "Regex", "String"));
    const char *key = json_object_get(pattern.json, "String") != NULL ? "String" : "Regex";
    FT_TRY(ft_json_read_string(&pattern, key, &text));
    return compile(&step->regex, &pattern, key, text);
}

/* A string of exactly one character. */
static ft_status read_replacement(const ft_json_reader *in, const char **text)
{
    FT_TRY(ft_json_read_string(in, "replacement", text));
    const char *next = *text;
    if (next[0] != '\0')
        ft_utf8_decode_next(&next);
    if (next > *text && *next == '\0')
        return FT_OK;
    return ft_json_fail_member(in, "replacement", "one character");
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
    FT_TRY(read_replacement(in, &character));
    FT_TRY(read_scheme(in, &never, &first));
    FT_TRY(ft_json_read_optional_bool(in, "split", true, &use_split));
    FT_TRY(add_character(p, in, FT_PRETOKENIZE_REPLACE_SPACES, character, &step));
    if (!never) {
        FT_TRY(add_character(p, in, FT_PRETOKENIZE_PREPEND, character, &step));
        step->only_first = first;
    }
    if (!use_split)
        return FT_OK;
    FT_TRY(add_character(p, in, FT_PRETOKENIZE_CHAR, character, &step));
    step->split = FT_SPLIT_MERGED_WITH_NEXT;
    return FT_OK;
}

static ft_status read_digits(ft_pretokenizer *p, const ft_json_reader *in)
{
    ft_pretokenize_step *step;
    bool individual;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "individual_digits"));
    FT_TRY(ft_json_read_bool(in, "individual_digits", &individual));
    FT_TRY(add_step(p, in, FT_PRETOKENIZE_DIGITS, &step));
    step->split = individual ? FT_SPLIT_ISOLATED : FT_SPLIT_CONTIGUOUS;
    return FT_OK;
}

static ft_status read_pretokenizer_step(void *to, const ft_json_reader *in)
{
    ft_pretokenizer *p = to;
    ft_pretokenize_step *step;
    const char *type;
    FT_TRY(ft_json_read_string(in, "type", &type));
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(p, in);
    if (strcmp(type, "Split") == 0)
        return read_split(p, in);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(p, in);
    if (strcmp(type, "Digits") == 0)
        return read_digits(p, in);
    if (strcmp(type, "BertPreTokenizer") != 0)
        return ft_json_fail_type(in, "BertPreTokenizer, ByteLevel, Split, Metaspace or Digits");
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type"));
    return add_step(p, in, FT_PRETOKENIZE_BERT, &step);
}

ft_status ft_json_read_pretokenizer(ft_pretokenizer *pretokenizer, const ft_json_reader *file)
{
    return ft_json_read_pipeline(file, "pre_tokenizer", "pretokenizers", read_pretokenizer_step,
                                 pretokenizer);
}
