/*
 * png.c - PNG through libpng.
 *
 * libpng reports errors by longjmp. All owned resources are in the caller's frame (the reader) or
 * in the image (the pixels), so none are lost.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/decoder.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#ifdef HAVE_LIBPNG

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    ft_image_source *from;
    png_structp png;
    png_infop info;
    png_bytep *row; /* [height]; NULL until the size is known */
    ft_status status;
} reader;

static void on_error(png_structp png, png_const_charp message)
{
    reader *r = png_get_error_ptr(png);
    r->status = ft_fail(r->from->err, FT_EFORMAT, "%s: %s", r->from->label, message);
    png_longjmp(png, 1);
}

/* Ignore warnings: they do not concern the samples. */
static void on_warning(png_structp png, png_const_charp message)
{
    (void) png, (void) message;
}

/* Leave the library; the error is already set. */
static void abort_decode(reader *r, ft_status status)
{
    r->status = status;
    png_longjmp(r->png, 1);
}

/* Leave the library unless the status is FT_OK. */
static void check_status(reader *r, ft_status status)
{
    if (status != FT_OK)
        abort_decode(r, status);
}

static void on_read(png_structp png, png_bytep out, size_t bytes)
{
    reader *r = png_get_io_ptr(png);
    size_t got;
    check_status(r, ft_image_source_read(r->from, out, bytes, &got));
    if (got < bytes)
        png_error(png, "the file ends too early");
}

/* Convert all sample formats to 8-bit RGB. */
static void request_rgb(reader *r)
{
    png_set_strip_16(r->png);
    png_set_packing(r->png);
    if (png_get_color_type(r->png, r->info) == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png);
    if ((png_get_color_type(r->png, r->info) & PNG_COLOR_MASK_COLOR) == 0) {
        png_set_expand_gray_1_2_4_to_8(r->png);
        png_set_gray_to_rgb(r->png);
    }
    png_set_strip_alpha(r->png);
    (void) png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

static void set_row_pointers(reader *r)
{
    const ft_image *image = r->from->out;
    r->row = ft_calloc(image->height, sizeof *r->row);
    if (r->row == NULL)
        abort_decode(r, ft_fail(r->from->err, FT_ENOMEM, "%s: no memory for %zu rows",
                                r->from->label, image->height));
    for (size_t i = 0; i < image->height; i++)
        r->row[i] = image->rgb + i * 3 * image->width;
}

static void read_pixels(reader *r)
{
    png_set_user_limits(r->png, 0x7fffffff, 0x7fffffff); /* our own limits have better messages */
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1); /* skip text etc. */
    png_set_sig_bytes(r->png, FT_IMAGE_SIGNATURE);
    png_set_read_fn(r->png, r, on_read);
    png_read_info(r->png, r->info);
    size_t height = png_get_image_height(r->png, r->info);
    check_status(r, ft_image_check_memory(r->from, height * png_get_rowbytes(r->png, r->info)));
    check_status(r, ft_image_source_alloc(r->from, png_get_image_width(r->png, r->info), height));
    request_rgb(r);
    if (png_get_rowbytes(r->png, r->info) != 3 * r->from->out->width)
        png_error(r->png, "cannot convert its samples to RGB");
    set_row_pointers(r);
    png_read_image(r->png, r->row);
}

/* Locals of the function that calls setjmp() must not change before longjmp(), so it has none. */
static void decode_protected(reader *r)
{
    if (setjmp(png_jmpbuf(r->png)) == 0)
        read_pixels(r);
}

ft_status ft_image_decode_png(ft_image_source *from)
{
    reader r = { .from = from };
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png != NULL ? png_create_info_struct(r.png) : NULL;
    if (r.info == NULL)
        r.status = ft_fail(from->err, FT_ENOMEM, "%s: no memory", from->label);
    else
        decode_protected(&r);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.row);
    return r.status;
}

#else

ft_status ft_image_decode_png(ft_image_source *from)
{
    return ft_fail(
        from->err, FT_EUNSUPPORTED,
        "%s: is a PNG image, but this build has no PNG support: it was configured without libpng",
        from->label);
}

#endif
