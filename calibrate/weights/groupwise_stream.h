/*
 * groupwise_stream.h - the codes, scales and zeros of a matrix in blocks, as bytes for a writer.
 *
 * As many panels are in memory as there are threads, and the scales and zeros of one matrix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_WEIGHTS_GROUPWISE_STREAM_H
#define FT_CALIBRATE_WEIGHTS_GROUPWISE_STREAM_H

#include "calibrate/weights/groupwise.h"
#include "calibrate/weights/weights.h"

/* What the matrix was, and what it lost: sums of squares. */
typedef struct ft_blocks_cost {
    double signal, noise;

    /* The same of its results, over the inputs that `moments` are sums of; where there is only
     * `importance`, as if the columns of inputs had nothing to do with each other; else 0. */
    double out_signal, out_noise;
} ft_blocks_cost;

typedef struct ft_blocks_stream {
    const ft_weights *weights; /* borrowed */
    const ft_blocks_how *how;  /* borrowed */
    ft_blocks_cost cost;       /* of the panels made so far; stays */

    /* The rest is the stream's own. */
    size_t position;         /* bytes read so far */
    size_t panels, made;     /* in all, and so far */
    size_t batch;            /* made at a time, in turn by as many threads */
    ft_blocks_panel *panel;  /* [batch] */
    ft_blocks_cost *of_each; /* [batch] */
    void *memory;            /* everything below, and what panels point to */
    uint32_t *codes;         /* [batch] panels */
    uint16_t *scale;         /* [groups, padded rows] */
    uint8_t *zero;           /* the same; NULL: symmetric */
} ft_blocks_stream;

/* Bytes of the three parts, which follow each other; the last is 0 where zeros are not stored. */
typedef struct ft_blocks_bytes {
    size_t codes, scales, zeros;
} ft_blocks_bytes;

ft_blocks_bytes ft_blocks_stream_bytes(const ft_weights *weights, const ft_blocks_how *how);

/*
 * Begin.  FT_ENOMEM; FT_EUNSUPPORTED for a dtype that is not F32, F16 or BF16.  fini takes a failed
 * or zeroed stream too.
 */
ft_status ft_blocks_stream_init(ft_blocks_stream *stream, const ft_weights *weights,
                                const ft_blocks_how *how, int threads, ft_error *err);
void ft_blocks_stream_fini(ft_blocks_stream *stream);

/*
 * Read up to `size` bytes, *got in all, 0 at the end; they do not depend on `size`, nor on threads.
 * Errors: FT_EFORMAT for a NaN, an infinity or a magnitude that no float16 scale reaches.
 */
ft_status ft_blocks_stream_read(ft_blocks_stream *stream, void *bytes, size_t size, size_t *got,
                                ft_error *err);

#endif
