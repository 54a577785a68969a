/*
 * post_processor_json.c - parse the section "post_processor".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/post_processors/post_processor.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <string.h>

size_t ft_template_special_tokens(const ft_template *template)
{
    size_t count = 0;
    for (size_t i = 0; i < template->count; i++)
        count += template->piece[i].kind == FT_TEMPLATE_SPECIAL;
    return count;
}

static ft_status add(ft_template *template, const ft_json_reader *in, ft_template_piece piece)
{
    if (template->count == FT_TEMPLATE_MAX_PIECES)
        return ft_json_fail(in, FT_EUNSUPPORTED, "%stemplate: more than %d pieces", in->path,
                            FT_TEMPLATE_MAX_PIECES);
    template->piece[template->count++] = piece;
    return FT_OK;
}

static ft_status read_id(const ft_json_reader *in, const char *key, const json_t *value,
                         int32_t *id)
{
    return ft_json_to_int32(in, key, value, 0, INT32_MAX, id);
}

/* ---- BertProcessing and RobertaProcessing --------------------------------------------------- */

/* ["[SEP]", 3]: only the id is used. */
static ft_status read_special(const ft_json_reader *in, const char *key, int32_t *id)
{
    json_t *pair;
    FT_TRY(ft_json_read_array(in, key, &pair));
    return read_id(in, key, json_array_get(pair, 1), id);
}

static ft_template template_of(const ft_template_piece *piece, size_t count)
{
    ft_template out = { .count = count };
    memcpy(out.piece, piece, count * sizeof *piece);
    return out;
}

static ft_status read_bert(ft_post_processor *p, const ft_json_reader *in)
{
    int32_t cls, sep;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "sep", "cls"));
    FT_TRY(read_special(in, "cls", &cls));
    FT_TRY(read_special(in, "sep", &sep));
    const ft_template_piece pieces[] = {
        { FT_TEMPLATE_SPECIAL, cls, 0 }, { FT_TEMPLATE_TEXT, 0, 0 },
        { FT_TEMPLATE_SPECIAL, sep, 0 }, { FT_TEMPLATE_PAIR, 0, 1 },
        { FT_TEMPLATE_SPECIAL, sep, 1 },
    };
    p->single = template_of(pieces, 3);
    p->pair = template_of(pieces, 5);
    return FT_OK;
}

static ft_status read_roberta(ft_post_processor *p, const ft_json_reader *in)
{
    int32_t cls, sep;
    bool adds_prefix;
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "sep", "cls", "trim_offsets", "add_prefix_space"));
    FT_TRY(read_special(in, "cls", &cls));
    FT_TRY(read_special(in, "sep", &sep));
    FT_TRY(ft_json_read_optional_bool(in, "trim_offsets", true, &p->trims_offsets));
    FT_TRY(ft_json_read_optional_bool(in, "add_prefix_space", true, &adds_prefix));
    p->keeps_prefix_space = adds_prefix;
    const ft_template_piece pieces[] = {
        { FT_TEMPLATE_SPECIAL, cls, 0 }, { FT_TEMPLATE_TEXT, 0, 0 },
        { FT_TEMPLATE_SPECIAL, sep, 0 }, { FT_TEMPLATE_SPECIAL, sep, 0 },
        { FT_TEMPLATE_PAIR, 0, 0 },      { FT_TEMPLATE_SPECIAL, sep, 0 },
    };
    p->single = template_of(pieces, 3);
    p->pair = template_of(pieces, 6);
    return FT_OK;
}

/* ---- TemplateProcessing ---------------------------------------------------------------------- */

/* The ids of a special token are in a table next to the template. */
static ft_status add_special(ft_template *out, const ft_json_reader *in, const char *name,
                             int32_t type_id)
{
    ft_json_reader table, entry;
    json_t *list, *value;
    size_t i;
    FT_TRY(ft_json_read_object(in, "special_tokens", &table));
    FT_TRY(ft_json_read_object(&table, name, &entry));
    FT_TRY(ft_json_read_array(&entry, "ids", &list));
    json_array_foreach(list, i, value)
    {
        ft_template_piece piece = { FT_TEMPLATE_SPECIAL, 0, type_id };
        FT_TRY(read_id(&entry, "ids", value, &piece.id));
        FT_TRY(add(out, &entry, piece));
    }
    return FT_OK;
}

