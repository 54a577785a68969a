/*
 * image-t.c - image files: decoded and resized as Pillow does it, and refused in words; and what
 * preprocessor_config.json says.
 *
 * The images and what they become are those of tests/golden/make-images.py.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/processor.h"
#include "runtime/mem.h"
#include "tests/lib/folder.h"
#include "tests/tap/tap.h"

#include <stdlib.h>
#include <string.h>

static ft_error err;

static const char *path_of(const char *name)
{
    static char path[512];
    const char *root = getenv("FT_SRCDIR");
    snprintf(path, sizeof path, "%s/tests/golden/images/%s", root == NULL ? "." : root, name);
    return path;
}

/* ---- Numbers of Pillow -------------------------------------------------------------------- */

static bool is_readable(const char *name)
{
    bool png = strstr(name, ".png") != NULL;
#ifndef HAVE_LIBPNG
    if (png)
        return false;
#endif
#ifndef HAVE_LIBJPEG
    if (!png)
        return false;
#endif
    return png || strstr(name, ".jpg") != NULL;
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* The largest difference from samples in hexadecimal digits; 256 where they are not as many. */
static int difference(const ft_image *image, const char *digits)
{
    size_t samples = 3 * image->width * image->height;
    int most = 0;
    if (strlen(digits) != 2 * samples)
        return 256;
    for (size_t i = 0; i < samples; i++) {
        int expected = 16 * digit(digits[2 * i]) + digit(digits[2 * i + 1]);
        int apart = abs(image->rgb[i] - expected);
        most = apart > most ? apart : most;
    }
    return most;
}

static void test_line(const char *name, size_t width, size_t height, int how, int slack,
                      const char *digits)
{
    ft_image image, resized = { 0 };
    if (!is_readable(name)) {
        skip(1, "%s: this build has no library for it", name);
        return;
    }
    ft_status status = ft_image_read(&image, path_of(name), &err);
    if (status == FT_OK)
        status = ft_image_resize(&resized, &image, width, height, (ft_resample) how, &err);
    if (status != FT_OK)
        diag("%s", err.text);
    else
        ok(difference(&resized, digits) <= slack, "%s: %zu x %zu by filter %d, within %d", name,
           width, height, how, slack);
    if (status != FT_OK)
        ok(false, "%s: %zu x %zu by filter %d", name, width, height, how);
    ft_image_fini(&resized);
    ft_image_fini(&image);
}

static void test_golden(void)
{
    size_t bytes;
    char *text = (char *) folder_read(path_of("expected.txt"), &bytes);
    char *rest = text, *line, *digits = malloc(bytes);
    text[bytes - 1] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL) {
        char name[64];
        size_t width, height;
        int how, slack;
        if (sscanf(line, "%63s %zu %zu %d %d %s", name, &width, &height, &how, &slack, digits) != 6)
            bail_out("expected.txt: %.60s", line);
        test_line(name, width, height, how, slack, digits);
    }
    free(digits);
    free(text);
}

/* ---- Bad files ---------------------------------------------------------------------------- */

static void refuses(const void *data, size_t bytes, size_t most, ft_status code, const char *why,
                    const char *sentence)
{
    ft_image image;
    unsigned char *copy = aligned_copy(data, bytes); /* exactly as many, for sanitizers */
    ft_status status = ft_image_decode(&image, copy, bytes, "x", most, &err);
    ok(status == code && image.rgb == NULL, "%s: %s", ft_status_name(code), sentence);
    has(status == FT_OK ? "" : err.text, why, "it says why");
    ft_image_fini(&image);
    free(copy);
}

/* Wherever a file ends too early, and whatever byte of it is another: an error or an image. */
static void test_damage(const char *name)
{
    size_t bytes, odd = 0;
    unsigned char *data = folder_read(path_of(name), &bytes);
    ft_image image;
    if (!is_readable(name)) {
        skip(2, "%s: this build has no library for it", name);
        free(data);
        return;
    }
    for (size_t end = 0; end < bytes - 12; end++) { /* a PNG may do without its last chunk */
        unsigned char *copy = aligned_copy(data, end);
        odd += ft_image_decode(&image, copy, end, "x", 1 << 20, &err) == FT_OK;
        ft_image_fini(&image);
        free(copy);
    }
    is_int((long long) odd, 0, "%s: each of its beginnings is refused", name);
    for (size_t at = 0; at < bytes; at++) {
        unsigned char before = data[at];
        data[at] = (unsigned char) (before ^ 0x55);
        if (ft_image_decode(&image, data, bytes, "x", 1 << 20, &err) == FT_OK)
            odd += image.rgb == NULL || image.width == 0;
        ft_image_fini(&image);
        data[at] = before;
    }
    is_int((long long) odd, 0, "%s: each other byte is refused, or gives an image", name);
    free(data);
}

