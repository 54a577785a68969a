/*
 * sample-t.c - sampling on the GPU: the same tokens, log-probabilities and token histories as on
 * the CPU, bit for bit, whatever else is in the batch.
 *
 *     tests/cuda/sample.t [ROUNDS]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "tests/tap/tap.h"

#ifdef HAVE_CUDA

#include "kernels/cpu/sampling/sample.h"
#include "kernels/cuda/sampling/sample.h"
#include "tests/kernels/sample.h"
#include "tests/lib/ops/gpu.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

enum { CONTEXT = 50, SLOTS = 64, MAX_SIZE = 152064, GUARD = 64 };

static ft_cuda_device_props props;
static rng chance = { 11 };

/* ---- A batch, on host and device ------------------------------------------------------------- */

/* Arrays have the size of the largest case; each case uses their beginning. */
static struct {
    float *logits, *logprob;
    ft_sampling_params *sampling;
    int32_t *history, *last, *token;
    uint32_t *seen;
} host, device, found;

static void *scratch, *host_scratch;

static void make_batches(void)
{
    size_t words = (size_t) SLOTS * MAX_SIZE * 4;
    host.logits = must_have(words);
    host.seen = must_have(words);
    found.seen = must_have(words);
    device.logits = device_memory(words + 16);
    device.seen = device_memory(words + 16);
    host.sampling = must_have(SLOTS * sizeof(ft_sampling_params));
    device.sampling = device_memory(SLOTS * sizeof(ft_sampling_params));
    size_t texts = (size_t) SLOTS * CONTEXT * 4;
    host.history = must_have(texts);
    found.history = must_have(texts);
    device.history = device_memory(texts);
    size_t results = (SLOTS + GUARD) * 4;
    host.last = must_have(results);
    found.last = must_have(results);
    device.last = device_memory(results);
    host.token = must_have(results);
    found.token = must_have(results);
    device.token = device_memory(results);
    host.logprob = must_have(results);
    found.logprob = must_have(results);
    device.logprob = device_memory(results);
    scratch = device_memory(words);
    host_scratch = must_have(ft_cpu_sample_row_scratch(MAX_SIZE));
}

/* Rows with logits of all kinds and all sampling options; slots are not in the order of rows. */
static void draw_batch(size_t rows, size_t n, unsigned rules)
{
    for (size_t i = 0; i < rows; i++) {
        size_t slot = rows - 1 - i;
        int32_t known = (int32_t) rng_below(&chance, CONTEXT + 1);
        fill_logits(&chance, host.logits + i * n, n, (shape) rng_below(&chance, SHAPES));
        fill_history(&chance, host.history + slot * CONTEXT, known, n, host.seen + slot * n);
        host.sampling[i] =
            draw_choice(&chance, rules < RULES ? rules : rng_below(&chance, RULES), n, known);
        host.sampling[i].slot = rng_below(&chance, 20) == 0 ? -1 : (int32_t) slot;
        if (rng_below(&chance, 5) == 0)
            host.sampling[i].temperature = 0.0f;
        if (rng_below(&chance, 20) == 0)
            host.logits[i * n + rng_below(&chance, (uint32_t) n)] = NAN;
        if (rng_below(&chance, 20) == 0)
            host.logits[i * n + rng_below(&chance, (uint32_t) n)] = INFINITY;
        host.last[slot] = 1234;
    }
}

static void sample_on_cpu(size_t rows, size_t n)
{
    ft_cpu_token_history memory = { host.history, host.seen, host.last, CONTEXT, n };
    for (size_t i = 0; i < rows; i++) {
        const ft_sampling_params *sampling = &host.sampling[i];
        host.token[i] = FT_NO_TOKEN;
        host.logprob[i] = NAN;
        if (sampling->slot < 0)
            continue;
        size_t slot = (size_t) sampling->slot;
        ft_cpu_sample_row(ft_row_kernels_for(FT_ISA_GENERIC), host.logits + i * n, n, sampling,
                          host.history + slot * CONTEXT, host.seen + slot * n, host_scratch,
                          &host.token[i], &host.logprob[i]);
        ft_cpu_sample_append(&memory, sampling, host.token[i]);
    }
}