/* {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, or {"Sequence": {"id": "A", "type_id": 0}}. */
static ft_status read_piece(ft_template *out, const ft_json_reader *in, const ft_json_reader *piece)
{
    ft_json_reader body;
    const char *id;
    int64_t type_id;
    bool is_text = json_object_get(piece->json, "Sequence") != NULL;
    const char *kind = is_text ? "Sequence" : "SpecialToken";
    FT_TRY(ft_json_read_object(piece, kind, &body));
    FT_TRY(FT_JSON_REJECT_UNKNOWN(piece, kind));
    FT_TRY(FT_JSON_REJECT_UNKNOWN(&body, "id", "type_id"));
    FT_TRY(ft_json_read_string(&body, "id", &id));
    FT_TRY(ft_json_read_integer(&body, "type_id", 0, INT32_MAX, &type_id));
    if (!is_text)
        return add_special(out, in, id, (int32_t) type_id);
    if (strcmp(id, "A") != 0 && strcmp(id, "B") != 0)
        return ft_json_fail_value(&body, FT_EFORMAT, "id", json_object_get(body.json, "id"),
                                  "\"A\" or \"B\"");
    return add(out, piece,
               (ft_template_piece){ *id == 'A' ? FT_TEMPLATE_TEXT : FT_TEMPLATE_PAIR, 0,
                                    (int32_t) type_id });
}

static size_t count_kind(const ft_template *template, ft_template_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < template->count; i++)
        count += template->piece[i].kind == kind;
    return count;
}

static ft_status read_pieces(ft_template *out, const ft_json_reader *in, const char *key,
                             size_t pairs, const char *expected)
{
    json_t *list;
    *out = (ft_template){ .count = 0 };
    FT_TRY(ft_json_read_array(in, key, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        ft_json_reader piece = ft_json_read_element(in, key, i);
        FT_TRY(read_piece(out, in, &piece));
    }
    if (count_kind(out, FT_TEMPLATE_TEXT) == 1 && count_kind(out, FT_TEMPLATE_PAIR) == pairs)
        return FT_OK;
    return ft_json_fail_value(in, FT_EUNSUPPORTED, key, list, expected);
}

/* Old files have an empty template for pairs, or none. */
static ft_status read_template(ft_post_processor *p, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "single", "pair", "special_tokens"));
    FT_TRY(read_pieces(&p->single, in, "single", 0, "a template with the sequence A once"));
    p->pair = (ft_template){ .count = 0 };
    if (json_array_size(ft_json_get(in, "pair")) == 0)
        return FT_OK;
    return read_pieces(&p->pair, in, "pair", 1, "a template with the sequences A and B once each");
}

/* ---- The section ----------------------------------------------------------------------------- */

static ft_status read_byte_level(ft_post_processor *p, const ft_json_reader *in)
{
    FT_TRY(FT_JSON_REJECT_UNKNOWN(in, "type", "add_prefix_space", "trim_offsets", "use_regex"));
    FT_TRY(ft_json_read_optional_bool(in, "trim_offsets", true, &p->trims_offsets));
    return ft_json_read_optional_bool(in, "add_prefix_space", true, &p->keeps_prefix_space);
}

static const struct {
    const char *type;
    ft_status (*read)(ft_post_processor *p, const ft_json_reader *in);
    bool adds_tokens;
} kinds[] = {
    { "BertProcessing", read_bert, true },
    { "ByteLevel", read_byte_level, false },
    { "RobertaProcessing", read_roberta, true },
    { "TemplateProcessing", read_template, true },
};

static ft_status read_step(void *to, const ft_json_reader *in)
{
    ft_post_processor *p = to;
    const char *type;
    FT_TRY(ft_json_read_string(in, "type", &type));
    for (size_t i = 0; i < FT_COUNT(kinds); i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        if (kinds[i].adds_tokens && p->adds_tokens)
            return ft_json_fail_type(in, "one step that adds tokens at most");
        p->adds_tokens |= kinds[i].adds_tokens;
        return kinds[i].read(p, in);
    }
    return ft_json_fail_type(in, "BertProcessing, ByteLevel, RobertaProcessing or "
                                 "TemplateProcessing");
}

ft_status ft_post_processor_read_json(ft_post_processor *out, const ft_json_reader *file)
{
    const ft_template_piece pieces[] = { { FT_TEMPLATE_TEXT, 0, 0 }, { FT_TEMPLATE_PAIR, 0, 1 } };
    *out = (ft_post_processor){ .single = template_of(pieces, 1), .pair = template_of(pieces, 2) };
    FT_TRY(ft_json_read_pipeline(file, "post_processor", "processors", read_step, out));
    out->target = out->single;
    return FT_OK;
}
