/*
 * vit-t.c - image models: errors of the converter, inputs of sessions, and datasets.
 *
 * The model is the variant "classes" of tests/golden/vit-variants.json: images of 3 x 12 x 12 in
 * patches of 4 x 4, 5 classes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/dataset.h"
#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "tests/lib/models/converted.h"
#include "tests/lib/golden.h"
#include "tests/lib/models/llama_file.h"
#include "tests/lib/models/vit_file.h"
#include "tests/tap/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES = 3, PIXELS = 3 * 12 * 12, ROWS = 10, CLASSES = 5 };

static ft_error err;
static json_t *variants;

static const json_t *variant(void)
{
    return llama_variant(variants, "classes");
}

/* ---- Converting ----------------------------------------------------------------------------- */

static void refuses(tiny *t, const char *why, const char *sentence)
{
    tiny_write(t);
    ft_conversion *conversion = converted_open(t, &(ft_convert_options){ 0 });
    ok(conversion == NULL, "a ViT checkpoint with %s is refused", sentence);
    has(converted_problem(0), why, "the error names the tensor for %s", sentence);
    ft_conversion_close(conversion);
    tiny_remove(t);
}

static void test_checkpoints(void)
{
    tiny t;
    vit_make(&t, variant());
    tiny_find(&t, "vit.embeddings.patch_embeddings.projection.weight")->dim[1] = 6;
    tiny_find(&t, "vit.embeddings.patch_embeddings.projection.weight")->dim[2] = 2;
    refuses(&t,
            "vit.embeddings.patch_embeddings.projection.weight (embed.patch.weight): shape "
            "[32, 6, 2, 4], expected [32, 3, 4, 4]",
            "a different convolution with as many elements");
    vit_make(&t, variant());
    tiny_find(&t, "vit.embeddings.cls_token")->ndim = 2;
    refuses(&t, "vit.embeddings.cls_token (embed.class): shape [1, 1], expected [1, 1, 32]",
            "a class token without columns");
    vit_make(&t, variant());
    tiny_drop(&t, "vit.embeddings.position_embeddings");
    refuses(&t,
            "vit.embeddings.position_embeddings (embed.position): missing, expected shape "
            "[1, 10, 32]",
            "missing position embeddings");
    vit_make(&t, variant());
    tiny_configure(&t, "{\"model_type\": \"deit\", \"architectures\": null}");
    refuses(&t, "(embed.patch.weight): missing", "the model type deit");
}

/* preprocessor_config.json is copied into the artifact. */
static ft_model *open_model(tiny *t, char path[128])
{
    ft_model *model;
    vit_make(t, variant());
    tiny_write_file(t, "preprocessor_config.json", "{\"size\": 12}");
    ft_artifact *artifact = converted(t, &(ft_convert_options){ 0 });
    if (artifact == NULL)
        bail_out("%s", converted_problem(0));
    const ft_artifact_entry *file = ft_artifact_find_file(artifact, "preprocessor_config.json");
    ok(file != NULL && file->bytes == 12 && memcmp(file->data, "{\"size\": 12}", 12) == 0,
       "preprocessor_config.json is copied into the artifact");
    ft_artifact_close(artifact);
    snprintf(path, 128, "%s/model.ft", t->folder);
    if (ft_model_open(&model, path, NULL, &err) != FT_OK)
        bail_out("%s", err.text);
    return model;
}

/* ---- Sessions ------------------------------------------------------------------------------- */

static ft_session *open_session(const ft_model *model, int64_t tokens, int64_t images)
{
    ft_session *session;
    const ft_session_options options = { .threads = 1,
                                         .max_tokens = tokens,
                                         .max_sequences = images };
    if (ft_session_open(&session, model, &options, &err) != FT_OK)
        bail_out("%s", err.text);
    return session;
}