static ft_cuda_sample_params begin_on_gpu(size_t rows, size_t n, size_t offset)
{
    ft_cuda_sample_params args = { .memory = { device.history, device.seen + offset, device.last,
                                               CONTEXT, n },
                                   .logits = device.logits + offset,
                                   .sampling = device.sampling,
                                   .rows = rows,
                                   .token = device.token,
                                   .logprob = device.logprob,
                                   .scratch = scratch };
    to_device(device.logits + offset, host.logits, rows * n * 4);
    to_device(device.seen + offset, host.seen, rows * n * 4);
    to_device(device.sampling, host.sampling, rows * sizeof *host.sampling);
    to_device(device.history, host.history, rows * CONTEXT * 4);
    to_device(device.last, host.last, rows * 4);
    must(cudaMemset(device.token, 0x5a, (SLOTS + GUARD) * 4), "poison");
    must(cudaMemset(device.logprob, 0x5a, (SLOTS + GUARD) * 4), "poison");
    return args;
}

/* With this many thread blocks for each row; 0: as many as the launcher selects. */
static void finish_on_gpu(const ft_cuda_sample_params *args, unsigned blocks)
{
    must(blocks > 0 ? ft_cuda_sample_rows_with(blocks, &props, NULL, args)
                    : ft_cuda_sample_rows(&props, NULL, args),
         "launch");
    must(cudaDeviceSynchronize(), "run");
    from_device(found.token, device.token, (SLOTS + GUARD) * 4);
    from_device(found.logprob, device.logprob, (SLOTS + GUARD) * 4);
    from_device(found.seen, args->memory.seen, args->rows * args->memory.vocabulary * 4);
    from_device(found.history, device.history, args->rows * CONTEXT * 4);
    from_device(found.last, device.last, args->rows * 4);
}

static bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

/* The number of rows and histories that differ, and of results past the last row. */
static int count_differences(size_t rows, size_t n)
{
    int wrong = 0;
    for (size_t i = 0; i < rows; i++) {
        const ft_sampling_params *c = &host.sampling[i];
        if (found.token[i] == host.token[i] && same_float(found.logprob[i], host.logprob[i]))
            continue;
        if (wrong++ == 0)
            diag("row %zu of %zu, %zu tokens: %d (%g), expected %d (%g); temperature %g, k %d, "
                 "p %g, min %g, %d-grams, %d bans",
                 i, rows, n, found.token[i], (double) found.logprob[i], host.token[i],
                 (double) host.logprob[i], (double) c->temperature, c->top_k, (double) c->top_p,
                 (double) c->min_p, c->no_repeat_ngram, c->n_banned);
    }
    for (size_t i = rows; i < SLOTS + GUARD; i++)
        wrong += found.token[i] != 0x5a5a5a5a;
    wrong += memcmp(found.seen, host.seen, rows * n * 4) != 0;
    wrong += memcmp(found.history, host.history, rows * CONTEXT * 4) != 0;
    wrong += memcmp(found.last, host.last, rows * 4) != 0;
    return wrong;
}

/* ---- Against the CPU ------------------------------------------------------------------------ */

/* Whether this many thread blocks support a row of n tokens. */
static bool takes(unsigned blocks, size_t n)
{
    ft_cuda_sample_params nothing = { .memory.vocabulary = n };
    return blocks <= 1 || (props.capability >= 90 &&
                           ft_cuda_sample_rows_with(blocks, &props, NULL, &nothing) == 0);
}

