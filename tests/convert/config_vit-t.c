/*
 * config_vit-t.c - config.json of ViT and DeiT, and the image fields of a manifest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/config/hf_config.h"
#include "runtime/mem.h"
#include "tests/lib/models/origin.h"
#include "tests/tap/tap.h"

#include <string.h>

/* All fields of an image model configuration on one line. */
static const char *describe(const ft_hf_model *origin)
{
    static char text[300];
    const ft_config *c = &origin->config;
    snprintf(text, sizeof text, "%s L%d H%d A%d F%d, %dx%dx%d in %dx%d, %d + %d, %g %s, %s%s%s %d",
             origin->architecture->model_type, c->layers, c->hidden, c->heads, c->ffn, c->channels,
             c->image_height, c->image_width, c->patch_height, c->patch_width, c->prefix_tokens,
             c->positions - c->prefix_tokens, (double) c->eps, ft_activation_name(c->activation),
             ft_head_name(c->head), c->pooler ? ", pooler" : "", c->qkv_bias ? ", qkv" : "",
             c->labels);
    return text;
}

static const char vit[] = "vit-base", deit[] = "deit-tiny";

static void test_good(void)
{
    static const struct {
        const char *file, *patch, *expected;
    } good[] = {
        { vit, NULL,
          "vit L12 H768 A12 F3072, 3x224x224 in 16x16, 1 + 196, 1e-12 gelu, none, qkv 0" },
        { deit, NULL,
          "deit L12 H192 A3 F768, 3x224x224 in 16x16, 2 + 196, 1e-12 gelu, first, qkv 3" },
        { vit,
          "{\"architectures\": [\"ViTForImageClassification\"], \"num_labels\": 7,"
          " \"image_size\": [20, 33], \"patch_size\": [7, 4], \"num_channels\": 1,"
          " \"qkv_bias\": false, \"hidden_act\": \"gelu_new\", \"layer_norm_eps\": 1e-6}",
          "vit L12 H768 A12 F3072, 1x20x33 in 7x4, 1 + 16, 1e-06 gelu_tanh, first 7" },
        { vit,
          "{\"hidden_size\": \"REMOVE\", \"num_hidden_layers\": \"REMOVE\","
          " \"num_attention_heads\": \"REMOVE\", \"intermediate_size\": \"REMOVE\","
          " \"image_size\": \"REMOVE\", \"patch_size\": \"REMOVE\", \"num_channels\": \"REMOVE\","
          " \"qkv_bias\": \"REMOVE\", \"hidden_act\": \"REMOVE\", \"layer_norm_eps\": \"REMOVE\","
          " \"architectures\": null}",
          "vit L12 H768 A12 F3072, 3x224x224 in 16x16, 1 + 196, 1e-12 gelu, none, qkv 0" },
        { deit, "{\"pooler_output_size\": null, \"pooler_act\": null}",
          "deit L12 H192 A3 F768, 3x224x224 in 16x16, 2 + 196, 1e-12 gelu, first, qkv 3" },
    };
    for (size_t i = 0; i < FT_COUNT(good); i++)
        is_origin(good[i].file, good[i].patch, describe, good[i].expected);
}

static void test_bad(void)
{
    static const bad_origin bad[] = {
        { deit, "{\"architectures\": [\"DeiTForImageClassificationWithTeacher\"]}", FT_EUNSUPPORTED,
          "architectures [\"DeiTForImageClassificationWithTeacher\"] is not supported; "
          "deit supports DeiTModel, DeiTForImageClassification" },
        { vit, "{\"architectures\": [\"ViTForMaskedImageModeling\"]}", FT_EUNSUPPORTED,
          "architectures [\"ViTForMaskedImageModeling\"] is not supported" },
        { vit, "{\"image_size\": [224, 224, 3]}", FT_EFORMAT,
          "image_size: found [224, 224, 3], expected an integer, or a list of two" },
        { vit, "{\"image_size\": [224, 0]}", FT_EFORMAT,
          "image_size: found 0, expected an integer from 1 to 65536" },
        { vit, "{\"patch_size\": \"16\"}", FT_EFORMAT,
          "patch_size: found \"16\", expected an integer from 1 to 65536" },
        { vit, "{\"num_channels\": 0}", FT_EFORMAT,
          "num_channels: found 0, expected an integer from 1 to 1024" },
        { vit, "{\"patch_size\": 225}", FT_EFORMAT,
          "config: images of 224 x 224 are smaller than patches of 225 x 225" },
        { vit, "{\"image_size\": 60000, \"patch_size\": 60000}", FT_EFORMAT,
          "config: images of 3 x 60000 x 60000, patches of 60000 x 60000: at most 67108864 and "
          "65536 elements" },
        { vit, "{\"image_size\": 8000, \"patch_size\": 1, \"num_channels\": 1}", FT_EFORMAT,
          "config: 64000001 positions, at most 16777216" },
        { vit, "{\"num_attention_heads\": 5}", FT_EFORMAT, "5 heads do not divide 768 columns" },
        { vit, "{\"qkv_bias\": 1}", FT_EFORMAT, "qkv_bias: found 1, expected true or false" },
        { vit, "{\"hidden_act\": \"quick_gelu\"}", FT_EUNSUPPORTED,
          "hidden_act \"quick_gelu\" is not supported" },
        { vit, "{\"pooler_output_size\": 5}", FT_EUNSUPPORTED,
          "pooler_output_size is 5, but hidden_size is 768" },
        { vit, "{\"pooler_act\": \"relu\"}", FT_EUNSUPPORTED,
          "pooler_act is \"relu\", only \"tanh\" is supported" },
        { vit, "{\"use_mask_token\": true}", FT_EUNSUPPORTED,
          "use_mask_token is true, which may change the result" },
        { deit, "{\"num_labels\": 2}", FT_EFORMAT, "id2label has 3 names, but num_labels is 2" },
    };
    are_refused(bad, FT_COUNT(bad));
}