static void test_bad(void)
{
    ft_image image;
    size_t bytes;
    refuses("GIF89a", 6, 1, FT_EUNSUPPORTED, "x: is neither a PNG nor a JPEG image", "a GIF");
    refuses("", 0, 1, FT_EUNSUPPORTED, "x: is neither a PNG nor a JPEG image", "an empty file");
    is_int(ft_image_read(&image, "/nowhere/x.png", &err), FT_EIO, "a missing file is refused");
    has(err.text, "/nowhere/x.png: cannot open: No such file", "it says why");
    is_int(ft_image_read(&image, "/tmp", &err), FT_EIO, "a folder is refused");
    has(err.text, "/tmp: cannot read: Is a directory", "it says why");
#ifdef HAVE_LIBPNG
    unsigned char *png = folder_read(path_of("rgb.png"), &bytes);
    refuses(png, bytes, 40 * 30 - 1, FT_ELIMIT, "x: 40 x 30 pixels, at most 1199 are supported",
            "more pixels than are allowed");
    refuses(png, 100, 1 << 20, FT_EFORMAT, "x: the file ends too early", "half a PNG");
    png[20] ^= 1;
    refuses(png, bytes, 1 << 20, FT_EFORMAT, "x: ", "a checksum that is wrong");
    free(png);
#endif
#ifdef HAVE_LIBJPEG
    unsigned char *jpeg = folder_read(path_of("bad-cmyk.jpg"), &bytes);
    refuses(jpeg, bytes, 1 << 20, FT_EUNSUPPORTED, "expected grey, YCbCr or RGB", "CMYK");
    free(jpeg);
    jpeg = folder_read(path_of("photo.jpg"), &bytes);
    refuses(jpeg, bytes - 200, 1 << 20, FT_EFORMAT, "x: Premature end of JPEG file", "half a JPEG");
    refuses(jpeg, bytes, 1199, FT_ELIMIT, "x: 40 x 30 pixels, at most 1199 are supported",
            "more pixels than are allowed");
    free(jpeg);
#endif
    test_damage("palette4.png");
    test_damage("rgb.png");
    test_damage("photo.jpg");
    test_damage("progressive.jpg");
}

/* ---- preprocessor_config.json ------------------------------------------------------------- */

static ft_status parse(ft_image_processor *out, const char *text, bool distilled)
{
    return ft_image_processor_parse(out, text, strlen(text), "p.json", distilled, &err);
}

