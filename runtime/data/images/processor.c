/*
 * processor.c - parse preprocessor_config.json, and apply its steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/processor.h"

#include "runtime/error.h"
#include "runtime/base/json_reader.h"
#include "runtime/mem.h"

#include <math.h>
#include <string.h>

/* ---- Processor type ------------------------------------------------------------------------- */

/* Defaults of optional fields. All class names of a processor start with `name`. */
typedef struct processor_defaults {
    const char *name;
    size_t size, crop; /* crop 0: no center crop */
    ft_resample resample;
} processor_defaults;

static const processor_defaults processors[] = {
    { "ViT", 224, 0, FT_RESAMPLE_BILINEAR },
    { "DeiT", 256, 224, FT_RESAMPLE_BICUBIC },
};

static const char *const class_suffixes[] = {
    "ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor", NULL,
};

static const processor_defaults *find_processor(const char *name)
{
    for (size_t i = 0; i < FT_COUNT(processors); i++) {
        size_t length = strlen(processors[i].name);
        for (size_t k = 0; class_suffixes[k] != NULL; k++)
            if (strncmp(name, processors[i].name, length) == 0 &&
                strcmp(name + length, class_suffixes[k]) == 0)
                return &processors[i];
    }
    return NULL;
}

static ft_status choose_processor(const ft_json_reader *in, bool distilled,
                                  const processor_defaults **out)
{
    static const char *const keys[] = { "image_processor_type", "feature_extractor_type" };
    *out = &processors[distilled];
    for (size_t i = 0; i < FT_COUNT(keys); i++) {
        const json_t *value = ft_json_get(in, keys[i]);
        if (value == NULL)
            continue;
        *out = json_is_string(value) ? find_processor(json_string_value(value)) : NULL;
        return *out != NULL ? FT_OK
                            : ft_json_fail_value(in, FT_EUNSUPPORTED, keys[i], value,
                                                 "ViTImageProcessor or DeiTImageProcessor");
    }
    return FT_OK;
}

/* ---- Fields ------------------------------------------------------------------------------- */

enum { MAX_SIZE = 65536 };

/* One number for both; {"shortest_edge": n}, a size that depends on the image, is not supported. */
static ft_status read_size(const ft_json_reader *in, const char *key, size_t fallback,
                           size_t *width, size_t *height)
{
    const json_t *value = ft_json_get(in, key), *w = value, *h = value;
    int64_t columns, rows;
    *width = *height = fallback;
    if (value == NULL)
        return FT_OK;
    if (json_is_object(value)) {
        w = json_object_get(value, "width");
        h = json_object_get(value, "height");
        if (w == NULL || h == NULL || json_object_size(value) != 2)
            return ft_json_fail_value(in, FT_EUNSUPPORTED, key, value,
                                      "a number, or an object of width and height");
    }
    FT_TRY(ft_json_to_integer(in, key, w, 1, MAX_SIZE, &columns));
    FT_TRY(ft_json_to_integer(in, key, h, 1, MAX_SIZE, &rows));
    *width = (size_t) columns;
    *height = (size_t) rows;
    return FT_OK;
}

static ft_status read_resample(const ft_json_reader *in, ft_resample fallback, ft_resample *out)
{
    const json_t *value = ft_json_get(in, "resample");
    json_int_t n = json_integer_value(value);
    *out = value == NULL ? fallback : (ft_resample) n;
    if (value == NULL ||
        (json_is_integer(value) && n >= FT_RESAMPLE_LANCZOS && n <= FT_RESAMPLE_BICUBIC))
        return FT_OK;
    return ft_json_fail_value(in, FT_EUNSUPPORTED, "resample", value,
                              "1 (Lanczos), 2 (bilinear) or 3 (bicubic)");
}

/* Three numbers, or one for all channels. */
static ft_status read_channels(const ft_json_reader *in, const char *key, bool positive,
                               float out[3])
{
    const json_t *value = ft_json_get(in, key);
    bool ok = value == NULL || json_is_number(value) || json_array_size(value) == 3;
    for (size_t i = 0; i < 3 && ok; i++) {
        const json_t *element = ft_json_list_at(value, i);
        double number = value == NULL ? 0.5 : json_number_value(element);
        ok = (value == NULL || json_is_number(element)) && isfinite((float) number) &&
             !(positive && !((float) number > 0.0f));
        out[i] = (float) number;
    }
    return ok ? FT_OK
              : ft_json_fail_value(in, FT_EFORMAT, key, value,
                                   positive ? "three numbers above 0" : "three numbers");
}

