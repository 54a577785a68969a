/*
 * attention_i8_consumer.cuh - a consumer warpgroup of int8 attention: 64 queries, and what it does
 * with a tile of keys or values, by wgmma.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_CONSUMER_CUH
#define FT_KERNELS_CUDA_ATTENTION_ENCODER_ATTENTION_I8_CONSUMER_CUH

#include "kernels/cuda/attention/encoder/attention_i8.cuh"
#include "kernels/cuda/attention/encoder/attention_i8_work.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

#ifdef FT_HAS_WGMMA

/*
 * Descriptor of rows of `bytes` bytes with the swizzle of that width. Add 2 to advance k by 32.
 */
template <int bytes>
static __device__ __forceinline__ uint64_t swizzled_descriptor(const void *shared)
{
    uint64_t address = (uint64_t) __cvta_generic_to_shared(shared);
    return (address & 0x3ffff) >> 4 | (uint64_t) (8 * bytes >> 4) << 32 |
           (uint64_t) (bytes == 32 ? 3 : 2) << 62;
}

/* c = a . b^T for 32 k with a in registers; ft_wgmma_i8_register_a() accumulates. */
static __device__ __forceinline__ void wgmma_first(int32_t (&c)[32], const uint32_t (&a)[4],
                                                   uint64_t b)
{
    asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, 0, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" FT_REGS_0
                 "}, {%32, %33, %34, %35}, %36, add;\n\t}"
                 : FT_C32("=r", c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

static __device__ __forceinline__ void wgmma_first(int32_t (&c)[64], const uint32_t (&a)[4],
                                                   uint64_t b)
{
    asm volatile("{\n\t.reg .pred add;\n\tsetp.ne.b32 add, 0, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" FT_REGS_0 ", " FT_REGS_1
                 "}, {%64, %65, %66, %67}, %68, add;\n\t}"
                 : FT_C64("=r", c)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

template <class SHAPE> struct attention_consumer {
    static constexpr int WIDTH = SHAPE::width, KEYS = SHAPE::keys, CHUNKS = KEYS / 32;

    attention_shared<SHAPE> shared;
    unsigned use = 0, tile = 0, item = 0; /* counts */
    uint32_t q[WIDTH / 32][4];
    uint8_t *output;
    int warpgroup; /* within the team */

    __device__ __forceinline__ attention_consumer(uint8_t *memory, int consumer, int row_bytes)
        : shared{ memory + consumer / SHAPE::warpgroups * SHAPE::team_bytes },
          output(memory + SHAPE::teams * SHAPE::team_bytes +
                 consumer * FT_CUDA_QUERY_TILE * row_bytes),
          warpgroup(consumer % SHAPE::warpgroups)
    {
    }

    /* Waits for the keys of the next stage, or of one `later` stages behind it. */
    __device__ __forceinline__ void wait_keys(int later = 0) const
    {
        wait_use<SHAPE::stages>(shared.full(use + (unsigned) later), use + (unsigned) later);
    }
    __device__ __forceinline__ void release(unsigned use) const
    {
        if (threadIdx.x % 32 == 0)
            ft_mbarrier_arrive(shared.empty(use));
    }

    /* The warp's 16 queries, with zeros beyond the head. */
    __device__ __forceinline__ void load_fragments(int head_size)
    {
        int lane = threadIdx.x % 32, row = (int) threadIdx.x / 32 % 4 * 16 + lane % 16;
        const uint8_t *tile = shared.queries(item, warpgroup);
#pragma unroll
        for (int i = 0; i < WIDTH / 32; i++) {
            ft_ldmatrix_x4(
                q[i], tile + ft_panel_offset<WIDTH, FT_CUDA_QUERY_TILE>(row, 2 * i + lane / 16));
            if (head_size < WIDTH)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    int left = head_size - (32 * i + j / 2 * 16 + lane % 4 * 4);
                    q[i][j] &= left >= 4 ? ~0u : left <= 0 ? 0u : (1u << 8 * left) - 1;
                }
        }
    }

    __device__ __forceinline__ void issue_scores(int32_t (&c)[KEYS / 2], const uint8_t *keys) const
    {
        uint64_t descriptor = swizzled_descriptor<WIDTH>(keys);
        wgmma_first(c, q[0], descriptor);
#pragma unroll
        for (int i = 1; i < WIDTH / 32; i++)
            ft_wgmma_i8_register_a<KEYS>(c, q[i], descriptor + 2 * i);
        ft_wgmma_commit();
    }

    /* The scores of the stage; those of each row start from start[]. */
    __device__ __forceinline__ void issue_biased_scores(int32_t (&c)[KEYS / 2],
                                                        const int32_t (&start)[2]) const
    {
        uint64_t descriptor = swizzled_descriptor<WIDTH>(shared.keys(use));
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++)
            c[i] = start[i / 2 % 2];
        ft_wgmma_fence();
#pragma unroll
        for (int i = 0; i < WIDTH / 32; i++)
            ft_wgmma_i8_register_a<KEYS>(c, q[i], descriptor + 2 * i);
        ft_wgmma_commit();
    }

    /*
     * The scores of absent keys. They are below all others, and with the start of codes they are
     * NaN, whose code is 0.
     */
    static constexpr int32_t ABSENT = (int32_t) (0xffc00000u - MAX_BIAS);

    /* Updates the maximum with the scores of a tile, of which `keys` exist. */
    __device__ __forceinline__ void update(int32_t (&row_max)[2], int32_t (&c)[KEYS / 2], int keys)
    {
        ft_wgmma_fence_acc(c);
        if (keys < KEYS)
#pragma unroll
            for (int i = 0; i < CHUNKS; i++)
                mask_tail((scores *) c + i, keys - CHUNK * i, ABSENT);
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 4) {
            row_max[0] = __vimax3_s32(row_max[0], c[i], c[i + 1]);
            row_max[1] = __vimax3_s32(row_max[1], c[i + 2], c[i + 3]);
        }
    }

    /* Scores that started from set_start() become codes, in the lowest bytes. */
    static __device__ __forceinline__ void compute_codes(int32_t (&c)[KEYS / 2], int keys,
                                                         float step)
    {
        const float start = fmaf(-step, 0x1p24f, 1.0f);
        ft_wgmma_fence_acc(c);
        if (keys < KEYS)
#pragma unroll
            for (int i = 0; i < CHUNKS; i++)
                mask_tail((scores *) c + i, keys - CHUNK * i, __float_as_int(-INFINITY));
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++)
            c[i] = (int32_t) softmax_code(c[i], step, start);
    }

    /* The same for scores that started from 0. */
    static __device__ __forceinline__ void compute_codes(int32_t (&c)[KEYS / 2],
                                                         const int32_t (&start)[2], float step)
    {
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++)
            c[i] = (int32_t) softmax_code((int32_t) ((uint32_t) c[i] + (uint32_t) start[i / 2 % 2]),
                                          step, fmaf(-step, 0x1p24f, 1.0f));
    }

    /* Packs the codes into operands of 32 keys, in the key order of accumulate_pv(). */
    __device__ __forceinline__ void pack_codes(uint32_t (&quantized)[CHUNKS][4],
                                               const int32_t (&c)[KEYS / 2],
                                               uint32_t (&total)[2]) const
    {
#pragma unroll
        for (int i = 0; i < CHUNKS; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int32_t *codes = &c[16 * i + j / 2 * 8 + j % 2 * 2];
                quantized[i][j] = pack_low_bytes((uint32_t) codes[0], (uint32_t) codes[1],
                                                 (uint32_t) codes[4], (uint32_t) codes[5]);
                total[j % 2] = __dp4a(quantized[i][j], 0x01010101u, total[j % 2]);
            }
    }

    /* context += weights times the values of a stage. */
    __device__ __forceinline__ void issue_context(int32_t (&context)[WIDTH / 2],
                                                  const uint32_t (&quantized)[CHUNKS][4],
                                                  unsigned stage)
    {
        wait_use<SHAPE::stages>(shared.transposed(tile), tile);
        tile++;
        ft_wgmma_fence();
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            uint64_t descriptor =
                swizzled_descriptor<64>(shared.transposed_values(stage) + i / 2 * 64 * WIDTH);
            ft_wgmma_i8_register_a<WIDTH>(context, quantized[i], descriptor + 2 * (i % 2));
        }
        ft_wgmma_commit();
    }

    /* The sums of the codes of the rows. */
    static __device__ __forceinline__ void reduce_total(context_acc<WIDTH> *to,
                                                        uint32_t (&total)[2])
    {
#pragma unroll
        for (int row = 0; row < 2; row++) {
            total[row] += __shfl_xor_sync(~0u, total[row], 1);
            total[row] += __shfl_xor_sync(~0u, total[row], 2);
            to->total[2 * row] = (int32_t) total[row];
        }
    }

    /* Waits until at most `left` groups are pending; `left` is a constant after unrolling. */
    static __device__ __forceinline__ void wait_groups(int left)
    {
        if (left == 0)
            ft_wgmma_wait<0>();
        else if (left == 1)
            ft_wgmma_wait<1>();
        else
            ft_wgmma_wait<2>();
    }

    /* A segment of other warpgroups. */
    __device__ __forceinline__ void skip_segment(int length)
    {
        int tiles = (length + KEYS - 1) / KEYS;
        for (int i = 0; i < (tiles + 1) / 2 + tiles; i++) {
            wait_keys();
            __syncwarp();
            release(use);
            use++;
        }
        tile += (unsigned) tiles;
    }
};

#endif
#endif
