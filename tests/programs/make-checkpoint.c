/*
 * make-checkpoint.c - a small random checkpoint of any family, for shell tests.
 *
 *     make-checkpoint bert|roberta|distilbert|llama|translator|vit [VARIANT] FOLDER
 *
 * Variants are `hidden` and `classifier` of a bert, and those of tests/golden/FAMILY-variants.json,
 * which holds the results of transformers for them; the first is the default.  Their
 * reference.safetensors holds the same inputs; its labels are the class, or the next token after
 * each text, that transformers finds most likely.  Translators get a vocab.json, whose word N is
 * "wN"; vision models get a preprocessor_config.json with their image size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/models/translator_file.h"
#include "tests/lib/models/vit_file.h"
#include "tests/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(const json_t *config, const char *key)
{
    return (int) json_integer_value(json_object_get(config, key));
}

/* Writes a file to the folder; takes ownership of `json`. */
static void write_json(const tiny *t, const char *file, json_t *json)
{
    char *text = json_dumps(json, 0);
    if (text == NULL)
        bail_out("out of memory while writing %s", file);
    tiny_write_file(t, file, text);
    free(text);
    json_decref(json);
}

/* ---- Encoders ------------------------------------------------------------------------------- */

static bool make_encoder(tiny *t, const char *family, const char *variant)
{
    static const char *const names[] = {
        [TINY_BERT] = "bert",
        [TINY_ROBERTA] = "roberta",
        [TINY_DISTILBERT] = "distilbert",
    };
    bool classifier = variant != NULL && strcmp(variant, "classifier") == 0;
    if (variant != NULL && !classifier && strcmp(variant, "hidden") != 0)
        return false;
    if (classifier && strcmp(family, "bert") != 0)
        return false;
    for (size_t kind = 0; kind < FT_COUNT(names); kind++) {
        if (strcmp(family, names[kind]) != 0)
            continue;
        if (classifier)
            tiny_make_classifier(t);
        else
            tiny_make(t, (tiny_kind) kind, "");
        tiny_write(t);
        return true;
    }
    return false;
}

/* ---- Models with results of transformers -------------------------------------------------- */

/* The argmax of `count` numbers of a list, relative to `first`; the first one of equal values. */
static int32_t best_of(const json_t *list, size_t first, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (json_real_value(json_array_get(list, first + i)) >
            json_real_value(json_array_get(list, first + best)))
            best = i;
    return (int32_t) best;
}

static void write_reference(const tiny *t, const ft_named_tensor *tensors, size_t count)
{
    char path[TINY_FOLDER + 32];
    ft_error err;
    snprintf(path, sizeof path, "%s/reference.safetensors", t->folder);
    if (ft_safetensors_write(path, tensors, count, true, &err) != FT_OK)
        bail_out("%s", err.text);
}

/* Rows of token ids, padded on the right. */
typedef struct token_rows {
    size_t rows, cols;
    int32_t *id, *mask;
} token_rows;

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

static token_rows read_rows(const json_t *lists, int32_t padding)
{
    size_t i, k;
    json_t *id;
    token_rows r = { .rows = json_array_size(lists) };
    for (i = 0; i < r.rows; i++)
        r.cols = greater(r.cols, json_array_size(json_array_get(lists, i)));
    r.id = ft_calloc(r.rows * r.cols, sizeof *r.id);
    r.mask = ft_calloc(r.rows * r.cols, sizeof *r.mask);
    for (i = 0; i < r.rows * r.cols; i++)
        r.id[i] = padding;
    for (i = 0; i < r.rows; i++)
        json_array_foreach(json_array_get(lists, i), k, id)
        {
            r.id[i * r.cols + k] = (int32_t) json_integer_value(id);
            r.mask[i * r.cols + k] = 1;
        }
    return r;
}

static void free_rows(token_rows *r)
{
    free(r->id);
    free(r->mask);
}

static ft_named_tensor as_tensor(const char *name, const token_rows *r, int32_t *cells)
{
    return (ft_named_tensor){
        name, { FT_I32, FT_ROW, 2, { (int64_t) r->rows, (int64_t) r->cols }, cells }
    };
}

static void make_llama(tiny *t, const json_t *variant)
{
    llama_make(t, variant);
    llama_write(t, variant);
    token_rows rows = read_rows(json_object_get(variant, "rows"), 0);
    const ft_named_tensor reference[] = {
        as_tensor("input_ids", &rows, rows.id),
        as_tensor("attention_mask", &rows, rows.mask),
    };
    write_reference(t, reference, FT_COUNT(reference));
    free_rows(&rows);
}