/* Normalization: (x * rescale_factor - mean) / std. */
static ft_status read_normalization(ft_image_processor *out, const ft_json_reader *in)
{
    bool do_rescale, do_normalize;
    const json_t *rescale_factor = ft_json_get(in, "rescale_factor");
    FT_TRY(ft_json_read_optional_bool(in, "do_rescale", true, &do_rescale));
    FT_TRY(ft_json_read_optional_bool(in, "do_normalize", true, &do_normalize));
    out->rescale_factor =
        rescale_factor == NULL ? 1.0f / 255.0f : (float) json_number_value(rescale_factor);
    if (rescale_factor != NULL &&
        !(json_is_number(rescale_factor) && isfinite(out->rescale_factor)))
        return ft_json_fail_value(in, FT_EFORMAT, "rescale_factor", rescale_factor, "a number");
    if (!do_rescale)
        out->rescale_factor = 1.0f;
    FT_TRY(read_channels(in, "image_mean", false, out->mean));
    FT_TRY(read_channels(in, "image_std", true, out->std));
    for (size_t i = 0; i < 3 && !do_normalize; i++) {
        out->mean[i] = 0.0f;
        out->std[i] = 1.0f;
    }
    return FT_OK;
}

/* ---- Parsing -------------------------------------------------------------------------------- */

/* Fields that are read, and those without effect: images are always converted to RGB. */
/* clang-format off */
static const char *const known[] = {
    "image_processor_type", "feature_extractor_type", "do_resize", "size", "resample",
    "do_center_crop", "crop_size", "do_rescale", "rescale_factor", "do_normalize", "image_mean",
    "image_std",

    "do_convert_rgb", "processor_class", "_processor_class", "_valid_processor_keys",
    "return_tensors", "data_format", "input_data_format", "device", "disable_grouping",
    "default_to_square", "model_input_names", "_name_or_path", "transformers_version",
};
/* clang-format on */

static ft_status reject_unknown(const ft_json_reader *in)
{
    const char *key;
    json_t *value;
    json_object_foreach(in->json, key, value)
    {
        size_t i = 0;
        while (i < FT_COUNT(known) && strcmp(known[i], key) != 0)
            i++;
        if (i == FT_COUNT(known) && !json_is_null(value) && !json_is_false(value))
            return ft_json_fail_value(in, FT_EUNSUPPORTED, key, value,
                                      "no such field, because it may change the result");
    }
    return FT_OK;
}

static ft_status read_all(ft_image_processor *out, const ft_json_reader *in, bool distilled)
{
    const processor_defaults *defaults;
    FT_TRY(choose_processor(in, distilled, &defaults));
    FT_TRY(reject_unknown(in));
    FT_TRY(ft_json_read_optional_bool(in, "do_resize", true, &out->do_resize));
    FT_TRY(read_size(in, "size", defaults->size, &out->width, &out->height));
    FT_TRY(read_resample(in, defaults->resample, &out->resample));
    FT_TRY(
        ft_json_read_optional_bool(in, "do_center_crop", defaults->crop > 0, &out->do_center_crop));
    FT_TRY(read_size(in, "crop_size", defaults->crop > 0 ? defaults->crop : 224, &out->crop_width,
                     &out->crop_height));
    return read_normalization(out, in);
}

ft_status ft_image_processor_parse(ft_image_processor *out, const void *text, size_t bytes,
                                   const char *file, bool distilled, ft_error *err)
{
    memset(out, 0, sizeof *out);
    ft_json_reader in = { .file = file, .err = err };
    FT_TRY(ft_json_load(&in, JSON_OBJECT, text, bytes, FT_JSON_MAX_BYTES));
    ft_status status = read_all(out, &in, distilled);
    json_decref(in.json);
    return status;
}

/* ---- Steps -------------------------------------------------------------------------------- */

void ft_image_processor_output_size(const ft_image_processor *processor, const ft_image *image,
                                    size_t *width, size_t *height)
{
    *width = processor->do_center_crop ? processor->crop_width
             : processor->do_resize    ? processor->width
                                       : image->width;
    *height = processor->do_center_crop ? processor->crop_height
              : processor->do_resize    ? processor->height
                                        : image->height;
}

/* Write the center of an image as [3, height, width]. */
static void normalize_center(const ft_image_processor *p, const ft_image *image, size_t width,
                             size_t height, float *out)
{
    size_t left = (image->width - width) / 2, top = (image->height - height) / 2;
    for (size_t c = 0; c < 3; c++)
        for (size_t y = 0; y < height; y++) {
            const uint8_t *in = image->rgb + ((top + y) * image->width + left) * 3 + c;
            for (size_t x = 0; x < width; x++)
                *out++ = ((float) in[3 * x] * p->rescale_factor - p->mean[c]) / p->std[c];
        }
}

ft_status ft_image_processor_run(const ft_image_processor *processor, const ft_image *image,
                                 const char *label, float *out, ft_error *err)
{
    ft_image resized = { 0 };
    size_t width, height;
    if (processor->do_resize)
        FT_TRY(ft_image_resize(&resized, image, processor->width, processor->height,
                               processor->resample, err));
    const ft_image *from = processor->do_resize ? &resized : image;
    ft_image_processor_output_size(processor, image, &width, &height);
    ft_status status = FT_OK;
    if (width > from->width || height > from->height)
        status = ft_fail(err, FT_EUNSUPPORTED,
                         "%s: %zu x %zu pixels, too small for a center crop of %zu x %zu", label,
                         from->width, from->height, width, height);
    else
        normalize_center(processor, from, width, height, out);
    ft_image_fini(&resized);
    return status;
}