/* Every number of thread blocks gets the same batch. */
static void test_against_cpu(size_t n, size_t rows, int rounds)
{
    static const unsigned blocks[] = { 0, 1, 2, 4, 8 };
    int wrong[5] = { 0 };
    for (int i = 0; i < rounds; i++) {
        uint64_t state = chance.state;
        for (int k = 0; k < 5; k++) {
            if (!takes(blocks[k], n))
                continue;
            chance.state = state;
            draw_batch(rows, n, RULES);
            ft_cuda_sample_params args =
                begin_on_gpu(rows, n, (size_t) (i % 2)); /* odd: not aligned to 16 bytes */
            sample_on_cpu(rows, n);
            finish_on_gpu(&args, blocks[k]);
            wrong[k] += count_differences(rows, n);
        }
    }
    for (int k = 0; k < 5; k++)
        if (!takes(blocks[k], n))
            skip(1, "this device does not support %u thread blocks for %zu tokens", blocks[k], n);
        else
            is_int(wrong[k], 0,
                   "%zu rows of %zu tokens by %u thread blocks, %d times, have the tokens, "
                   "log-probabilities and "
                   "histories of the CPU",
                   rows, n, blocks[k], rounds);
}

static void test_rules(void)
{
    int wrong = 0;
    for (unsigned rules = 0; rules < RULES; rules++) {
        draw_batch(16, 2500, rules);
        ft_cuda_sample_params args = begin_on_gpu(16, 2500, 0);
        sample_on_cpu(16, 2500);
        finish_on_gpu(&args, 0);
        wrong += count_differences(16, 2500);
    }
    is_int(wrong, 0, "every combination of sampling options has the CPU's results");
}

/* Without log-probabilities the tokens are the same. */
static void test_without_logprob(void)
{
    draw_batch(SLOTS, 999, RULES);
    ft_cuda_sample_params args = begin_on_gpu(SLOTS, 999, 0);
    args.logprob = NULL;
    sample_on_cpu(SLOTS, 999);
    finish_on_gpu(&args, 0);
    int wrong = 0;
    for (size_t i = 0; i < SLOTS; i++)
        wrong += found.token[i] != host.token[i];
    is_int(wrong, 0, "sampled tokens do not depend on whether log-probabilities are requested");
}

/* ---- Alone and in a batch ------------------------------------------------------------------- */

static void test_alone(size_t n)
{
    int wrong = 0;
    draw_batch(SLOTS, n, RULES);
    ft_cuda_sample_params args = begin_on_gpu(SLOTS, n, 0), alone = args;
    finish_on_gpu(&args, 0);
    memcpy(host.token, found.token, SLOTS * 4);
    memcpy(host.logprob, found.logprob, SLOTS * 4);
    begin_on_gpu(SLOTS, n, 0);
    for (size_t i = 0; i < SLOTS; i++) {
        alone.rows = 1;
        alone.logits = args.logits + i * n;
        alone.sampling = args.sampling + i;
        alone.token = args.token + i;
        alone.logprob = args.logprob + i;
        must(ft_cuda_sample_rows(&props, NULL, &alone), "launch");
    }
    must(cudaDeviceSynchronize(), "run");
    from_device(found.token, device.token, SLOTS * 4);
    from_device(found.logprob, device.logprob, SLOTS * 4);
    for (size_t i = 0; i < SLOTS; i++)
        wrong += found.token[i] != host.token[i] || !same_float(found.logprob[i], host.logprob[i]);
    is_int(wrong, 0, "%d rows of %zu tokens have the same results alone and in a batch", SLOTS, n);
}

/* ---- Prompts -------------------------------------------------------------------------------- */

