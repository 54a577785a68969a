/*
 * normalizer_json.c - parse the section "normalizer".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/normalizers/normalizer.h"

#include "runtime/base/base64.h"
#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/normalizers/characters.h"
#include "runtime/text/normalizers/replace.h"
#include "runtime/text/unicode/regex_json.h"

#include <stdlib.h>
#include <string.h>

/* Maximum length in bytes of a string that steps insert. */
enum { MAX_CONTENT = 64 };

/* ---- The functions of the steps ------------------------------------------------------------- */

static ft_status result(bool ok, const ft_aligned_buf *out)
{
    return ok ? FT_OK : out->text.overflowed ? FT_ELIMIT : FT_ENOMEM;
}

/* Without sources BERT's steps run in one pass. */
static ft_status apply_bert(const ft_normalizer_step *step, ft_normalizer_run *run,
                            const ft_aligned_text *in, ft_aligned_buf *out)
{
    if (run->tracks)
        return result(ft_bert_normalize_aligned(&step->bert, in, out), out);
    return result(ft_bert_normalize(&step->bert, in->text, in->bytes, &out->text) == FT_OK, out);
}

static ft_status apply_form(const ft_normalizer_step *step, ft_normalizer_run *run,
                            const ft_aligned_text *in, ft_aligned_buf *out)
{
    (void) run;
    return result(ft_normalize_form(step->form, in, out), out);
}

static ft_status apply_charsmap(const ft_normalizer_step *step, ft_normalizer_run *run,
                                const ft_aligned_text *in, ft_aligned_buf *out)
{
    (void) run;
    return result(ft_charsmap_normalize(&step->charsmap, in, out), out);
}

static ft_status apply_lowercase(const ft_normalizer_step *step, ft_normalizer_run *run,
                                 const ft_aligned_text *in, ft_aligned_buf *out)
{
    (void) step, (void) run;
    return result(ft_normalize_lowercase(in, out), out);
}

static ft_status apply_strip_accents(const ft_normalizer_step *step, ft_normalizer_run *run,
                                     const ft_aligned_text *in, ft_aligned_buf *out)
{
    (void) step, (void) run;
    return result(ft_normalize_strip_accents(in, out), out);
}

static ft_status apply_nmt(const ft_normalizer_step *step, ft_normalizer_run *run,
                           const ft_aligned_text *in, ft_aligned_buf *out)
{
    (void) step, (void) run;
    return result(ft_normalize_nmt(in, out), out);
}

static ft_status apply_bytes(const ft_normalizer_step *step, ft_normalizer_run *run,
                             const ft_aligned_text *in, ft_aligned_buf *out)
{
    (void) step, (void) run;
    return result(ft_normalize_bytes(in, out), out);
}

static ft_status apply_strip(const ft_normalizer_step *step, ft_normalizer_run *run,
                             const ft_aligned_text *in, ft_aligned_buf *out)
{
    (void) run;
    return result(ft_normalize_strip(in, step->strip_left, step->strip_right, out), out);
}

static ft_status apply_prepend(const ft_normalizer_step *step, ft_normalizer_run *run,
                               const ft_aligned_text *in, ft_aligned_buf *out)
{
    (void) run;
    return result(ft_normalize_prepend(in, step->content, out), out);
}

/* All patterns of a text share one budget. */
static ft_status apply_replace(const ft_normalizer_step *step, ft_normalizer_run *run,
                               const ft_aligned_text *in, ft_aligned_buf *out)
{
    if (!run->has_regex) {
        run->has_regex = true;
        FT_TRY(ft_regex_workspace_init(&run->regex, run->bytes, 1));
    }
    return ft_normalize_replace(in, &step->regex, &run->regex, step->content, out);
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static ft_status read_nothing(ft_normalizer_step *step, const ft_json_reader *in)
{
    (void) step;
    return FT_JSON_REJECT_UNKNOWN(in, "type");
}

/* ByteLevel has parameters that only its other uses read. */
static ft_status read_bytes(ft_normalizer_step *step, const ft_json_reader *in)
{
    (void) step;
    return FT_JSON_REJECT_UNKNOWN(in, "type", "add_prefix_space", "trim_offsets", "use_regex");
}

static ft_status read_bert(ft_normalizer_step *step, const ft_json_reader *in)
{
    ft_bert_normalizer *bert = &step->bert;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "clean_text", "handle_chinese_chars", "strip_accents",
                                  "lowercase"));
    FT_TRY(ft_json_read_bool(in, "clean_text", &bert->clean_text));
    FT_TRY(ft_json_read_bool(in, "handle_chinese_chars", &bert->handle_chinese_chars));
    FT_TRY(ft_json_read_bool(in, "lowercase", &bert->lowercase));
    return ft_json_read_optional_bool(in, "strip_accents", bert->lowercase, &bert->strip_accents);
}

