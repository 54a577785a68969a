/*
 * decoder_json.c - parse the section "decoder".
 *
 * It matters only for decoding, so an unsupported decoder does not prevent opening a tokenizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/decoders/decode.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/decoders/json_fields.h"

#include <string.h>

/*
 * The steps that a sequence may have, in this order: each processes the output of the previous one.
 */
typedef enum { NONE, REPLACE, BYTE_FALLBACK, FUSE, STRIP, STANDALONE } decoder_step;

typedef struct {
    ft_decoder_config *decoder_config;
    decoder_step previous;
} decoder;

static ft_status read_replace(ft_decoder_config *d, const ft_json_reader *in)
{
    if (d->n_replace == FT_DECODER_MAX_REPLACE)
        return ft_json_fail_type(in, "4 replacements at most");
    size_t at = d->n_replace++;
    return ft_json_read_replace(in, &d->replace[at].pattern, &d->replace[at].content);
}

static ft_status read_strip(ft_decoder_config *d, const ft_json_reader *in)
{
    int64_t stop;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "content", "start", "stop"));
    FT_TRY(ft_json_read_integer(in, "start", 0, INT64_MAX, &d->max_strip));
    FT_TRY(ft_json_read_integer(in, "stop", 0, INT64_MAX, &stop));
    if (stop != 0)
        return ft_json_fail_value(in, FT_EUNSUPPORTED, "stop", json_object_get(in->json, "stop"),
                                  "0");
    return ft_json_copy_string(in, "content", 4, &d->space_text);
}

static ft_status read_metaspace(ft_decoder_config *d, const ft_json_reader *in)
{
    const char *scheme = "always";
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "replacement", "prepend_scheme", "add_prefix_space",
                                  "split", "str_rep"));
    if (json_object_get(in->json, "prepend_scheme") != NULL)
        FT_TRY(ft_json_read_string(in, "prepend_scheme", &scheme));
    d->kind = FT_DECODER_METASPACE;
    d->keep_first_space = strcmp(scheme, "never") == 0;
    return ft_json_copy_string(in, "replacement", 4, &d->space_text);
}

static ft_status read_wordpiece(ft_decoder_config *d, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "prefix", "cleanup"));
    FT_TRY(ft_json_read_bool(in, "cleanup", &d->cleanup));
    d->kind = FT_DECODER_WORDPIECE;
    return ft_json_copy_string(in, "prefix", FT_JSON_MAX_CONTENT, &d->prefix);
}

static ft_status read_bpe(ft_decoder_config *d, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "suffix"));
    d->kind = FT_DECODER_BPE;
    return ft_json_copy_string(in, "suffix", FT_JSON_MAX_CONTENT, &d->space_text);
}

static ft_status read_sequence_step(ft_decoder_config *d, decoder_step current,
                                    const ft_json_reader *in)
{
    d->kind = FT_DECODER_SEQUENCE;
    switch (current) {
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
    return FT_JSON_REJECT_UNKNOWN(in, "type");
}

static ft_status read_standalone(ft_decoder_config *d, const char *type, const ft_json_reader *in)
{
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(d, in);
    if (strcmp(type, "WordPiece") == 0)
        return read_wordpiece(d, in);
    if (strcmp(type, "BPEDecoder") == 0)
        return read_bpe(d, in);
    d->kind = FT_DECODER_BYTE_LEVEL;
    return FT_JSON_REJECT_UNKNOWN(in, "type", "add_prefix_space", "trim_offsets", "use_regex");
}

static ft_status read_step(void *to, const ft_json_reader *in)
{
    static const struct {
        const char *type;
        decoder_step decoder_step;
    } known[] = {
        { "Replace", REPLACE },      { "ByteFallback", BYTE_FALLBACK }, { "Fuse", FUSE },
        { "Strip", STRIP },          { "ByteLevel", STANDALONE },       { "Metaspace", STANDALONE },
        { "WordPiece", STANDALONE }, { "BPEDecoder", STANDALONE },
    };
    decoder *d = to;
    const char *type;
    size_t i = 0;
    FT_TRY(ft_json_read_string(in, "type", &type));
    while (i < FT_COUNT(known) && strcmp(known[i].type, type) != 0)
        i++;
    if (i == FT_COUNT(known))
        return ft_json_fail_type(in, "BPEDecoder, ByteLevel, Metaspace, WordPiece, Replace, "
                                     "ByteFallback, Fuse or Strip");
    decoder_step current = known[i].decoder_step, previous = d->previous;
    d->previous = current;
    if (current < previous || (current == previous && current != REPLACE) ||
        (current == STANDALONE && previous != NONE))
        return ft_json_fail_type(
            in, "Replace, ByteFallback, Fuse and Strip in this order, or one alone");
    return current == STANDALONE ? read_standalone(d->decoder_config, type, in)
                                 : read_sequence_step(d->decoder_config, current, in);
}

ft_status ft_decoder_read_json(ft_decoder_config *decoder_config, const ft_json_reader *file)
{
    ft_error problem = { 0 };
    ft_json_reader lenient = *file;
    decoder d = { .decoder_config = decoder_config };
    lenient.err = &problem;
    ft_status rc = ft_json_read_pipeline(&lenient, "decoder", "decoders", read_step, &d);
    if (rc == FT_ENOMEM)
        return ft_json_fail_no_memory(file);
    if (rc != FT_OK) {
        decoder_config->kind = FT_DECODER_UNSUPPORTED;
        decoder_config->problem = problem;
    }
    return FT_OK;
}