static void is_refused(ft_session *session, const char *name, const ft_tensor *tensor,
                       ft_status status, const char *why)
{
    ft_status found = ft_session_set(session, name, tensor, &err);
    is_str(found == status ? err.text : ft_status_name(found), why,
           "the session refuses an input: %s", why);
}

static void test_inputs(const ft_model *model)
{
    ft_tensor images = vit_images(variant()), bad = images;
    ft_session *session = open_session(model, 0, 2);
    float *x = images.data;
    is_int(ft_session_run(session, &err), FT_EARG, "ft_session_run without images is refused");
    is_str(err.text, "pixel_values is not set",
           "the error of a run without images names pixel_values");
    is_refused(session, "input_ids", &images, FT_EARG, "input_ids: the model has no such input");
    is_refused(session, "pixel_values", &images, FT_ELIMIT,
               "pixel_values: 3 images, but the session allows 2");
    bad.dim[2] = 6, bad.dim[3] = 24, bad.dim[0] = 1;
    is_refused(session, "pixel_values", &bad, FT_ESHAPE,
               "pixel_values: shape [1, 3, 6, 24], expected [images, 3, 12, 12]");
    bad = images, bad.dim[0] = 0;
    is_refused(session, "pixel_values", &bad, FT_ESHAPE,
               "pixel_values: shape [0, 3, 12, 12], expected [images, 3, 12, 12]");
    bad = images, bad.dtype = FT_F16;
    is_refused(session, "pixel_values", &bad, FT_EARG, "pixel_values: dtype F16, expected F32");
    bad = images, bad.dim[0] = 2;
    x[PIXELS + 2 * 144 + 3 * 12 + 7] = NAN;
    is_refused(session, "pixel_values", &bad, FT_EARG,
               "pixel_values[1][2][3][7]: nan, expected a finite value");
    is_int(ft_session_run(session, &err), FT_EARG,
           "ft_session_run after refused images is refused");
    ft_session_close(session);
    free(images.data);
}

/* The number of images that fits the token limit; a session for less than one image is refused. */
static void test_limits(const ft_model *model)
{
    static const struct {
        int64_t tokens, images;
        size_t allows;
    } cases[] = { { 0, 0, 4096 / ROWS }, { 0, 700, 700 },    { 25, 0, 2 },
                  { 25, 1, 1 },          { 5 * ROWS, 9, 5 }, { ROWS, 0, 1 } };
    size_t wrong = 0;
    for (size_t i = 0; i < FT_COUNT(cases); i++) {
        ft_session *session = open_session(model, cases[i].tokens, cases[i].images);
        ft_tensor images = { .dtype = FT_F32,
                             .ndim = 4,
                             .dim = { (int64_t) cases[i].allows, 3, 12, 12 } };
        images.data = ft_calloc(cases[i].allows + 1, PIXELS * sizeof(float));
        wrong += ft_session_set(session, "pixel_values", &images, &err) != FT_OK;
        images.dim[0]++;
        wrong += ft_session_set(session, "pixel_values", &images, &err) != FT_ELIMIT;
        free(images.data);
        ft_session_close(session);
    }
    is_int((long long) wrong, 0, "a session allows as many images as its limits permit");
    ft_session *none;
    is_int(ft_session_open(&none, model, &(ft_session_options){ .max_tokens = ROWS - 1 }, &err),
           FT_ELIMIT, "a token limit below the rows of one image is refused");
    is_str(err.text, "max_tokens is 9, but an image has 10 rows",
           "the error names the token limit and the rows of an image");
}

