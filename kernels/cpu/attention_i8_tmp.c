#include <config.h>
#include "kernels/cpu/cpu.h"
#include "kernels/quant.h"
#include <omp.h>
size_t ft_cpu_attention_i8_scratch(size_t dim, const ft_limits *limits)
{
    (void) dim;
    return (size_t) limits->threads * (limits->tokens * 4 + 128);
}
void ft_cpu_attention_i8(const ft_args *args)
{
    const ft_batch *batch = args->batch;
    size_t heads = (size_t) args->op->attr.heads, dim = args->in[0].cols / heads;
    float scale = args->in[0].scale * args->in[1].scale * args->op->attr.softmax_scale;
    float pinv = ft_inverse_scale(args->inner.scale), cs = args->inner.scale * args->in[2].scale;
#pragma omp parallel for num_threads(args->threads)
    for (size_t i = 0; i < batch->sequences * heads; i++) {
        size_t s = i / heads, h = i % heads * dim;
        size_t first = (size_t) batch->start[s], len = (size_t) batch->start[s + 1] - first;
        float *sc = ft_thread_scratch(args, omp_get_thread_num());
        for (size_t q = 0; q < len; q++) {
            const int8_t *x = ft_row_i8(&args->in[0], first + q) + h;
            for (size_t k = 0; k < len; k++) {
                const int8_t *y = ft_row_i8(&args->in[1], first + k) + h;
                int32_t sum = 0;
                for (size_t d = 0; d < dim; d++)
                    sum += x[d] * y[d];
                sc[k] = (float) sum;
            }
            args->rows->softmax(sc, scale, len);
            args->rows->quantize_f32(sc, sc, pinv, len);
            for (size_t d = 0; d < dim; d++) {
                int32_t sum = 0;
                for (size_t k = 0; k < len; k++)
                    sum += (int32_t) sc[k] * ft_row_i8(&args->in[2], first + k)[h + d];
                float v = (float) sum * cs;
                if (args->codes.data != NULL)
                    ft_row_i8(&args->codes, first + q)[h + d] =
                        ft_quantize(v, ft_inverse_scale(args->codes.scale));
                else
                    ft_row_f32(&args->out, first + q)[h + d] = v;
            }
        }
    }
}
