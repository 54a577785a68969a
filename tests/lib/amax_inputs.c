/*
 * amax_inputs.c - the inputs of make-amax.py, bit for bit: integers from a linear congruence,
 * then operations that every machine rounds the same way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/lib/amax_inputs.h"

#include "kernels/half.h"
#include "runtime/mem.h"

#include <math.h>
#include <stdlib.h>

typedef enum shape { CONSTANT, GRID, UNIFORM, BELL, HEAVY, SPIKY, HALF_SUBNORMAL, SUBNORMAL } shape;
typedef enum rounding { F32, F16, BF16 } rounding;

/* n values of a distribution, scaled by `factor` (the value of CONSTANT, the end of a GRID). */
typedef struct part {
    shape shape;
    uint32_t n, seed;
    double factor;
    double outlier; /* of BELL: the factor of every 997th value; 0 means 1 */
} part;

#define THIRD (1.0 / 3.0)
#define ANY -HUGE_VAL /* no least value */
#define FLOOR ((double) -0.17f)
#define TOP ((double) 3.3f)

static const struct {
    const char *name;
    rounding rounding;
    double least; /* the lower bound of values */
    part part[2];
} inputs[] = {
    { "vector-A", F32, ANY, { { BELL, 65536, 1, 1, 8 } } },
    { "vector-B", F32, ANY, { { BELL, 65536, 7, 1, 0 } } },
    { "vector-G", F32, ANY, { { BELL, 32768, 3, 1, 0 }, { BELL, 32768, 5, 1, 8 } } },
    { "bell", F32, ANY, { { BELL, 65536, 13, THIRD, 0 } } },
    { "bell-outliers-8", F32, ANY, { { BELL, 65536, 17, THIRD, 8 } } },
    { "bell-outliers-100", F32, ANY, { { BELL, 65536, 19, THIRD, 100 } } },
    { "heavy", F32, ANY, { { HEAVY, 65536, 23, 1, 0 } } },
    { "uniform", F32, ANY, { { UNIFORM, 65536, 29, THIRD, 0 } } },
    { "one-sided", F32, 0, { { BELL, 65536, 31, THIRD, 0 } } },
    { "floor", F32, FLOOR, { { BELL, 65536, 37, 4 * THIRD, 0 } } },
    { "softmax", F32, ANY, { { SPIKY, 65536, 41, 1, 0 } } },
    { "zeros-first", F32, ANY, { { CONSTANT, 20000, 0, 0, 0 }, { BELL, 20000, 43, 1, 0 } } },
    { "zeros", F32, ANY, { { CONSTANT, 1000, 0, 0, 0 } } },
    { "negative-zeros", F32, ANY, { { CONSTANT, 1000, 0, -0.0, 0 }, { BELL, 1000, 47, 1, 0 } } },
    { "equal", F32, ANY, { { CONSTANT, 1000, 0, 0.3, 0 } } },
    { "one", F32, ANY, { { CONSTANT, 1, 0, 2.5, 0 } } },
    { "n-127", F32, ANY, { { BELL, 127, 53, 1, 0 } } },
    { "two-values", F32, ANY, { { CONSTANT, 900, 0, 0.1, 0 }, { CONSTANT, 100, 0, -0.7, 0 } } },
    { "edges-exact", F32, ANY, { { GRID, 2049, 0, 4, 0 } } },
    { "edges-rounded", F32, ANY, { { GRID, 2049, 0, TOP, 0 } } },
    { "f16-subnormal", F32, ANY, { { HALF_SUBNORMAL, 20000, 59, 1, 0 } } },
    { "subnormal-mixed", F32, ANY, { { SUBNORMAL, 5000, 61, 1, 0 }, { BELL, 5000, 67, 1, 0 } } },
    { "f16-largest", F16, ANY, { { BELL, 50000, 71, 20000, 0 }, { CONSTANT, 1, 0, 65504, 0 } } },
    { "f16-many", F16, ANY, { { BELL, 300000, 73, 1, 8 } } },
    { "bf16-many", BF16, ANY, { { BELL, 300000, 79, 1, 8 } } },
    { "f32-many", F32, ANY, { { BELL, 300000, 83, THIRD, 8 } } },
};

static double draw(uint32_t *state)
{
    *state = 1664525u * *state + 1013904223u;
    return (*state >> 12) * 0x1p-20;
}

static double shaped(const part *p, uint32_t i, uint32_t *state)
{
    switch (p->shape) {
    case CONSTANT:
        return p->factor;
    case GRID:
        return i * p->factor / 2048.0;
    case UNIFORM:
        return (draw(state) - 0.5) * p->factor;
    case BELL: {
        double sum = draw(state);
        sum += draw(state);
        sum += draw(state);
        sum -= 1.5;
        if (p->outlier > 0.0 && i % 997 == 996)
            sum *= p->outlier;
        return sum * p->factor;
    }
    case HEAVY: {
        double top = draw(state) - 0.5;
        return top / (draw(state) + 0.015625);
    }
    case SPIKY: {
        double x = draw(state);
        for (int squared = 0; squared < 4; squared++)
            x *= x;
        return i % 256 == 0 ? 1.0 : x;
    }
    case HALF_SUBNORMAL:
        return floor(draw(state) * 1024.0) * 0x1p-24;
    case SUBNORMAL:
        return draw(state) * 0x1p20 * 0x1p-149;
    }
    abort();
}

static float rounded(double x, rounding to)
{
    float value = (float) x;
    if (to == F16)
        return ft_float_from_f16(ft_f16_from_float(value));
    return to == BF16 ? ft_float_from_bf16(ft_bf16_from_float(value)) : value;
}

size_t amax_input_count(void)
{
    return FT_COUNT(inputs);
}

amax_input make_amax_input(size_t index)
{
    amax_input out = { .name = inputs[index].name };
    out.value = malloc((inputs[index].part[0].n + inputs[index].part[1].n) * sizeof *out.value);
    for (int k = 0; k < 2; k++) {
        const part *p = &inputs[index].part[k];
        uint32_t state = p->seed;
        for (uint32_t i = 0; i < p->n; i++) {
            double x = shaped(p, i, &state);
            x = x < inputs[index].least ? inputs[index].least : x;
            out.value[out.n++] = rounded(x, inputs[index].rounding);
        }
    }
    return out;
}

uint64_t fnv(const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}
