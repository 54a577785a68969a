/*
 * jpeg.c - JPEG through libjpeg-turbo.
 *
 * The library reports errors through our callback, which calls longjmp; all owned resources are in
 * the caller's frame or in the image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/data/images/decoder.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#ifdef HAVE_LIBJPEG

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>

/*
 * More scans than any encoder writes. Each scan makes the library process the whole image, but
 * takes hardly any bytes of the file, so a large image may have fewer: 16 for 32 million pixels.
 */
enum { MAX_SCANS = 200, MAX_SCANNED_PIXELS = 1 << 29, CHUNK_BYTES = 1 << 14 };

typedef struct reader {
    struct jpeg_error_mgr errors; /* first member: callbacks receive a pointer to it */
    struct jpeg_progress_mgr progress;
    struct jpeg_source_mgr source;
    JOCTET chunk[CHUNK_BYTES];
    struct jpeg_decompress_struct jpeg;
    ft_image_source *from;
    jmp_buf caller;
    ft_status status;
} reader;

static reader *reader_of(j_common_ptr jpeg)
{
    return jpeg->client_data;
}

/* Leave the library; the error is already set. */
static void abort_decode(reader *r, ft_status status)
{
    r->status = status;
    longjmp(r->caller, 1);
}

/* Leave the library unless the status is FT_OK. */
static void check_status(reader *r, ft_status status)
{
    if (status != FT_OK)
        abort_decode(r, status);
}

static void on_error(j_common_ptr jpeg)
{
    reader *r = reader_of(jpeg);
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    abort_decode(r, ft_fail(r->from->err, FT_EFORMAT, "%s: %s", r->from->label, text));
}

/* Warnings about lost samples are errors: the library would fill them with grey. */
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
    size_t pixels = r->from->out->width * r->from->out->height;
    size_t max_scans = ft_min_size(MAX_SCANS, MAX_SCANNED_PIXELS / pixels);
    if ((size_t) r->jpeg.input_scan_number > max_scans)
        abort_decode(r, ft_fail(r->from->err, FT_ELIMIT,
                                "%s: has more than %zu scans, the limit for this size",
                                r->from->label, max_scans));
}

/* ---- The file ------------------------------------------------------------------------------- */

static void on_nothing(j_decompress_ptr jpeg)
{
    (void) jpeg;
}

/* The next chunk; the end of the file is a warning of the library, and an error here. */
static boolean on_read(j_decompress_ptr jpeg)
{
    reader *r = jpeg->client_data;
    check_status(r,
                 ft_image_source_read(r->from, r->chunk, CHUNK_BYTES, &r->source.bytes_in_buffer));
    r->source.next_input_byte = r->chunk;
    if (r->source.bytes_in_buffer == 0)
        WARNMS(jpeg, JWRN_JPEG_EOF);
    return TRUE;
}

static void on_skip(j_decompress_ptr jpeg, long bytes)
{
    struct jpeg_source_mgr *source = jpeg->src;
    for (; bytes > (long) source->bytes_in_buffer; (void) on_read(jpeg))
        bytes -= (long) source->bytes_in_buffer;
    if (bytes > 0) {
        source->next_input_byte += bytes;
        source->bytes_in_buffer -= (size_t) bytes;
    }
}

/* The signature has already been read. */
static void set_source(reader *r)
{
    r->source = (struct jpeg_source_mgr){ .next_input_byte = r->from->signature,
                                          .bytes_in_buffer = FT_IMAGE_SIGNATURE,
                                          .init_source = on_nothing,
                                          .fill_input_buffer = on_read,
                                          .skip_input_data = on_skip,
                                          .resync_to_restart = jpeg_resync_to_restart,
                                          .term_source = on_nothing };
    r->jpeg.src = &r->source;
}

/* ---- The image ------------------------------------------------------------------------------ */

static const char *color_space_name(J_COLOR_SPACE space)
{
    return space == JCS_CMYK ? "CMYK" : space == JCS_YCCK ? "YCCK" : "unknown";
}

static void check_color_space(reader *r)
{
    J_COLOR_SPACE space = r->jpeg.jpeg_color_space;
    if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB)
        abort_decode(r, ft_fail(r->from->err, FT_EUNSUPPORTED,
                                "%s: colours are %s, expected grey, YCbCr or RGB", r->from->label,
                                color_space_name(space)));
}

/* Progressive images buffer all coefficients before the first pixel. */
static void check_coefficients(reader *r)
{
    const struct jpeg_decompress_struct *jpeg = &r->jpeg;
    size_t bytes = (size_t) 3 * jpeg->image_width * jpeg->image_height;
    for (int i = 0; i < jpeg->num_components; i++) {
        const jpeg_component_info *component = &jpeg->comp_info[i];
        bytes += (size_t) component->width_in_blocks * component->height_in_blocks * sizeof(JBLOCK);
    }
    check_status(r, ft_image_check_memory(r->from, bytes));
}

static void read_pixels(reader *r)
{
    struct jpeg_decompress_struct *jpeg = &r->jpeg;
    set_source(r);
    (void) jpeg_read_header(jpeg, TRUE);
    check_color_space(r);
    jpeg->out_color_space = JCS_RGB;
    if (jpeg_has_multiple_scans(&r->jpeg))
        check_coefficients(r);
    check_status(r, ft_image_source_alloc(r->from, jpeg->image_width, jpeg->image_height));
    (void) jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = r->from->out->rgb + (size_t) jpeg->output_scanline * 3 * jpeg->image_width;
        (void) jpeg_read_scanlines(jpeg, &row, 1);
    }
    (void) jpeg_finish_decompress(jpeg);
}

/* Locals of the function that calls setjmp() must not change before longjmp(), so it has none. */
static void decode_protected(reader *r)
{
    if (setjmp(r->caller) != 0)
        return;
    jpeg_create_decompress(&r->jpeg); /* keeps `err` and `client_data` */
    r->jpeg.progress = &r->progress;
    read_pixels(r);
}

ft_status ft_image_decode_jpeg(ft_image_source *from)
{
    reader r = { .from = from, .progress = { .progress_monitor = on_progress } };
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.jpeg.client_data = &r;
    r.errors.error_exit = on_error;
    r.errors.emit_message = on_message;
    decode_protected(&r);
    jpeg_destroy_decompress(&r.jpeg);
    return r.status;
}

#else

ft_status ft_image_decode_jpeg(ft_image_source *from)
{
    return ft_fail(
        from->err, FT_EUNSUPPORTED,
        "%s: is a JPEG image, but this build has no JPEG support: it was configured without "
        "libjpeg",
        from->label);
}

#endif
