/*
 * image_reader.c - decode, preprocess and check the size of one image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/image_files/image_reader.h"

#include "runtime/error.h"

ft_status ft_image_reader_init(ft_image_reader *out, const ft_model *model, ft_error *err)
{
    static const char name[] = "preprocessor_config.json";
    const ft_config *config = &model->config;
    out->model = model;
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
    return ft_image_processor_parse(&out->processor, file->data, file->bytes, name,
                                    config->prefix_tokens == 2, err);
}

static ft_status check_size(const ft_image_reader *reader, const ft_image *image, const char *label,
                            ft_error *err)
{
    size_t width, height;
    const ft_config *config = &reader->model->config;
    ft_image_processor_output_size(&reader->processor, image, &width, &height);
    if (width == (size_t) config->image_width && height == (size_t) config->image_height)
        return FT_OK;
    return ft_fail(err, FT_ESHAPE,
                   "%s: has %zu x %zu pixels after preprocessing, but the model expects %d x %d",
                   label, width, height, config->image_width, config->image_height);
}

ft_status ft_image_reader_convert(const ft_image_reader *reader, const ft_image *image,
                                  const char *label, float *out, ft_error *err)
{
    FT_TRY(check_size(reader, image, label, err));
    return ft_image_processor_run(&reader->processor, image, label, out, err);
}

ft_status ft_image_reader_read(const ft_image_reader *reader, const char *path, float *out,
                               ft_error *err)
{
    ft_image image;
    FT_TRY(ft_image_read(&image, path, err));
    ft_status status = ft_image_reader_convert(reader, &image, path, out, err);
    ft_image_fini(&image);
    return status;
}