/* Images remain set until replaced; outputs have the shapes of their rows. */
static void test_runs(const ft_model *model)
{
    ft_tensor images = vit_images(variant()), out = { .data = NULL };
    float first[IMAGES * CLASSES], again[IMAGES * CLASSES];
    ft_tensor logits = { .data = first }, twice = { .data = again };
    ft_session *session = open_session(model, 0, IMAGES);
    if (ft_session_set(session, "pixel_values", &images, &err) != FT_OK ||
        ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, "logits", &logits, &err) != FT_OK)
        bail_out("%s", err.text);
    memset(images.data, 0xff, IMAGES * PIXELS * sizeof(float));
    if (ft_session_run(session, &err) != FT_OK ||
        ft_session_get(session, "logits", &twice, &err) != FT_OK ||
        ft_session_get(session, "last_hidden_state", &out, &err) != FT_OK)
        bail_out("%s", err.text);
    ok(memcmp(first, again, sizeof first) == 0, "images are copied and may be run again");
    ok(out.ndim == 3 && out.dim[0] == IMAGES && out.dim[1] == ROWS && out.dim[2] == 32,
       "last_hidden_state has the shape [images, rows, columns]");
    ft_model_info info = ft_model_get_info(model);
    ok(info.vocabulary == 0 && info.max_positions == ROWS && info.labels == CLASSES,
       "an image model has positions and labels, and no vocabulary");
    ft_session_close(session);
    free(images.data);
}

/* ---- Datasets ------------------------------------------------------------------------------ */

static ft_status reads(ft_dataset *out, const tiny *t, const ft_model *model,
                       const ft_named_tensor *tensors, size_t count)
{
    char path[128];
    snprintf(path, sizeof path, "%s/data.safetensors", t->folder);
    if (ft_safetensors_write(path, tensors, count, true, &err) != FT_OK)
        bail_out("%s", err.text);
    return ft_dataset_read(out, path, model, &err);
}

static void test_data(const tiny *t, const ft_model *model)
{
    int32_t classes[IMAGES] = { 4, 0, 2 };
    ft_named_tensor tensors[] = {
        { "pixel_values", vit_images(variant()) },
        { "labels", { .dtype = FT_I32, .ndim = 1, .dim = { IMAGES }, .data = classes } },
    };
    const float *x = tensors[0].tensor.data;
    ft_dataset data;
    if (reads(&data, t, model, tensors, 2) != FT_OK)
        bail_out("%s", err.text);
    ok(data.rows == IMAGES && data.cols == ROWS && ft_dataset_tokens(&data) == IMAGES * ROWS &&
           memcmp(data.pixels, x, IMAGES * PIXELS * sizeof *x) == 0 && data.labels[0] == 4,
       "images and labels of a dataset are read");
    ft_dataset part = ft_dataset_slice(&data, 1, 9);
    ok(part.rows == 2 && part.pixels == data.pixels + PIXELS && part.labels[0] == 0 &&
           ft_dataset_batch_rows(&data, 0, 25, 64) == 2,
       "slices and batches of a dataset count images");
    ft_dataset_fini(&data);

    classes[1] = 5;
    is_int(reads(&data, t, model, tensors, 2), FT_EFORMAT,
           "a label outside the classes is refused");
    has(err.text, "data.safetensors: labels[1] is 5, expected 0 to 4", "the error names the label");
    is_int(reads(&data, t, model, tensors + 1, 1), FT_EFORMAT,
           "a dataset without images is refused");
    has(err.text, "data.safetensors: no tensor \"pixel_values\"",
        "the error names the missing pixel_values");
    tensors[0].tensor.dim[1] = 1, tensors[0].tensor.dim[2] = 36;
    is_int(reads(&data, t, model, tensors, 1), FT_ESHAPE, "images of a different size are refused");
    has(err.text,
        "data.safetensors: pixel_values: shape [3, 1, 36, 12], expected [images, 3, 12, 12]",
        "the error of images of a different size names both shapes");
    free(tensors[0].tensor.data);
}

int main(void)
{
    tiny t;
    char path[128];
    variants = golden_json("vit-variants.json");
    test_checkpoints();
    ft_model *model = open_model(&t, path);
    test_inputs(model);
    test_limits(model);
    test_runs(model);
    test_data(&t, model);
    ft_model_close(model);
    tiny_remove(&t);
    json_decref(variants);
    return done_testing();
}
