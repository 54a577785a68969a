/*
 * attend_kv-check.c - the expected results of STORE_KV and ATTEND_KV, in double precision.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#ifdef HAVE_CUDA

#include "tests/cuda/attention/attend_kv.h"

#include "runtime/tensor.h"
#include "tests/tap/tap.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Cache contents ------------------------------------------------------------------------- */

copy download_cache(const world *w)
{
    copy c;
    for (int i = 0; i < 4; i++) {
        c.part[i] = must_have(w->bytes[i]);
        must(cudaMemcpy(c.part[i], w->cache[i], w->bytes[i], cudaMemcpyDeviceToHost), "download");
    }
    return c;
}

void free_copy(copy *c)
{
    for (int i = 0; i < 4; i++)
        free(c->part[i]);
}

static size_t place_of(const world *w, int text, int position, int kv_head)
{
    return ft_cache_token_row(w->page[text], (size_t) position, (size_t) kv_head,
                              (size_t) w->s.kv_heads);
}

/* The cache row of the token at a position, which with beams may belong to another beam. */
static size_t seen_at(const world *w, int text, int position, int kv_head)
{
    size_t capacity = w->max_pages * FT_PAGE_TOKENS;
    if (w->of.beam_width > 0 && !w->of.cross_kv)
        text += w->cache_indirection[(size_t) text * capacity + (size_t) position] -
                text % w->of.beam_width;
    return place_of(w, text, position, kv_head);
}

/* Element i of a key (0) or value (1). */
static double cached(const world *w, const copy *c, int part, size_t place, int i)
{
    double x = real_of(c->part[part], w->s.cache, place * (size_t) w->s.head_size + (size_t) i);
    return w->s.cache == FT_I8 ? x * (double) ((float *) c->part[part + 2])[place] : x;
}

/* ---- Storing -------------------------------------------------------------------------------- */

/* A head of queries or keys with rotary embedding applied. */
static void turned(double *out, const world *w, const void *from, size_t at, int position)
{
    int half = w->s.head_size / 2;
    for (int i = 0; i < half; i++) {
        float angle = (float) position * w->frequency[i];
        double a = real_of(from, w->s.dtype, at + (size_t) i);
        double b = real_of(from, w->s.dtype, at + (size_t) (i + half));
        if (w->of.cross_kv)
            angle = 0.0f;
        out[i] = a * cos(angle) - b * sin(angle);
        out[i + half] = b * cos(angle) + a * sin(angle);
    }
}

/*
 * Half a unit in the last place of the dtype, or half a quantization step, plus four units for the
 * error of float: two multiplications, an addition, a sine and a cosine.
 */
static double stored_error(ft_dtype dtype, double amax, double x)
{
    double exact = amax * 0x1p-22, half = dtype == FT_F16    ? fabs(x) * 0x1p-11 + 0x1p-25
                                          : dtype == FT_BF16 ? fabs(x) * 0x1p-8
                                          : dtype == FT_I8   ? amax / 127 * 0.501
                                                             : 0.0;
    return exact + half;
}

static double largest(const double *x, int n)
{
    double amax = 0.0;
    for (int i = 0; i < n; i++)
        amax = fmax(amax, fabs(x[i]));
    return amax;
}

static size_t differs(double found, double expected, double tolerance)
{
    return fabs(found - expected) <= tolerance ? 0u : 1u; /* NaN differs */
}

/* The number of wrong elements in one token's heads. */
size_t wrong_in_token(const world *w, const copy *c, int text, int position)
{
    int size = w->s.head_size;
    size_t row = w->first[text] + (size_t) position, wrong = 0;
    double x[FT_CUDA_MAX_HEAD_SIZE];
    for (int head = 0; head < w->s.heads; head++) {
        size_t at = (row * (size_t) w->s.heads + (size_t) head) * (size_t) size;
        turned(x, w, w->q, at, position);
        for (int i = 0; i < size; i++)
            wrong += differs(real_of(w->turned, w->s.dtype, at + (size_t) i), x[i],
                             stored_error(w->s.dtype, largest(x, size), x[i]));
    }
    for (int part = 0; part < 2; part++)
        for (int head = 0; head < w->s.kv_heads; head++) {
            size_t at = (row * (size_t) w->s.kv_heads + (size_t) head) * (size_t) size;
            for (int i = 0; i < size; i++)
                x[i] = real_of(w->v, w->s.dtype, at + (size_t) i);
            if (part == 0)
                turned(x, w, w->k, at, position);
            for (int i = 0; i < size; i++)
                wrong += differs(cached(w, c, part, place_of(w, text, position, head), i), x[i],
                                 stored_error(w->s.cache, largest(x, size), x[i]));
        }
    return wrong;
}

/* Bytes of cache rows that belong to no token and are no longer poison. */
static size_t touched(const world *w, const copy *c)
{
    size_t each = (size_t) w->s.head_size * ft_dtype_size(w->s.cache), count = 0;
    size_t rows = w->bytes[0] / each;
    bool *owned = calloc(rows, sizeof *owned);
    if (owned == NULL)
        bail_out("out of memory");
    for (int i = 0; i < w->texts; i++)
        for (int position = 0; position < w->length[i]; position++)
            for (int head = 0; head < w->s.kv_heads; head++)
                owned[place_of(w, i, position, head)] = true;
    for (size_t row = 0; row < rows; row++)
        for (int part = 0; part < 2 && !owned[row]; part++) {
            for (size_t i = row * each; i < (row + 1) * each; i++)
                count += ((uint8_t *) c->part[part])[i] != 0xff;
            count += ((uint32_t *) c->part[part + 2])[row] != 0xffffffff;
        }
    free(owned);
    return count;
}