static ft_status read_form(ft_normalizer_step *step, const ft_json_reader *in)
{
    const char *type = json_string_value(json_object_get(in->json, "type"));
    step->form =
        (ft_normal_form){ .composed = type[strlen(type) - 1] == 'C', .compatible = type[2] == 'K' };
    return FT_JSON_REJECT_UNKNOWN(in, "type");
}

static ft_status read_strip(ft_normalizer_step *step, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "strip_left", "strip_right"));
    FT_TRY(ft_json_read_bool(in, "strip_left", &step->strip_left));
    return ft_json_read_bool(in, "strip_right", &step->strip_right);
}

static ft_status read_content(ft_normalizer_step *step, const ft_json_reader *in, const char *key)
{
    const char *text;
    FT_TRY(ft_json_read_string(in, key, &text));
    if (strlen(text) > MAX_CONTENT)
        return ft_json_fail_value(in, FT_EUNSUPPORTED, key, json_object_get(in->json, key),
                                  "64 bytes at most");
    step->content = ft_strdup(text);
    return step->content == NULL ? ft_json_fail_no_memory(in) : FT_OK;
}

static ft_status read_prepend(ft_normalizer_step *step, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "prepend"));
    return read_content(step, in, "prepend");
}

static ft_status read_replace(ft_normalizer_step *step, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "pattern", "content"));
    FT_TRY(read_content(step, in, "content"));
    return ft_regex_read_json(&step->regex, in);
}

static ft_status decode_charsmap(ft_normalizer_step *step, const ft_json_reader *in,
                                 const char *text)
{
    char why[FT_CHARSMAP_ERROR_SIZE];
    size_t bytes;
    unsigned char *blob = ft_base64_decode(text, strlen(text), &bytes);
    if (blob == NULL)
        return ft_json_fail(in, FT_EFORMAT, "%sprecompiled_charsmap: expected base64", in->path);
    ft_status status = ft_charsmap_parse(&step->charsmap, blob, bytes, why);
    free(blob);
    if (status == FT_EFORMAT)
        return ft_json_fail(in, status, "%sprecompiled_charsmap: found %zu bytes, expected %s",
                            in->path, bytes, why);
    return status == FT_OK ? FT_OK : ft_json_fail_no_memory(in);
}

/* SentencePiece models without a table have null. */
static ft_status read_charsmap(ft_normalizer_step *step, const ft_json_reader *in)
{
    const char *text = "";
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "precompiled_charsmap"));
    if (ft_json_get(in, "precompiled_charsmap") != NULL)
        FT_TRY(ft_json_read_string(in, "precompiled_charsmap", &text));
    return decode_charsmap(step, in, text);
}

/* ---- The section ----------------------------------------------------------------------------- */

static const struct {
    const char *type;
    ft_normalize_fn apply;
    ft_status (*read)(ft_normalizer_step *step, const ft_json_reader *in);
} kinds[] = {
    { "BertNormalizer", apply_bert, read_bert },
    { "ByteLevel", apply_bytes, read_bytes },
    { "Lowercase", apply_lowercase, read_nothing },
    { "NFC", apply_form, read_form },
    { "NFD", apply_form, read_form },
    { "NFKC", apply_form, read_form },
    { "NFKD", apply_form, read_form },
    { "Nmt", apply_nmt, read_nothing },
    { "Precompiled", apply_charsmap, read_charsmap },
    { "Prepend", apply_prepend, read_prepend },
    { "Replace", apply_replace, read_replace },
    { "Strip", apply_strip, read_strip },
    { "StripAccents", apply_strip_accents, read_nothing },
};

static ft_status add_step(ft_normalizer *normalizer, const ft_json_reader *in,
                          ft_normalizer_step **step)
{
    size_t count = normalizer->count;
    if (count == FT_NORMALIZER_MAX_STEPS)
        return ft_json_fail_type(in, "32 steps at most");
    ft_normalizer_step *grown = realloc(normalizer->step, (count + 1) * sizeof *grown);
    if (grown == NULL)
        return ft_json_fail_no_memory(in);
    normalizer->step = grown;
    *step = &grown[normalizer->count++];
    **step = (ft_normalizer_step){ 0 };
    return FT_OK;
}

static ft_status read_step(void *to, const ft_json_reader *in)
{
    ft_normalizer *normalizer = to;
    ft_normalizer_step *step = NULL;
    const char *type;
    FT_TRY(ft_json_read_string(in, "type", &type));
    for (size_t i = 0; i < FT_COUNT(kinds); i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        FT_TRY(add_step(normalizer, in, &step));
        step->apply = kinds[i].apply;
        return kinds[i].read(step, in);
    }
    return ft_json_fail_type(in, "BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, "
                                 "Precompiled, Prepend, Replace, Strip or StripAccents");
}

ft_status ft_normalizer_read_json(ft_normalizer *out, const ft_json_reader *file)
{
    return ft_json_read_pipeline(file, "normalizer", "normalizers", read_step, out);
}
