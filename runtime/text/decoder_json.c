/*
 * decoder_json.c - parse the section "decoder".
 *
 * It matters only for decoding, so an unsupported decoder does not prevent opening a tokenizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_json.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <string.h>

/*
 * The steps that a sequence may have, in this order: each processes the output of the previous one.
 */
typedef enum { NOTHING, REPLACE, BYTE_FALLBACK, FUSE, STRIP, ALONE } stage;

typedef struct {
    ft_decoding *decoding;
    stage last;
} decoder;

static ft_status read_replace(ft_decoding *d, const ft_section *in)
{
    if (d->replaces == FT_DECODING_MAX_REPLACE)
        return ft_section_wrong_type(in, "4 replacements at most");
    size_t at = d->replaces++;
    return ft_json_read_replace(in, &d->replace[at].pattern, &d->replace[at].content);
}

static ft_status read_strip(ft_decoding *d, const ft_section *in)
{
    int64_t stop;
    FT_TRY(FT_SECTION_ONLY(in, "type", "content", "start", "stop"));
    FT_TRY(
        ft_section_integer(in, "start", json_object_get(in->json, "start"), INT64_MAX, &d->strip));
    FT_TRY(ft_section_integer(in, "stop", json_object_get(in->json, "stop"), INT64_MAX, &stop));
    if (stop != 0)
        return ft_section_wrong(in, FT_EUNSUPPORTED, "stop", json_object_get(in->json, "stop"),
                                "0");
    return ft_json_copy_string(in, "content", 4, &d->blank);
}

static ft_status read_metaspace(ft_decoding *d, const ft_section *in)
{
    const char *scheme = "always";
    FT_TRY(FT_SECTION_ONLY(in, "type", "replacement", "prepend_scheme", "add_prefix_space", "split",
                           "str_rep"));
    if (json_object_get(in->json, "prepend_scheme") != NULL)
        FT_TRY(ft_section_string(in, "prepend_scheme", &scheme));
    d->kind = FT_DECODING_METASPACE;
    d->keep_first = strcmp(scheme, "never") == 0;
    return ft_json_copy_string(in, "replacement", 4, &d->blank);
}

static ft_status read_wordpiece(ft_decoding *d, const ft_section *in)
{
    FT_TRY(FT_SECTION_ONLY(in, "type", "prefix", "cleanup"));
    FT_TRY(ft_section_bool(in, "cleanup", &d->cleanup));
    d->kind = FT_DECODING_WORDPIECE;
    return ft_json_copy_string(in, "prefix", FT_JSON_CONTENT, &d->prefix);
}

static ft_status read_step_of(ft_decoding *d, stage which, const ft_section *in)
{
    d->kind = FT_DECODING_STEPS;
    switch (which) {
    case REPLACE:
        return read_replace(d, in);
    case STRIP:
        return read_strip(d, in);
    case BYTE_FALLBACK:
        d->bytes = true;
        break;
    default:
        d->fuse = true;
    }
    return FT_SECTION_ONLY(in, "type");
}

static ft_status read_alone(ft_decoding *d, const char *type, const ft_section *in)
{
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(d, in);
    if (strcmp(type, "WordPiece") == 0)
        return read_wordpiece(d, in);
    d->kind = FT_DECODING_BYTES;
    return FT_SECTION_ONLY(in, "type", "add_prefix_space", "trim_offsets", "use_regex");
}

static ft_status read_step(void *to, const ft_section *in)
{
    static const struct {
        const char *type;
        stage stage;
    } known[] = {
        { "Replace", REPLACE }, { "ByteFallback", BYTE_FALLBACK },
        { "Fuse", FUSE },       { "Strip", STRIP },
        { "ByteLevel", ALONE }, { "Metaspace", ALONE },
        { "WordPiece", ALONE },
    };
    decoder *d = to;
    const char *type;
    size_t i = 0;
    FT_TRY(ft_section_string(in, "type", &type));
    while (i < FT_COUNT(known) && strcmp(known[i].type, type) != 0)
        i++;
    if (i == FT_COUNT(known))
        return ft_section_wrong_type(
            in, "ByteLevel, Metaspace, WordPiece, Replace, ByteFallback, Fuse or "
                "Strip");
    stage which = known[i].stage, last = d->last;
    d->last = which;
    if (which < last || (which == last && which != REPLACE) || (which == ALONE && last != NOTHING))
        return ft_section_wrong_type(
            in, "Replace, ByteFallback, Fuse and Strip in this order, or one alone");
    return which == ALONE ? read_alone(d->decoding, type, in)
                          : read_step_of(d->decoding, which, in);
}

ft_status ft_json_read_decoder(ft_decoding *decoding, const ft_section *file)
{
    ft_error problem = { 0 };
    ft_section lenient = *file;
    decoder d = { .decoding = decoding };
    lenient.err = &problem;
    ft_status rc = ft_section_steps(&lenient, "decoder", "decoders", read_step, &d);
    if (rc == FT_ENOMEM)
        return ft_section_no_memory(file);
    if (rc != FT_OK) {
        decoding->kind = FT_DECODING_UNKNOWN;
        decoding->problem = problem;
    }
    return FT_OK;
}