static void test_defaults(void)
{
    ft_image_processor p;
    ok(parse(&p, "{}", false) == FT_OK && p.do_resize && p.width == 224 && p.height == 224 &&
           p.resample == FT_RESAMPLE_BILINEAR && !p.do_center_crop &&
           p.rescale_factor == 1.0f / 255.0f && p.mean[1] == 0.5f && p.std[2] == 0.5f,
       "ViT: 224 x 224, bilinear, from -1 to 1");
    ok(parse(&p, "{}", true) == FT_OK && p.width == 256 && p.resample == FT_RESAMPLE_BICUBIC &&
           p.do_center_crop && p.crop_width == 224 && p.crop_height == 224,
       "DeiT: 256 x 256, bicubic, of which 224 x 224 are the middle");
    ok(parse(&p, "{\"feature_extractor_type\": \"DeiTFeatureExtractor\"}", false) == FT_OK &&
           p.do_center_crop &&
           parse(&p, "{\"image_processor_type\": \"ViTImageProcessorFast\"}", true) == FT_OK &&
           !p.do_center_crop,
       "a name in the file decides");
    ok(parse(&p,
             "{\"size\": {\"height\": 5, \"width\": 7}, \"resample\": 1, \"do_rescale\": false,"
             " \"image_mean\": [1, 2, 3], \"image_std\": 4}",
             false) == FT_OK &&
           p.width == 7 && p.height == 5 && p.resample == FT_RESAMPLE_LANCZOS &&
           p.rescale_factor == 1.0f && p.mean[2] == 3.0f && p.std[0] == 4.0f,
       "all of it is read");
    ok(parse(&p, "{\"size\": 32, \"do_normalize\": false, \"rescale_factor\": 0.5}", false) ==
               FT_OK &&
           p.width == 32 && p.height == 32 && p.rescale_factor == 0.5f && p.mean[0] == 0.0f &&
           p.std[0] == 1.0f,
       "one number is both sizes; what is not normalized keeps mean and deviation");
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "{", "p.json: line 1: " },
        { "[]", "p.json: is not a JSON object" },
        { "{\"image_processor_type\": \"CLIPImageProcessor\"}",
          "p.json: image_processor_type: found \"CLIPImageProcessor\", expected ViTImageProcessor "
          "or DeiTImageProcessor" },
        { "{\"size\": {\"shortest_edge\": 224}}",
          "p.json: size: found an object, expected a number, or an object of width and height" },
        { "{\"size\": 0}", "p.json: size: found 0, expected an integer from 1 to 65536" },
        { "{\"size\": {\"height\": 3, \"width\": 2.5}}",
          "p.json: size: found 2.5, expected an integer from 1 to 65536" },
        { "{\"crop_size\": \"all\"}",
          "p.json: crop_size: found \"all\", expected an integer from 1 to 65536" },
        { "{\"resample\": 0}",
          "p.json: resample: found 0, expected 1 (Lanczos), 2 (bilinear) or 3 (bicubic)" },
        { "{\"do_resize\": 1}", "p.json: do_resize: found 1, expected true or false" },
        { "{\"image_mean\": [1, 2]}",
          "p.json: image_mean: found an array, expected three numbers" },
        { "{\"image_std\": [1, 0, 1]}",
          "p.json: image_std: found an array, expected three numbers above 0" },
        { "{\"rescale_factor\": \"1\"}", "p.json: rescale_factor: found \"1\", expected a number" },
        { "{\"do_pad\": true}",
          "p.json: do_pad: found true, expected no such field, because it may change the result" },
    };
    for (size_t i = 0; i < FT_COUNT(bad); i++) {
        ft_image_processor p;
        bool refused = parse(&p, bad[i].text, false) != FT_OK;
        has(refused ? err.text : "accepted", bad[i].why, "refused: %s", bad[i].text);
    }
}

/* 4 x 2 pixels that count up. */
static void test_steps(void)
{
    uint8_t samples[24];
    float out[6];
    ft_image_processor p;
    const ft_image image = { 4, 2, samples };
    for (size_t i = 0; i < sizeof samples; i++)
        samples[i] = (uint8_t) (10 * i);
    if (parse(&p,
              "{\"do_resize\": false, \"do_center_crop\": true, \"crop_size\": {\"height\": 1, "
              "\"width\": 2}, \"image_mean\": [0, 0.5, 1], \"image_std\": [1, 0.5, 2]}",
              false) != FT_OK ||
        ft_image_processor_run(&p, &image, "x", out, &err) != FT_OK)
        bail_out("%s", err.text);
    const float k = 1.0f / 255.0f;
    ok(out[0] == 30.0f * k && out[1] == 60.0f * k && out[2] == (40.0f * k - 0.5f) / 0.5f &&
           out[5] == (80.0f * k - 1.0f) / 2.0f,
       "the middle, colour by colour, scaled and normalized");
    is_int(parse(&p, "{\"do_resize\": false, \"do_center_crop\": true, \"crop_size\": 3}", false),
           FT_OK, "a middle of 3 x 3");
    is_int(ft_image_processor_run(&p, &image, "x", out, &err), FT_EUNSUPPORTED,
           "is not in 4 x 2 pixels");
    is_str(err.text, "x: 4 x 2 pixels, too small for a center crop of 3 x 3", "it says why");
}

int main(void)
{
    test_golden();
    test_bad();
    test_defaults();
    test_refusals();
    test_steps();
    return done_testing();
}
