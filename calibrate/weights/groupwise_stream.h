/*
 * groupwise_stream.h - a group-wise quantized matrix (values, scales, zero points) as a byte stream
 * for a writer.
 *
 * Memory holds one panel per thread, and the scales and zero points of one matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_GROUPWISE_STREAM_H
#define FT_CALIBRATE_WEIGHTS_GROUPWISE_STREAM_H

#include "calibrate/weights/groupwise.h"
#include "calibrate/weights/weights.h"
#include "kernels/linalg.h"

/* Sums of squares of the weights and of their errors. */
typedef struct ft_groupwise_error {
    double signal, noise;

    /*
     * The same for the outputs, over the inputs described by `moments`; with `importance` alone, as
     * if input columns were uncorrelated; else 0.
     */
    double out_signal, out_noise;
} ft_groupwise_error;

typedef struct ft_groupwise_stream {
    const ft_weight_matrix *weights;     /* borrowed */
    const ft_groupwise_options *options; /* borrowed */
    ft_groupwise_error error;            /* of the panels quantized so far; remains valid */

    /* Private to the stream. */
    size_t position;                 /* bytes read so far */
    size_t panels, n_done;           /* total, and quantized so far */
    size_t batch;                    /* panels quantized at a time, one per thread */
    ft_linalg linalg;                /* for one panel */
    ft_groupwise_panel *panel;       /* [batch] */
    ft_groupwise_error *panel_error; /* [batch] */
    void *allocation; /* the allocation of everything below, and of the panels' arrays */
    uint32_t *quantized; /* [batch] panels */
    uint16_t *scale;  /* [groups, padded rows] */
    uint8_t *zero;    /* the same; NULL: symmetric */
} ft_groupwise_stream;

/*
 * Bytes of the three sections, in this order; the last is 0 if zero points are not stored.
 */
typedef struct ft_groupwise_bytes {
    size_t quantized, scales, zeros;
} ft_groupwise_bytes;

ft_groupwise_bytes ft_groupwise_stream_bytes(const ft_weight_matrix *weights,
                                             const ft_groupwise_options *options);

/*
 * Opens a stream. FT_ENOMEM; FT_EUNSUPPORTED for a dtype that is not F32, F16 or BF16. fini also
 * accepts a failed or zeroed stream.
 */
ft_status ft_groupwise_stream_init(ft_groupwise_stream *stream, const ft_weight_matrix *weights,
                                   const ft_groupwise_options *options, int threads, ft_error *err);
void ft_groupwise_stream_fini(ft_groupwise_stream *stream);

/*
 * Reads up to `size` bytes, *got in total, 0 at the end; they depend neither on `size` nor on the
 * number of threads. Errors: FT_EFORMAT for a NaN, an infinity or a magnitude that no float16 scale
 * can represent.
 */
ft_status ft_groupwise_stream_read(ft_groupwise_stream *stream, void *bytes, size_t size,
                                   size_t *n_read, ft_error *err);

#endif
