/*
 * oracle.c - the reference formulas.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/ops/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ------------------------------------------------------------------------------ */

/* A binary format of 16 bits: sign, exponent, and `mantissa` bits. */
static double small_float(uint16_t bits, int mantissa)
{
    int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> mantissa & ((1 << exponent_bits) - 1);
    double fraction = ldexp(bits & ((1 << mantissa) - 1), -mantissa);
    double value;
    if (exponent == (1 << exponent_bits) - 1)
        value = fraction > 0.0 ? (double) NAN : (double) INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias);
    else
        value = ldexp(1.0 + fraction, exponent - bias);
    return bits & 0x8000 ? -value : value;
}

double oracle_f16(uint16_t bits)
{
    return small_float(bits, 10);
}

double oracle_bf16(uint16_t bits)
{
    return small_float(bits, 7);
}

double oracle_activation(const char *name, double x)
{
    const double pi = 3.14159265358979323846;
    if (strcmp(name, "none") == 0)
        return x;
    if (strcmp(name, "gelu") == 0 || strcmp(name, "gelu_approx") == 0)
        return x * 0.5 * erfc(-x / sqrt(2.0));
    if (strcmp(name, "gelu_tanh") == 0)
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / pi) * (x + 0.044715 * x * x * x)));
    if (strcmp(name, "relu") == 0)
        return x > 0.0 ? x : 0.0;
    if (strcmp(name, "tanh") == 0)
        return tanh(x);
    if (strcmp(name, "silu") == 0)
        return x / (1.0 + exp(-x));
    return (double) NAN;
}

double oracle_quantize(double value, double scale)
{
    double code = nearbyint(value / scale);
    return fmin(fmax(code, -127.0), 127.0);
}

/* ---- Rows --------------------------------------------------------------------------------- */

void oracle_linear(double *y, double *size, const double *x, const double *w, const double *bias,
                   size_t m, size_t n, size_t k)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = bias == NULL ? 0.0 : bias[j], magnitude = fabs(sum);
            for (size_t d = 0; d < k; d++) {
                double product = x[i * k + d] * w[j * k + d];
                sum += product;
                magnitude += fabs(product);
            }
            y[i * n + j] = sum;
            if (size != NULL)
                size[i * n + j] = magnitude;
        }
}

void oracle_norm(double *y, const double *x, const double *weight, const double *bias, double eps,
                 size_t n)
{
    double mean = 0.0, variance = 0.0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double) n;
    for (size_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double) n;
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(variance + eps) * weight[i] + bias[i];
}

void oracle_softmax(double *y, const double *x, double scale, size_t n)
{
    double max = -(double) INFINITY, sum = 0.0;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, scale * x[i]);
    for (size_t i = 0; i < n; i++)
        sum += y[i] = exp(scale * x[i] - max);
    for (size_t i = 0; i < n; i++)
        y[i] /= sum;
}

void oracle_normalize(double *y, const double *x, size_t n)
{
    double square = 0.0;
    for (size_t i = 0; i < n; i++)
        square += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        y[i] = square > 0.0 ? x[i] / sqrt(square) : 0.0;
}

/* ---- Attention ---------------------------------------------------------------------------- */

size_t oracle_probabilities(const oracle_attention *a)
{
    size_t count = 0;
    for (size_t s = 0; s < a->sequences; s++) {
        size_t length = (size_t) (a->start[s + 1] - a->start[s]);
        count += a->heads * length * length;
    }
    return count;
}

/* Quantizes a row of scores, the largest to 127. */
static void encode(double *row, bool *doubtful, double scale, size_t length)
{
    double max = -(double) INFINITY;
    for (size_t key = 0; key < length; key++)
        max = fmax(max, row[key]);
    for (size_t key = 0; key < length; key++) {
        double code = 127.0 * exp(scale * (row[key] - max));
        doubtful[key] = fabs(code - floor(code) - 0.5) < 0.05;
        row[key] = rint(code);
    }
}

/* One column of a context, a weighted mean of the values; `sum` is the sum of the weights. */
static double mean_value(const oracle_attention *a, const double *row, double sum, size_t first,
                         size_t length, size_t col)
{
    double mean = 0.0;
    for (size_t key = 0; key < length; key++)
        mean += row[key] * a->v[(first + key) * a->cols + col];
    return mean / sum;
}

static double doubt_of(const oracle_attention *a, const bool *doubtful, double sum, double mean,
                       size_t first, size_t length, size_t col)
{
    double moved = 0.0;
    for (size_t key = 0; key < length; key++) {
        moved += doubtful[key] ? fabs(a->v[(first + key) * a->cols + col] - mean) : 0.0;
        sum -= doubtful[key];
    }
    return moved / sum;
}

/* One query of one head: probabilities over keys first .. first + length - 1, and its context. */
static void attend_query(double *context, double *row, bool *doubtful, const oracle_attention *a,
                         size_t first, size_t length, size_t query, size_t col)
{
    size_t dim = a->cols / a->heads;
    double sum = 0.0;
    for (size_t key = 0; key < length; key++) {
        row[key] = 0.0;
        for (size_t d = col; d < col + dim; d++)
            row[key] += a->q[(first + query) * a->cols + d] * a->k[(first + key) * a->cols + d];
    }
    if (a->quantized)
        encode(row, doubtful, a->score_scale, length);
    else
        oracle_softmax(row, row, a->score_scale, length);
    for (size_t key = 0; key < length; key++)
        sum += row[key];
    for (size_t d = col; d < col + dim; d++) {
        size_t at = (first + query) * a->cols + d;
        double mean = mean_value(a, row, sum, first, length, d);
        context[at] = mean * a->value_scale;
        if (a->doubt != NULL)
            a->doubt[at] = doubt_of(a, doubtful, sum, mean, first, length, d) * a->value_scale;
    }
}

void oracle_attend(double *context, double *probs, const oracle_attention *a)
{
    double *memory = calloc(oracle_probabilities(a) + 1, sizeof *memory), *row = memory;
    bool *doubtful = calloc((size_t) a->start[a->sequences] + 1, sizeof *doubtful);
    for (size_t s = 0; s < a->sequences; s++) {
        size_t first = (size_t) a->start[s], length = (size_t) a->start[s + 1] - first;
        for (size_t head = 0; head < a->heads; head++)
            for (size_t query = 0; query < length; query++, row += length)
                attend_query(context, row, doubtful, a, first, length, query,
                             head * (a->cols / a->heads));
    }
    if (probs != NULL)
        memcpy(probs, memory, oracle_probabilities(a) * sizeof *memory);
    free(doubtful);
    free(memory);
}

/* ---- Layout ------------------------------------------------------------------------------- */

size_t oracle_col4(int8_t *out, const int8_t *quantized, size_t n, size_t k, int8_t pad)
{
    size_t at = 0;
    for (size_t block = 0; block < k; block += 32)
        for (size_t tile = 0; tile < n; tile += 8)
            for (size_t odd = 0; odd < 2; odd++)
                for (size_t group = 0; group < 32; group += 4)
                    for (size_t pair = 0; pair < 8; pair += 2)
                        for (size_t c = 0; c < 4; c++, at++) {
                            size_t row = tile + pair + odd, col = block + group + c;
                            if (out != NULL)
                                out[at] = row < n && col < k ? quantized[row * k + col] : pad;
                        }
    return at;
}
