/*
 * amax.h - the calibrated range of every quantized activation, by name, and FasterTransformer's
 * amaxList.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_CONTAINER_AMAX_H
#define FT_RUNTIME_CONTAINER_AMAX_H

#include "runtime/ft.h"

#pragma GCC visibility push(default) /* linked by the tools: FT_PRIVATE */

enum {
    FT_AMAX_METHOD_SIZE = 24, /* bytes of a method's name, including its terminator */
    FT_AMAX_MAX_COUNT = 65536 /* calibration points of one model */
};

/* How the recipe of an int8 artifact says that activations are quantized; "activations". */
#define FT_INT8_PER_TENSOR "int8 per tensor"
#define FT_INT8_PER_TOKEN "int8 per token"                     /* all; there is no amax.tsv */
#define FT_INT8_PER_TENSOR_OR_TOKEN "int8 per tensor or token" /* as amax.tsv says */

/* The method of a point that every forward pass quantizes with a scale per token: amax is what
 * calibration saw, and no scale is made of it. */
#define FT_AMAX_PER_TOKEN "per-token"

typedef struct ft_amax_entry {
    char *name;                       /* of the calibration point: "layer.3.ffn.gelu" */
    float amax;                       /* int8 -127..127 represents -amax..amax */
    char method[FT_AMAX_METHOD_SIZE]; /* calibration method that chose it: "percentile" */
    double clipped;                   /* fraction of the samples with a larger magnitude, 0..1 */
    double sqnr;                      /* of the quantized samples, dB; may be infinite */
} ft_amax_entry;

typedef struct ft_amax_table {
    ft_amax_entry *entry; /* in insertion order */
    size_t count;
    size_t capacity;
    uint32_t *by_name; /* indices, sorted by name */
} ft_amax_table;

/* An empty table, or NULL when out of memory. */
ft_amax_table *ft_amax_table_new(void);
void ft_amax_table_free(ft_amax_table *list); /* accepts NULL */

/*
 * Append a copy of *entry. FT_EFORMAT for a duplicate or invalid name, an amax that is not positive
 * and finite or whose scale amax / 127 underflows, a clipped fraction outside 0..1, or an SQNR that
 * is NaN.
 */
ft_status ft_amax_table_add(ft_amax_table *list, const ft_amax_entry *entry, ft_error *err);

/* Whether the method of an entry is FT_AMAX_PER_TOKEN. */
bool ft_amax_entry_is_per_token(const ft_amax_entry *entry);

/* NULL when there is no entry of that name. */
const ft_amax_entry *ft_amax_table_find(const ft_amax_table *list, const char *name);

/*
 * amax.tsv: a header line, then a line for each entry: name, amax, method, clipped, sqnr. Numbers
 * have enough digits to restore the same amax, independent of the locale. `label` names the file in
 * error messages, which give the line. The caller frees *text.
 */
ft_status ft_amax_table_parse(ft_amax_table **out, const char *label, const void *text,
                              size_t bytes, ft_error *err);
ft_status ft_amax_table_format(const ft_amax_table *list, char **text, size_t *bytes,
                               ft_error *err);

/* ---- FasterTransformer v3.0's amaxList of one encoder layer ------------------------------- */

/* Activations, in list order. */
enum {
    FT_AMAX_LIST_INPUT,   /* layer input, which Q, K and V share */
    FT_AMAX_LIST_Q,       /* after bias */
    FT_AMAX_LIST_K,       /* after bias */
    FT_AMAX_LIST_V,       /* after bias */
    FT_AMAX_LIST_SOFTMAX, /* attention probabilities */
    FT_AMAX_LIST_CONTEXT, /* probabilities times V */
    FT_AMAX_LIST_NORM1,   /* output of the norm after attention */
    FT_AMAX_LIST_GELU,    /* inside the feed-forward network */
    FT_AMAX_LIST_NORM2,   /* output of the layer: input of the next one */
    FT_AMAX_LIST_ACTIVATIONS
};

/* Weights, in list order; one amax per output channel. */
enum {
    FT_AMAX_LIST_WQ,   /* [H] */
    FT_AMAX_LIST_WK,   /* [H] */
    FT_AMAX_LIST_WV,   /* [H] */
    FT_AMAX_LIST_WO,   /* [H] */
    FT_AMAX_LIST_UP,   /* [4H] */
    FT_AMAX_LIST_DOWN, /* [H] */
    FT_AMAX_LIST_WEIGHTS
};

enum { FT_AMAX_LIST_HEADER = 80 }; /* floats before the weights: four per activation, then zeros */

typedef struct ft_amax_layer {
    size_t hidden, ffn; /* H, and the feed-forward dimension, which must be 4H */
    float activation[FT_AMAX_LIST_ACTIVATIONS];
    const float *weight[FT_AMAX_LIST_WEIGHTS];
} ft_amax_layer;

/* Length of the list: 80 + 9H floats; 0 on overflow. */
size_t ft_amax_list_size(size_t hidden);

/*
 * Write the list of one layer into list[0..ft_amax_list_size(hidden)). Each activation becomes
 * amax, amax/127, amax/127/127, 127/amax, computed in double and rounded once; four zeros for 0.
 * FT_EUNSUPPORTED when ffn is not 4H, because the list cannot represent such a layer.
 */
ft_status ft_amax_list_write_layer(float *list, const ft_amax_layer *layer, ft_error *err);

/*
 * Describe list[index]: "q after bias: amax / 127", "up weight amax, channel 12", "reserved".
 * Written into `text`, which is returned.
 */
enum { FT_AMAX_LIST_DESCRIPTION_SIZE = 64 };
char *ft_amax_list_describe(char text[FT_AMAX_LIST_DESCRIPTION_SIZE], size_t hidden, size_t index);

#pragma GCC visibility pop

#endif