static void test_note(void)
{
    enum { N = 1003, TOKENS = 700 };
    static int32_t ids[TOKENS], seq_id[TOKENS], start[SLOTS], n_past[SLOTS], slot[SLOTS];
    int32_t tokens = 0;
    for (int32_t s = 0; s < SLOTS; s++) { /* half of them are new */
        start[s] = tokens;
        n_past[s] = (int32_t) rng_below(&chance, 2) * 7;
        slot[s] = SLOTS - 1 - s;
        for (uint32_t i = 1 + rng_below(&chance, 9); i > 0; i--) {
            ids[tokens] = rng_below(&chance, 20) == 0 ? -1 : (int32_t) rng_below(&chance, N);
            seq_id[tokens++] = s;
        }
    }
    while (tokens < TOKENS) { /* padding tokens */
        ids[tokens] = 1;
        seq_id[tokens++] = -1;
    }
    for (int i = 0; i < SLOTS * N; i++)
        host.seen[i] = (uint32_t) rng_bits(&chance);
    memset(host.history, 0x11, (size_t) SLOTS * CONTEXT * 4);
    to_device(device.seen, host.seen, (size_t) SLOTS * N * 4);
    to_device(device.history, host.history, (size_t) SLOTS * CONTEXT * 4);
    int32_t *rows = device_memory(sizeof ids * 2 + sizeof start * 3), *of = rows + 2 * TOKENS;
    to_device(rows, ids, sizeof ids);
    to_device(rows + TOKENS, seq_id, sizeof seq_id);
    to_device(of, start, sizeof start);
    to_device(of + SLOTS, n_past, sizeof n_past);
    to_device(of + 2 * SLOTS, slot, sizeof slot);
    ft_cuda_record_params note = { { device.history, device.seen, device.last, CONTEXT, N },
                                   rows,
                                   rows + TOKENS,
                                   TOKENS,
                                   of,
                                   of + SLOTS,
                                   of + 2 * SLOTS };
    ft_cpu_token_history memory = { host.history, host.seen, host.last, CONTEXT, N };
    ft_cpu_record_prompt(&memory,
                         &(ft_cpu_prompt_tokens){ ids, seq_id, TOKENS, start, n_past, slot });
    must(ft_cuda_record_prompt_tokens(&props, NULL, &note), "launch");
    must(cudaDeviceSynchronize(), "run");
    from_device(found.seen, device.seen, (size_t) SLOTS * N * 4);
    from_device(found.history, device.history, (size_t) SLOTS * CONTEXT * 4);
    ok(memcmp(found.seen, host.seen, (size_t) SLOTS * N * 4) == 0,
       "ft_cuda_record_prompt_tokens() marks the tokens of prompts as seen, as on the CPU");
    ok(memcmp(found.history, host.history, (size_t) SLOTS * CONTEXT * 4) == 0,
       "ft_cuda_record_prompt_tokens() records the token histories of the CPU");
    note.tokens = 0;
    is_int(ft_cuda_record_prompt_tokens(&props, NULL, &note), 0,
           "ft_cuda_record_prompt_tokens() does nothing without tokens");
    cudaFree(rows);
}

static void test_refusal(void)
{
    ft_cuda_sample_params args = { .memory.vocabulary = (size_t) 8 << 20, .rows = 1 };
    is_int(ft_cuda_sample_rows(&props, NULL, &args), cudaErrorInvalidValue,
           "ft_cuda_sample_rows() refuses a vocabulary of eight million tokens");
    args.memory.vocabulary = 100;
    args.rows = 0;
    is_int(ft_cuda_sample_rows(&props, NULL, &args), 0,
           "ft_cuda_sample_rows() does nothing without rows");
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = { 1, 2, 5, 31, 128, 1021, 4096, 8195, 32000, 32003, 50001 };
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    props = need_gpu();
    make_batches();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        test_against_cpu(sizes[i], sizes[i] > 10000 ? 20 : SLOTS, rounds);
    test_against_cpu(MAX_SIZE, 5, rounds);
    test_rules();
    test_without_logprob();
    test_alone(1000);
    test_alone(32000);
    test_alone(MAX_SIZE);
    test_note();
    test_refusal();
    return done_testing();
}

#else

int main(void)
{
    skip_all("this build has no CUDA backend");
}

#endif
