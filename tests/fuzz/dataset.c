/*
 * dataset.c - fuzz target: arbitrary files read as datasets of every model family.
 *
 * An accepted dataset fits the model and can be sliced and counted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE 1
#include <config.h>

#include "runtime/data/dataset.h"
#include "runtime/families/family.h"
#include "runtime/model/model.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 20, POSITIONS = 6, LABELS = 3, SIDE = 2 };

static const ft_config encoder = { .vocabulary = WORDS,
                                   .hidden = 8,
                                   .layers = 1,
                                   .heads = 2,
                                   .head_size = 4,
                                   .kv_heads = 2,
                                   .ffn = 8,
                                   .positions = POSITIONS,
                                   .types = 2,
                                   .labels = LABELS,
                                   .head = FT_HEAD_POOLED };

static void check_ids(const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        require(ids[i] >= 0 && ids[i] < WORDS);
}

static void check(const ft_dataset *d, size_t cols)
{
    require(d->rows > 0);
    if (d->ids != NULL)
        check_ids(d->ids, d->rows * d->cols);
    if (d->target_ids != NULL)
        check_ids(d->target_ids, d->rows * d->target_cols);
    for (size_t i = 0; i < d->rows * d->float_label_cols; i++)
        require(isfinite(d->float_labels[i]));
    require(d->pixels != NULL || cols == 0 || d->cols <= cols);
    size_t tokens = 0;
    for (size_t row = 0; row < d->rows; row++) {
        require(ft_dataset_row_tokens(d, row) > 0);
        tokens += ft_dataset_row_tokens(d, row);
    }
    require(tokens == ft_dataset_tokens(d) || d->target_ids != NULL);
    for (size_t first = 0, count; first < d->rows; first += count) {
        count = ft_dataset_batch_rows(d, first, 4 * POSITIONS, 3);
        require(count >= 1 && count <= d->rows - first);
    }
    ft_dataset half = ft_dataset_slice(d, d->rows / 2, d->rows);
    require(half.rows == d->rows - d->rows / 2);
}

static void read_as(const char *path, const char *family, const ft_config *config, size_t cols)
{
    ft_model model = { .config = *config, .family = ft_family_find(family) };
    model.config.kind = model.family->kind;
    model.has_cache = ft_config_is_decoder(&model.config);
    ft_dataset data;
    ft_error err = { .code = FT_OK };
    ft_status status = cols == 0 ? ft_dataset_read(&data, path, &model, &err)
                                 : ft_dataset_read_chunked(&data, path, &model, cols, &err);
    if (status == FT_OK)
        check(&data, cols);
    else
        require(err.code == status && strncmp(err.text, path, strlen(path)) == 0);
    ft_dataset_fini(&data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    ft_config decoder = encoder, several = encoder, quantities = encoder, images = encoder;
    several.problem_type = FT_PROBLEM_MULTI;
    quantities.problem_type = FT_PROBLEM_REGRESSION;
    decoder.head = FT_HEAD_NONE;
    decoder.labels = decoder.types = 0;
    decoder.rope = FT_ROPE_DEFAULT;
    ft_config translator = decoder;
    translator.rope = FT_ROPE_NONE;
    translator.sinusoids = FT_SINUSOIDS_M2M100;
    translator.encoder_layers = translator.encoder_heads = 1;
    translator.encoder_ffn = 8;
    translator.padding_id = translator.pad_id = 1;
    images.vocabulary = images.types = 0;
    images.channels = 1;
    images.image_height = images.image_width = 2 * SIDE;
    images.patch_height = images.patch_width = SIDE;
    int file = memfd_create("fuzz", 0);
    require(file >= 0 && write(file, bytes, size) == (ssize_t) size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    read_as(path, "bert", &encoder, 0);
    read_as(path, "bert", &several, 0);
    read_as(path, "bert", &quantities, 0);
    read_as(path, "llama", &decoder, 0);
    read_as(path, "llama", &decoder, 4);
    read_as(path, "m2m100", &translator, 0);
    read_as(path, "vit", &images, 0);
    close(file);
    return 0;
}
