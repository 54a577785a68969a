/*
 * jpeg.c - JPEG through libjpeg-turbo.
 *
 * The library reports errors by our function, which jumps; everything that is owned lies in the
 * caller's frame or in the image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/images/decoder.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#ifdef HAVE_LIBJPEG

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>

/* More scans than any encoder writes: each makes the library go through all of the image. */
enum { MOST_SCANS = 200 };

typedef struct reader {
    struct jpeg_error_mgr errors; /* first: the library hands back a pointer to it */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    const ft_image_source *from;
    jmp_buf caller;
    ft_status status;
} reader;

static reader *reader_of(j_common_ptr jpeg)
{
    return jpeg->client_data;
}

/* Leave the library with a status that is already told. */
static void give_up(reader *r, ft_status status)
{
    r->status = status;
    longjmp(r->caller, 1);
}

static void on_error(j_common_ptr jpeg)
{
    reader *r = reader_of(jpeg);
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    give_up(r, ft_fail(r->from->err, FT_EFORMAT, "%s: %s", r->from->what, text));
}

/* Warnings that mean lost samples are errors: the library would make grey of them. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0 &&
        (jpeg->err->msg_code == JWRN_JPEG_EOF || jpeg->err->msg_code == JWRN_HIT_MARKER ||
         jpeg->err->msg_code == JWRN_HUFF_BAD_CODE))
        on_error(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
    reader *r = reader_of(jpeg);
    if (r->jpeg.input_scan_number > MOST_SCANS)
        give_up(r, ft_fail(r->from->err, FT_ELIMIT, "%s: has more than %d scans", r->from->what,
                           MOST_SCANS));
}

static const char *colours_of(J_COLOR_SPACE space)
{
    return space == JCS_CMYK ? "CMYK" : space == JCS_YCCK ? "YCCK" : "unknown";
}

static void check_colours(reader *r)
{
    J_COLOR_SPACE space = r->jpeg.jpeg_color_space;
    if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB)
        give_up(r, ft_fail(r->from->err, FT_EUNSUPPORTED,
                           "%s: colours are %s, expected grey, YCbCr or RGB", r->from->what,
                           colours_of(space)));
}

static void read_pixels(reader *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    jpeg_mem_src(jpeg, r->from->data, (unsigned long) r->from->bytes);
    (void) jpeg_read_header(jpeg, TRUE);
    check_colours(r);
    jpeg->out_color_space = JCS_RGB;
    ft_status status = ft_image_begin(r->from, jpeg->image_width, jpeg->image_height);
    if (status != FT_OK)
        give_up(r, status);
    (void) jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = r->from->out->rgb + (size_t) jpeg->output_scanline * 3 * jpeg->image_width;
        (void) jpeg_read_scanlines(jpeg, &row, 1);
    }
    (void) jpeg_finish_decompress(jpeg);
}

/* What is changed between the two returns of setjmp() must not be its function's own. */
static void run(reader *r)
{
    if (setjmp(r->caller) != 0)
        return;
    jpeg_create_decompress(&r->jpeg); /* keeps `err` and `client_data` */
    r->jpeg.progress = &r->progress;
    read_pixels(r);
}

ft_status ft_image_decode_jpeg(const ft_image_source *from)
{
    reader r = { .from = from, .progress = { .progress_monitor = on_progress } };
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.jpeg.client_data = &r;
    r.errors.error_exit = on_error;
    r.errors.emit_message = on_message;
    run(&r);
    jpeg_destroy_decompress(&r.jpeg);
    return r.status;
}

#else

ft_status ft_image_decode_jpeg(const ft_image_source *from)
{
    return ft_fail(from->err, FT_EUNSUPPORTED,
                   "%s: is a JPEG image, which this build cannot read: it was made without "
                   "libjpeg",
                   from->what);
}

#endif
