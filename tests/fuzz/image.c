/*
 * image.c - fuzz target: arbitrary files decoded as images.
 *
 * Input that begins with a brace is parsed as preprocessor_config.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/processor.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { MAX_SIZE = 1 << 16, SIZE = 9 };

/* A decoded image has all its pixels and can be resized to the requested size. */
static void read_image(const uint8_t *data, size_t size)
{
    ft_image image, small;
    ft_error err;
    if (ft_image_decode(&image, data, size, "fuzz", MAX_SIZE, &err) != FT_OK) {
        require(strncmp(err.text, "fuzz: ", 6) == 0 && image.rgb == NULL);
        return;
    }
    require(image.width * image.height <= MAX_SIZE);
    require(ft_image_resize(&small, &image, SIZE, SIZE - 2, FT_RESAMPLE_BICUBIC, &err) == FT_OK);
    require(small.width == SIZE && small.height == SIZE - 2);
    ft_image_fini(&small);
    ft_image_fini(&image);
}

/* An accepted processor gives finite values for an image, or an error. */
static void read_processor(const uint8_t *data, size_t size)
{
    static uint8_t samples[SIZE * SIZE * 3];
    const ft_image image = { SIZE, SIZE, samples };
    ft_image_processor p;
    ft_error err;
    if (ft_image_processor_parse(&p, data, size, "fuzz", false, &err) != FT_OK) {
        require(strncmp(err.text, "fuzz: ", 6) == 0);
        return;
    }
    size_t width, height;
    ft_image_processor_output_size(&p, &image, &width, &height);
    require(width > 0 && height > 0);
    if (width * height > MAX_SIZE || (p.do_resize && p.width * p.height > MAX_SIZE))
        return; /* slow, without covering more code */
    float *out = malloc(3 * width * height * sizeof *out);
    require(out != NULL);
    if (ft_image_processor_run(&p, &image, "fuzz", out, &err) == FT_OK)
        require(!isnan(out[0]));
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == '{')
        read_processor(data, size);
    else
        read_image(data, size);
    return 0;
}
