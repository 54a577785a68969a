/*
 * targets-t.c - translators encode sources and targets as the text_target of transformers does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_files.h"
#include "runtime/text/translator.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden.h"
#include "tests/lib/golden_rows.h"
#include "tests/lib/tokenizer_sources.h"

#include <string.h>

static char folder[FOLDER_PATH];

/* ---- Tokenizers ----------------------------------------------------------------------------- */

/* Writes the files of a tokenizer of tokenizer-sources.jsonl. */
static void fill_folder(const char *wanted)
{
    FILE *file = open_golden("tests/golden/tokenizer-sources.jsonl");
    for (json_t *row; (row = read_row(file)) != NULL; json_decref(row))
        if (strcmp(json_string_value(json_array_get(row, 0)), wanted) == 0)
            write_tokenizer_files(folder, json_array_get(row, 1));
    fclose(file);
}

static ft_translator open_translator(const json_t *row)
{
    static const ft_tokenizer_hints no_hints = { NULL, NULL };
    const ft_language_pair languages = { json_string_value(json_object_get(row, "source")),
                                         json_string_value(json_object_get(row, "target")), true };
    ft_tokenizer_files files;
    ft_tokenizer *source;
    ft_translator translator;
    ft_error err;
    fill_folder(json_string_value(json_object_get(row, "name")));
    if (ft_tokenizer_files_read(&files, folder, &no_hints, &err) != FT_OK ||
        ft_tokenizer_parse(&source, "tokenizer.json", files.tokenizer.text, files.tokenizer.bytes,
                           &err) != FT_OK)
        bail_out("%s", err.text);
    const ft_translator_files others = {
        .path = "translator",
        .target = { files.target.text, files.target.bytes },
        .languages = { files.languages.text, files.languages.bytes },
    };
    if (ft_translator_init(&translator, source, &others, &languages, &err) != FT_OK)
        bail_out("%s", err.text);
    ft_tokenizer_files_fini(&files);
    folder_remove(folder);
    folder_make(folder);
    return translator;
}

/* ---- Ids ------------------------------------------------------------------------------------ */

static bool same_ids(const ft_encoding *found, const json_t *wanted)
{
    bool same = found->count == json_array_size(wanted);
    for (size_t i = 0; same && i < found->count; i++)
        same = found->ids[i] == json_integer_value(json_array_get(wanted, i));
    return same;
}

static bool encodes_source(const ft_translator *translator, const json_t *pair)
{
    const json_t *text = json_array_get(pair, 0);
    ft_encoding *found;
    ft_error err;
    if (ft_tokenizer_encode_text(translator->source, json_string_value(text),
                                 json_string_length(text), NULL, &found, &err) != FT_OK)
        bail_out("%s", err.text);
    bool same = same_ids(found, json_array_get(pair, 2));
    ft_encoding_free(found);
    return same;
}

static bool encodes_target(const ft_translator *translator, const json_t *pair)
{
    const json_t *text = json_array_get(pair, 1);
    ft_encoding *found;
    ft_error err;
    if (ft_tokenizer_encode_target(translator->target, json_string_value(text),
                                   json_string_length(text), 0, &found, &err) != FT_OK)
        bail_out("%s", err.text);
    bool same = same_ids(found, json_array_get(pair, 3));
    ft_encoding_free(found);
    return same;
}

static void test_translator(const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    const json_t *pairs = json_object_get(row, "pairs");
    ft_translator translator = open_translator(row);
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        ok(encodes_source(&translator, pair),
           "%s encodes source %zu to the input_ids of transformers", name, i + 1);
        ok(encodes_target(&translator, pair), "%s encodes target %zu to the labels of transformers",
           name, i + 1);
    }
    ft_translator_close(&translator);
}

/* Tokens are left out from the end of the text; those around it stay. */
static void test_truncation(const json_t *row)
{
    ft_translator translator = open_translator(row);
    const json_t *labels = json_array_get(json_array_get(json_object_get(row, "pairs"), 0), 3);
    size_t count = json_array_size(labels);
    ft_encoding *found;
    ft_error err = { .text = "" };
    if (ft_tokenizer_encode_target(translator.target, "the world is", 12, 4, &found, &err) != FT_OK)
        bail_out("%s", err.text);
    ok(found->truncated && found->count == 4 &&
           found->ids[0] == json_integer_value(json_array_get(labels, 0)) &&
           found->ids[2] == json_integer_value(json_array_get(labels, 2)) &&
           found->ids[3] == json_integer_value(json_array_get(labels, count - 1)),
       "a truncated target keeps its language and its end");
    ft_encoding_free(found);
    is_int(ft_tokenizer_encode_target(translator.target, "a", 1, 1, &found, &err), FT_ELIMIT,
           "a maximum length without room for the special tokens is refused");
    ft_translator_close(&translator);
}

int main(void)
{
    json_t *golden = golden_json("targets.json");
    folder_make(folder);
    for (size_t i = 0; i < json_array_size(golden); i++)
        test_translator(json_array_get(golden, i));
    test_truncation(json_array_get(golden, 0));
    folder_remove(folder);
    json_decref(golden);
    return done_testing();
}
