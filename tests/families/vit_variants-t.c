/*
 * vit_variants-t.c - all variants of ViT and DeiT give the outputs of transformers.
 *
 * The models and images are those of tests/golden/vit-variants.json: images and patches that are
 * not square and leave a remainder, one and two channels, with and without biases, one and two
 * leading rows, classes and poolers, every dtype.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/models/vit_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Both sides compute in float and sum in different orders.  Outputs have a spread of up to 4 over
 * two or three layers; differences below 1e-5 were observed, and a misplaced row causes more than
 * 0.1.
 */
static const double tolerance = 1e-4;

static ft_error err;

/* Opens the converted variant. */
static ft_model *open_variant(const tiny *t)
{
    char path[128];
    ft_model *model;
    snprintf(path, sizeof path, "%s/model.ft", t->folder);
    ft_conversion *conversion = converted_open(t, &(ft_convert_options){ 0 });
    if (conversion == NULL || converted_write(conversion, path) != FT_OK)
        bail_out("%s", converted_problem(0));
    ft_conversion_close(conversion);
    if (ft_model_open(&model, path, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    return model;
}

/* An output of the images first ... first + count - 1, to be freed. */
static float *run(const ft_model *model, const ft_tensor *images, int64_t first, int64_t count,
                  const char *name, size_t *size)
{
    ft_session *session;
    ft_tensor some = *images, out = { .data = NULL };
    size_t each = ft_tensor_numel(images) / (size_t) images->dim[0];
    some.dim[0] = count;
    some.data = (float *) images->data + (size_t) first * each;
    if (ft_session_open(&session, model, &(ft_session_options){ .threads = 2 }, &err) != FT_OK ||
        ft_session_set(session, "pixel_values", &some, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, name, &out, &err) != FT_OK)
        bail_out("%s", err.text);
    out.data = malloc(ft_tensor_bytes(&out));
    if (out.data == NULL || ft_session_get(session, name, &out, &err) != FT_OK)
        bail_out("%s", err.text);
    *size = ft_tensor_numel(&out);
    ft_session_close(session);
    return out.data;
}

static double difference(const json_t *expected, const float *found, size_t size)
{
    double worst = json_array_size(expected) == size ? 0.0 : (double) NAN;
    for (size_t i = 0; i < size; i++) {
        double d = fabs((double) found[i] - json_number_value(json_array_get(expected, i)));
        worst = d <= worst ? worst : d;
    }
    return worst;
}

/* Compares the outputs of all images in one batch with transformers, and with those of each image
 * alone. */
static void test_output(const ft_model *model, const json_t *variant, const char *name,
                        const json_t *expected)
{
    const char *title = json_string_value(json_object_get(variant, "name"));
    ft_tensor images = vit_images(variant);
    size_t size, one;
    int same = 0;
    float *found = run(model, &images, 0, images.dim[0], name, &size);
    double worst = difference(expected, found, size);
    near(worst, 0.0, tolerance, "%s: %s equals that of transformers, with a difference of %.1e",
         title, name, worst);
    for (int64_t i = 0; i < images.dim[0]; i++) {
        float *alone = run(model, &images, i, 1, name, &one);
        double d = 0.0;
        for (size_t k = 0; k < one; k++)
            d = fmax(d, fabs((double) alone[k] - (double) found[(size_t) i * one + k]));
        same += d <= tolerance && one * (size_t) images.dim[0] == size;
        free(alone);
    }
    is_int(same, images.dim[0], "%s: an image alone gives the same output as in a batch", title);
    free(found);
    free(images.data);
}

static void test_variant(const json_t *variant)
{
    tiny t;
    const char *output;
    json_t *expected;
    vit_make(&t, variant);
    is_int((long long) t.count, json_integer_value(json_object_get(variant, "tensors")),
           "%s: the checkpoint has the expected number of tensors",
           json_string_value(json_object_get(variant, "name")));
    ok(llama_is_same(&t, variant), "%s: the generated weights equal those given to transformers",
       json_string_value(json_object_get(variant, "name")));
    tiny_write(&t);
    ft_model *model = open_variant(&t);
    json_object_foreach(json_object_get(variant, "outputs"), output, expected)
    {
        test_output(model, variant, output, expected);
    }
    ft_model_close(model);
    tiny_remove(&t);
}

int main(void)
{
    json_t *variants = golden_json("vit-variants.json"), *variant;
    size_t i;
    json_array_foreach(variants, i, variant)
    {
        test_variant(variant);
    }
    json_decref(variants);
    return done_testing();
}
