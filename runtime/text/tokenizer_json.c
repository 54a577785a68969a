/*
 * tokenizer_json.c - parse tokenizer.json section by section, and reject unknown fields.
 *
 * An ignored field could change every id, so objects may have no members other than those listed
 * here. Fields have no defaults, except those that old files lack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/text/tokenizer_json.h"

#include "runtime/error.h"
#include "runtime/mem.h"
#include "runtime/text/tables/model_json.h"

#include <stdlib.h>
#include <string.h>

/* ---- The file ----------------------------------------------------------------------------- */

static ft_status read_file(ft_tokenizer *t, const ft_json_reader *file,
                           const ft_tokenizer_tables *tables)
{
    if (!json_is_object(file->json))
        return ft_json_fail(file, FT_EFORMAT, "found a JSON array, expected a JSON object");
    FT_TRY(FT_JSON_REJECT_UNKNOWN(file, "version", "truncation", "padding", "added_tokens",
                                  "normalizer", "pre_tokenizer", "post_processor", "decoder",
                                  "model"));
    const json_t *version = json_object_get(file->json, "version");
    if (version != NULL && (!json_is_string(version) || strcmp(json_string_value(version), "1.0")))
        return ft_json_fail_value(file, FT_EUNSUPPORTED, "version", version, "\"1.0\"");
    FT_TRY(ft_json_read_model(&t->model, file, tables));
    FT_TRY(ft_normalizer_read_json(&t->normalizer, file));
    FT_TRY(ft_pretokenizer_read_json(&t->pretokenizer, file));
    FT_TRY(ft_json_read_added_tokens(t, file));
    FT_TRY(ft_post_processor_read_json(&t->post_processor, file));
    return ft_decoder_read_json(&t->decoder_config, file);
}

/* Parse everything except the tables; errors give positions in the whole file. */
static ft_status parse_rest(ft_json_reader *file, const ft_tokenizer_tables *tables)
{
    json_error_t why;
    ft_strbuf rest = { 0 };
    if (!ft_tokenizer_tables_strip(tables, &rest))
        return ft_json_fail_no_memory(file);
    file->json = ft_json_parse(rest.data, rest.bytes, JSON_REJECT_DUPLICATES, &why);
    ft_strbuf_fini(&rest);
    if (file->json != NULL)
        return FT_OK;
    if (why.line < 0) /* not a syntax error: jansson ran out of memory */
        return ft_json_fail_no_memory(file);
    int line, column;
    ft_tokenizer_tables_line_column(tables, (size_t) why.position, &line, &column);
    return ft_json_fail(file, FT_EFORMAT, "line %d, column %d: not valid JSON: %s", line, column,
                        why.text);
}

ft_status ft_tokenizer_read_json(ft_tokenizer *tokenizer, const char *name, const char *json,
                                 size_t bytes, ft_error *err)
{
    ft_json_reader file = { .file = name, .err = err };
    ft_tokenizer_tables tables = { .file = name, .json = json, .bytes = bytes };
    ft_tokenizer_tables_find(&tables);
    ft_status rc = parse_rest(&file, &tables);
    if (rc == FT_OK)
        rc = read_file(tokenizer, &file, &tables);
    json_decref(file.json);
    return rc;
}
