/*
 * images.c - read image files and preprocess them to pixel values.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/tools/run/images.h"

#include "runtime/error.h"
#include "runtime/data/images/processor.h"
#include "runtime/mem.h"

#include <string.h>

static ft_status open_processor(ft_image_processor *out, const ft_model *model, ft_error *err)
{
    static const char name[] = "preprocessor_config.json";
    const ft_config *config = &model->config;
    if (!ft_config_is_vision(config))
        return ft_fail(err, FT_EUNSUPPORTED, "%s: a model of family %s reads texts, not images",
                       model->path, model->family->name);
    if (config->channels != 3)
        return ft_fail(err, FT_EUNSUPPORTED,
                       "%s: expects %d channels, but image files have 3: give pixel_values",
                       model->path, config->channels);
    const ft_artifact_entry *file = ft_artifact_find_file(model->artifact, name);
    if (file == NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "%s: has no %s: give pixel_values", model->path, name);
    return ft_image_processor_parse(out, file->data, file->bytes, name, config->prefix_tokens == 2,
                                    err);
}

static ft_status check_size(const ft_image_processor *processor, const ft_image *image,
                            const ft_config *config, const char *path, ft_error *err)
{
    size_t width, height;
    ft_image_processor_output_size(processor, image, &width, &height);
    if (width == (size_t) config->image_width && height == (size_t) config->image_height)
        return FT_OK;
    return ft_fail(err, FT_ESHAPE,
                   "%s: has %zu x %zu pixels after preprocessing, but the model expects %d x %d",
                   path, width, height, config->image_width, config->image_height);
}

static ft_status read_image(float *out, const ft_image_processor *processor,
                            const ft_config *config, const char *path, ft_error *err)
{
    ft_image image;
    FT_TRY(ft_image_read(&image, path, err));
    ft_status status = check_size(processor, &image, config, path, err);
    if (status == FT_OK)
        status = ft_image_processor_run(processor, &image, path, out, err);
    ft_image_fini(&image);
    return status;
}

ft_status ft_images_read(ft_dataset *out, const ft_model *model, const char *const *path,
                         size_t count, ft_error *err)
{
    ft_image_processor processor;
    const ft_config *config = &model->config;
    memset(out, 0, sizeof *out);
    FT_TRY(open_processor(&processor, model, err));
    *out = (ft_dataset){ .rows = count,
                         .cols = (size_t) config->positions,
                         .image = { config->channels, config->image_height, config->image_width } };
    size_t pixels = ft_dataset_pixel_count(out), all;
    out->pixels = ft_checked_mul(count, pixels, &all) ? ft_calloc(all, sizeof *out->pixels) : NULL;
    ft_status status = FT_OK;
    if (out->pixels == NULL)
        status = ft_fail(err, FT_ENOMEM, "no memory for %zu images", count);
    for (size_t i = 0; i < count && status == FT_OK; i++)
        status = read_image(out->pixels + i * pixels, &processor, config, path[i], err);
    if (status != FT_OK)
        ft_dataset_fini(out);
    return status;
}
