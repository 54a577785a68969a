/*
 * times_file.h - read the times of a model in all schemes, as `ft-bench -i FILE --ops --json`
 * writes them.
 *
 * The file is one JSON object.  Read from it are
 *
 *   device        {name, detail}, texts for messages
 *   threads       of the CPU; missing on other devices
 *   scheme_times  {format, group, passes, ops}
 *     format      1
 *     group       group size of the group-wise schemes; 0: the entire row
 *     passes      [{scheme, pass, sequences, length, us, count}], one of each scheme, all of the
 *                 same shape: the median time of a forward pass or decode step in microseconds, of
 *                 `count` runs
 *     ops         [{scheme, kind, name, us, count}], the operations of these passes.  The name is
 *                 that of the output; a linear has the name of its weight, and its rows and cols
 *
 * Operations are timed one by one, on a GPU neither fused nor overlapped.  The times of a scheme
 * are therefore scaled, so that they add up to that of its pass.
 *
 * The file may come from anywhere: its size is bounded, and so is the time to read it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_CALIBRATE_TIMES_TIMES_FILE_H
#define FT_CALIBRATE_TIMES_TIMES_FILE_H

#include "runtime/base/sha256.h"
#include "runtime/ft.h"

#include <jansson.h>

typedef enum ft_timed_scheme {
    FT_TIMED_FLOAT,
    FT_TIMED_INT8, /* w8a8: static scales */
    FT_TIMED_W8A8_DYNAMIC,
    FT_TIMED_W8A8_BLOCK,
    FT_TIMED_W8A16,
    FT_TIMED_W4A16,
    FT_TIMED_SCHEMES
} ft_timed_scheme;

/* As ft-bench writes it: "int8". */
const char *ft_timed_scheme_name(ft_timed_scheme scheme);

typedef struct ft_op_time {
    ft_timed_scheme scheme;
    const char *kind, *name; /* borrowed from the file */
    int64_t rows, cols;      /* of the weight of a linear; others: 0 */
    double us;               /* scaled */
} ft_op_time;

typedef struct ft_measured_times {
    const char *path; /* borrowed */
    json_t *json;
    const char *device, *detail, *pass; /* of `json`; pass: "forward" or "decode" */
    int64_t threads;                    /* 0: not a CPU */
    int64_t sequences, length;
    int64_t group;
    double pass_us[FT_TIMED_SCHEMES]; /* 0: not timed */
    ft_op_time *op;                   /* [ops], in the order of the file */
    size_t ops;
    uint64_t bytes; /* size of the file, and its digest */
    uint8_t sha256[FT_SHA256_BYTES];
} ft_measured_times;

/*
 * fini also accepts a zeroed or failed one.  FT_EIO; FT_EFORMAT: not such a file, or a time that is
 * none; FT_EUNSUPPORTED: another format; FT_EARG: several passes of a scheme; FT_ELIMIT; FT_ENOMEM.
 */
FT_MUST_USE ft_status ft_measured_times_read(ft_measured_times *times, const char *path,
                                             ft_error *err);
void ft_measured_times_fini(ft_measured_times *times);

/* The same for a file in memory. */
FT_MUST_USE ft_status ft_measured_times_parse(ft_measured_times *times, const char *path,
                                              const void *text, size_t bytes, ft_error *err);

#endif