void check_store(const world *w, const char *name)
{
    copy c = download_cache(w);
    size_t wrong = 0;
    for (int i = 0; i < w->texts; i++)
        for (int position = 0; position < w->length[i]; position++)
            wrong += wrong_in_token(w, &c, i, position);
    is_int((long long) wrong, 0, "%s: store_kv rotates queries and keys and stores keys and values",
           name);
    is_int((long long) touched(w, &c), 0, "%s: store_kv writes nothing else in the cache", name);
    free_copy(&c);
}

/* ---- Attention ------------------------------------------------------------------------------ */

/*
 * y, and the sum of weights times magnitudes of values, the measure of errors.  For an int8 cache
 * also the root of the sum of squared quantized values, and the largest weight times scale.
 */
typedef struct expected {
    double y[FT_CUDA_MAX_HEAD_SIZE], size[FT_CUDA_MAX_HEAD_SIZE], quantized[FT_CUDA_MAX_HEAD_SIZE];
    double largest;
} expected;

static void attend(expected *e, const world *w, const copy *c, int text, int position, int head)
{
    double *score = must_have((size_t) w->length[text] * sizeof *score);
    int size = w->s.head_size, kv_head = head / (w->s.heads / w->s.kv_heads);
    int first = w->s.window > 0 && position >= w->s.window ? position + 1 - w->s.window : 0;
    int last = w->of.cross_kv ? w->length[text] - 1 : position;
    size_t at = ((w->first[text] + (size_t) position) * (size_t) w->s.heads + (size_t) head) *
                (size_t) size;
    double most = -INFINITY, total = 0.0;
    for (int key = first; key <= last; key++) {
        double sum = 0.0;
        size_t place = seen_at(w, text, key, kv_head);
        for (int i = 0; i < size; i++)
            sum += real_of(w->turned, w->s.dtype, at + (size_t) i) * cached(w, c, 0, place, i);
        score[key] = sum * (double) w->attr.softmax_scale;
        most = fmax(most, score[key]);
    }
    memset(e, 0, sizeof *e);
    for (int key = first; key <= last; key++)
        total += exp(score[key] - most);
    for (int key = first; key <= last; key++) {
        double weight = exp(score[key] - most) / total;
        size_t place = seen_at(w, text, key, kv_head);
        for (int i = 0; i < size; i++) {
            double value = cached(w, c, 1, place, i);
            e->y[i] += weight * value;
            e->size[i] += weight * fabs(value);
            double code = real_of(c->part[1], w->s.cache, place * (size_t) size + (size_t) i);
            e->quantized[i] = hypot(e->quantized[i], code);
        }
        if (w->s.cache == FT_I8)
            e->largest = fmax(e->largest, weight * (double) ((float *) c->part[3])[place]);
    }
    free(score);
}

/*
 * Relative to the sum of weights times magnitudes.  f16 and bf16 round weights and results, each
 * by 2^-11 (f16) or 2^-8 (bf16); prompts round dequantized keys and values as well, and an error of
 * 2^-11 of each element of a key moves a score of a few units by about 2^-10.  Floats have sums of
 * some hundred terms and an exponential, a few 2^-23 each.
 */
static double tolerance_of(const shape *s)
{
    double half = s->dtype == FT_F16 ? 0x1p-10 : s->dtype == FT_BF16 ? 0x1p-7 : 1e-5;
    return s->cache == FT_I8 && s->dtype != FT_F32 ? 4 * half : half;
}

/*
 * attend_kv_int8.cu rounds weights times scales to integers, 2^13 or more for the largest: each is
 * off by half at most, 0.29 on average.  The bound is four times the error of independent ones.
 */
static double rounded_weights(const world *w, const expected *e, int i)
{
    bool whole = w->s.cache == FT_I8 && w->s.dtype != FT_F32 && w->s.head_size == 128;
    return whole ? 4 * 0.29 * 0x1p-13 * e->largest * e->quantized[i] : 0.0;
}

static double error_of(const world *w, const copy *c, int text, int position, int head)
{
    expected e;
    double worst = 0.0;
    size_t at = ((w->first[text] + (size_t) position) * (size_t) w->s.heads + (size_t) head) *
                (size_t) w->s.head_size;
    attend(&e, w, c, text, position, head);
    for (int i = 0; i < w->s.head_size; i++) {
        double y = real_of(w->result, w->s.dtype, at + (size_t) i);
        double slack = rounded_weights(w, &e, i) / tolerance_of(&w->s);
        double error = fabs(y - e.y[i]) / (e.size[i] + slack + 1e-6);
        worst = error <= worst ? worst : isnan(error) ? HUGE_VAL : error;
    }
    return worst;
}

/* All heads of some of the last `back` tokens of each text, the first and last among them. */
void check_values(const world *w, const char *what, int back)
{
    copy c = download_cache(w);
    double worst = 0.0;
    for (int i = 0; i < w->texts; i++) {
        int from = back > 0 && w->length[i] > back ? w->length[i] - back : 0;
        int count = w->length[i] - from;
        for (int j = 0; j < (count < 6 ? count : 6); j++) {
            int position = count <= 6 ? from + j
                           : j == 0   ? from
                           : j == 1   ? w->length[i] - 1
                                      : from + (int) rng_below(&numbers, (uint32_t) count);
            for (int head = 0; head < w->s.heads; head++)
                worst = fmax(worst, error_of(w, &c, i, position, head));
        }
    }
    ok(worst <= tolerance_of(&w->s), "%s: attend_kv computes softmax(q . k^T) . v within %.1e",
       what, tolerance_of(&w->s));
    diag("error %.2e", worst);
    free_copy(&c);
}

#endif