/* Sources, prefixes of their targets, and the most likely token after each prefix. */
static void write_pairs(const tiny *t, const json_t *variant, int32_t padding)
{
    enum { IGNORED = -100 };
    const json_t *logits = json_object_get(variant, "logits");
    token_rows sources = read_rows(json_object_get(variant, "sources"), padding);
    token_rows targets = read_rows(json_object_get(variant, "targets"), padding);
    token_rows labels = read_rows(json_object_get(variant, "targets"), IGNORED);
    for (size_t i = 0; i < labels.rows; i++) {
        const json_t *row = json_array_get(logits, i);
        size_t end = json_array_size(json_array_get(json_object_get(variant, "targets"), i)) - 1;
        for (size_t k = 0; k < labels.cols; k++)
            labels.id[i * labels.cols + k] =
                k == end ? best_of(row, 0, json_array_size(row)) : IGNORED;
    }
    const ft_named_tensor reference[] = {
        as_tensor("input_ids", &sources, sources.id),
        as_tensor("attention_mask", &sources, sources.mask),
        as_tensor("decoder_input_ids", &targets, targets.id),
        as_tensor("labels", &labels, labels.id),
    };
    write_reference(t, reference, FT_COUNT(reference));
    free_rows(&sources);
    free_rows(&targets);
    free_rows(&labels);
}

static json_t *vocabulary(const json_t *config)
{
    enum { UNKNOWN = 3 };
    json_t *words = json_object();
    for (int i = 0; i < number(config, "vocab_size"); i++) {
        char word[16];
        snprintf(word, sizeof word, "w%d", i);
        json_object_set_new(words,
                            i == number(config, "eos_token_id")   ? "</s>"
                            : i == number(config, "pad_token_id") ? "<pad>"
                            : i == UNKNOWN                        ? "<unk>"
                                                                  : word,
                            json_integer(i));
    }
    return words;
}

static void make_translator(tiny *t, const json_t *variant)
{
    translator_make(t, variant);
    llama_write(t, variant);
    const json_t *config = json_object_get(variant, "config");
    write_json(t, "vocab.json", vocabulary(config));
    write_pairs(t, variant, number(config, "pad_token_id"));
}

static json_t *processor(const json_t *size)
{
    const json_t *rows = json_is_array(size) ? json_array_get(size, 0) : size;
    const json_t *cols = json_is_array(size) ? json_array_get(size, 1) : size;
    return json_pack("{ss s{sI sI}}", "image_processor_type", "ViTImageProcessor", "size", "height",
                     json_integer_value(rows), "width", json_integer_value(cols));
}

static void write_images(const tiny *t, const json_t *variant)
{
    enum { IMAGES = 16 };
    int32_t best[IMAGES];
    const json_t *logits = json_object_get(json_object_get(variant, "outputs"), "logits");
    ft_tensor images = vit_images(variant);
    const ft_named_tensor reference[] = {
        { "pixel_values", images },
        { "labels", { FT_I32, FT_ROW, 1, { images.dim[0] }, best } },
    };
    size_t count = (size_t) images.dim[0], classes = json_array_size(logits) / count;
    if (count > IMAGES)
        bail_out("the variant has %zu images, at most %d are supported", count, IMAGES);
    for (size_t i = 0; i < count; i++)
        best[i] = best_of(logits, i * classes, classes);
    write_reference(t, reference, logits == NULL ? 1 : 2);
    free(images.data);
}

static void make_vit(tiny *t, const json_t *variant)
{
    vit_make(t, variant);
    tiny_write(t);
    write_json(t, "preprocessor_config.json",
               processor(json_object_get(json_object_get(variant, "config"), "image_size")));
    write_images(t, variant);
}

static bool make_golden(tiny *t, const char *family, const char *variant)
{
    static const struct {
        const char *family;
        void (*make)(tiny *t, const json_t *variant);
    } golden[] = { { "llama", make_llama },
                   { "translator", make_translator },
                   { "vit", make_vit } };
    for (size_t i = 0; i < FT_COUNT(golden); i++) {
        if (strcmp(family, golden[i].family) != 0)
            continue;
        char file[64];
        snprintf(file, sizeof file, "%s-variants.json", family);
        json_t *all = golden_json(file);
        golden[i].make(t, variant == NULL ? json_array_get(all, 0) : llama_variant(all, variant));
        json_decref(all);
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    tiny t;
    const char *variant = argc == 4 ? argv[2] : NULL;
    if (argc < 3 || argc > 4 ||
        (!make_encoder(&t, argv[1], variant) && !make_golden(&t, argv[1], variant))) {
        fputs("make-checkpoint bert|roberta|distilbert|llama|translator|vit [VARIANT] FOLDER\n",
              stderr);
        return 2;
    }
    /* The helpers write the checkpoint to a temporary folder. */
    bool moved = rename(t.folder, argv[argc - 1]) == 0;
    if (!moved)
        perror(argv[argc - 1]);
    tiny_remove(&t);
    return !moved;
}