/* ---- Manifests ------------------------------------------------------------------------------ */

static const char manifest[] =
    "{\"channels\": 3, \"image_height\": 8, \"image_width\": 9, \"patch_height\": 2,"
    " \"patch_width\": 3, \"leading\": 1, \"layers\": 1, \"hidden\": 4, \"heads\": 2, \"ffn\": 6,"
    " \"positions\": 13, \"types\": 0, \"labels\": 0, \"position_offset\": 0, \"padding_id\": -1,"
    " \"eps\": 1e-6, \"activation\": \"gelu\", \"pooler\": false, \"head\": \"none\","
    " \"embedding\": \"none\", \"normalize\": false, \"qkv_bias\": true}";

/* Reads the manifest with the members of `patch`. */
static ft_status read_manifest(ft_config *out, const char *patch, ft_error *err)
{
    json_t *json = json_loads(manifest, 0, NULL), *more = json_loads(patch, 0, NULL), *value;
    const char *key;
    json_object_foreach(more, key, value)
    {
        if (json_is_null(value))
            json_object_del(json, key);
        else
            json_object_set(json, key, value);
    }
    ft_status status = ft_config_from_json(out, json, FT_KIND_VISION, "m.ft", err);
    json_decref(more);
    json_decref(json);
    return status;
}

static void test_manifest(void)
{
    static const struct {
        const char *patch, *why;
    } bad[] = {
        { "{\"channels\": null}",
          "m.ft: config: channels: found nothing, expected an integer from 1 to 1024" },
        { "{\"channels\": 0}",
          "m.ft: config: channels: found 0, expected an integer from 1 to 1024" },
        { "{\"leading\": null}",
          "m.ft: config: leading: found nothing, expected an integer from 1 to 2" },
        { "{\"leading\": 3}", "m.ft: config: leading: found 3, expected an integer from 1 to 2" },
        { "{\"positions\": 12}", "m.ft: config: 12 positions, but images become 13 tokens" },
        { "{\"vocabulary\": 7}", "m.ft: config: an image encoder with members of a text model" },
        { "{\"types\": 2}", "m.ft: config: an image encoder with members of a text model" },
        { "{\"kv_heads\": 2}", "m.ft: config: an image encoder with members of a decoder" },
        { "{\"rope\": \"default\", \"rope_theta\": 100}",
          "m.ft: config: an image encoder with members of a decoder" },
        { "{\"head\": \"dense\", \"labels\": 2}", "m.ft: config: images with head dense" },
        { "{\"channels\": null, \"vocabulary\": 5, \"qkv_bias\": null}",
          "m.ft: config: channels: found nothing, expected an integer from 1 to 1024" },
    };
    ft_config config, again;
    ft_error err;
    if (read_manifest(&config, "{}", &err) != FT_OK)
        bail_out("%s", err.text);
    json_t *json = ft_config_to_json(&config);
    ok(json_object_get(json, "vocabulary") == NULL &&
           ft_config_from_json(&again, json, FT_KIND_VISION, "m.ft", &err) == FT_OK &&
           memcmp(&again, &config, sizeof again) == 0,
       "an image configuration is unchanged by a round trip through JSON and has no vocabulary");
    json_decref(json);
    for (size_t i = 0; i < FT_COUNT(bad); i++)
        is_str(read_manifest(&config, bad[i].patch, &err) == FT_EFORMAT ? err.text
                                                                        : "not FT_EFORMAT",
               bad[i].why, "the manifest is refused with %s", bad[i].patch);
}

int main(void)
{
    test_good();
    test_bad();
    test_manifest();
    return done_testing();
}
