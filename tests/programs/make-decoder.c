/*
 * make-decoder.c - a small random Llama with a byte-level tokenizer, for tests.
 *
 *     make-decoder FOLDER SEED [BAD]
 *     make-decoder - poison ARTIFACT
 *
 * Writes a checkpoint with 2^22 positions and 300 tokens: 0 to 255 are bytes, 256 is " a",
 * 257 <|endoftext|> (the end token), 258 <|im_start|> and 259 <|im_end|>.  Its chat template puts
 * the latter two around messages.
 *
 * The second form puts NaN into the embedding of token BAD in the artifact.  The converter refuses
 * NaN, so the checkpoint holds a rare number in its place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/container/safetensors.h"
#include "tests/lib/random.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    WORDS = 300,
    HIDDEN = 32,
    LAYERS = 2,
    HEADS = 4,
    KV_HEADS = 2,
    SIZE = HIDDEN / HEADS,
    FFN = 48,
    POSITIONS = 1 << 22,
    BLANK_A = 256,
    END = 257,
    NAME = 64,
    TENSORS = 3 + 9 * LAYERS
};

static const float rare = 12345.678f;
static ft_named_tensor tensor[TENSORS];
static char name[TENSORS][NAME];
static size_t count;
static rng numbers;

/* ---- Weights ------------------------------------------------------------------------------ */

static float *add(const char *called, int64_t rows, int64_t cols, double sigma)
{
    size_t cells = (size_t) (rows * (cols > 0 ? cols : 1));
    float *data = ft_calloc(cells, sizeof *data);
    rng_floats(&numbers, data, cells, sigma);
    snprintf(name[count], NAME, "%s", called);
    tensor[count] = (ft_named_tensor){ name[count],
                                       { FT_F32, FT_ROW, cols > 0 ? 2 : 1, { rows, cols }, data } };
    count++;
    return data;
}

/* "model.layers.LAYER.PART.weight" */
static void add_part(int layer, const char *part, int64_t rows, int64_t cols)
{
    char called[NAME];
    snprintf(called, sizeof called, "model.layers.%d.%s.weight", layer, part);
    add(called, rows, cols, cols > 0 ? 0.3 : 1.0);
}

static void add_layer(int layer)
{
    add_part(layer, "input_layernorm", HIDDEN, 0);
    add_part(layer, "self_attn.q_proj", HIDDEN, HIDDEN);
    add_part(layer, "self_attn.k_proj", (int64_t) KV_HEADS * SIZE, HIDDEN);
    add_part(layer, "self_attn.v_proj", (int64_t) KV_HEADS * SIZE, HIDDEN);
    add_part(layer, "self_attn.o_proj", HIDDEN, HIDDEN);
    add_part(layer, "post_attention_layernorm", HIDDEN, 0);
    add_part(layer, "mlp.gate_proj", FFN, HIDDEN);
    add_part(layer, "mlp.up_proj", FFN, HIDDEN);
    add_part(layer, "mlp.down_proj", HIDDEN, FFN);
}

/* ---- Files -------------------------------------------------------------------------------- */

static bool write_json(const char *folder, const char *file, json_t *json)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    bool fine = json != NULL && json_dump_file(json, path, 0) == 0;
    json_decref(json);
    return fine;
}

static json_t *config(void)
{
    return json_pack("{s[s] ss si si si si si si si sf ss sb s{ss sf}}", "architectures",
                     "LlamaForCausalLM", "model_type", "llama", "hidden_size", HIDDEN,
                     "num_hidden_layers", LAYERS, "num_attention_heads", HEADS,
                     "num_key_value_heads", KV_HEADS, "intermediate_size", FFN, "vocab_size", WORDS,
                     "max_position_embeddings", POSITIONS, "rms_norm_eps", 1e-5, "hidden_act",
                     "silu", "tie_word_embeddings", 0, "rope_parameters", "rope_type", "default",
                     "rope_theta", 10000.0);
}

/* The character that represents a byte: itself if printable, else one from U+0100 on. */
static int character(int byte)
{
    static const int ranges[3][2] = { { '!', '~' }, { 0xa1, 0xac }, { 0xae, 0xff } };
    int others = 0;
    for (int b = 0; b <= byte; b++) {
        bool printable = false;
        for (int i = 0; i < 3; i++)
            printable = printable || (b >= ranges[i][0] && b <= ranges[i][1]);
        if (b == byte)
            return printable ? byte : 0x100 + others;
        others += !printable;
    }
    return 0;
}

static json_t *vocabulary(void)
{
    json_t *words = json_object();
    for (int b = 0; b < 256; b++) {
        int c = character(b);
        const char text[] = { (char) (c < 0x80 ? c : 0xc0 | c >> 6),
                              (char) (c < 0x80 ? 0 : 0x80 | (c & 63)), '\0' };
        json_object_set_new(words, text, json_integer(b));
    }
    json_object_set_new(words, "\u0120a", json_integer(BLANK_A));
    return words;
}

static json_t *special(const char *text, int id)
{
    return json_pack("{si ss sb sb sb sb sb}", "id", id, "content", text, "single_word", 0,
                     "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
}

static json_t *bytes_step(void)
{
    return json_pack("{ss sb sb sb}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                     "use_regex", 1);
}

static json_t *tokenizer(void)
{
    json_t *model =
        json_pack("{ss sn sn sn sn sb sb sb so s[s]}", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback",
                  0, "ignore_merges", 0, "vocab", vocabulary(), "merges", "\u0120 a");
    return json_pack("{ss sn sn s[o,o,o] sn so sn so so}", "version", "1.0", "truncation",
                     "padding", "added_tokens", special("<|endoftext|>", END),
                     special("<|im_start|>", END + 1), special("<|im_end|>", END + 2), "normalizer",
                     "pre_tokenizer", bytes_step(), "post_processor", "decoder", bytes_step(),
                     "model", model);
}

static json_t *tokenizer_config(void)
{
    static const char template[] =
        "{%- if messages[0].role != 'system' %}\n"
        "    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}\n"
        "{%- endif %}\n"
        "{%- for message in messages %}\n"
        "    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}\n"
        "    {{- '<|im_start|>assistant\\n' }}\n"
        "{%- endif %}\n";
    return json_pack("{ss ss}", "eos_token", "<|endoftext|>", "chat_template", template);
}

/* Replaces the rare number, whose bytes occur once in the file, with NaN. */
static bool poison(const char *path)
{
    static char bytes[1 << 20];
    const float nothing = (float) NAN;
    FILE *file = fopen(path, "r+b");
    if (file == NULL)
        return false;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    char *found = memmem(bytes, size, &rare, sizeof rare);
    bool fine = found != NULL && fseek(file, found - bytes, SEEK_SET) == 0 &&
                fwrite(&nothing, sizeof nothing, 1, file) == 1;
    return fclose(file) == 0 && fine;
}

int main(int argc, char **argv)
{
    char path[512];
    ft_error err = { 0 };
    if (argc < 3 || argc > 4) {
        fputs("make-decoder FOLDER SEED [BAD]\n", stderr);
        return 2;
    }
    if (argc == 4 && strcmp(argv[2], "poison") == 0)
        return !poison(argv[3]);
    numbers.state = strtoull(argv[2], NULL, 10);
    float *words = add("model.embed_tokens.weight", WORDS, HIDDEN, 1.0);
    if (argc == 4)
        words[strtoul(argv[3], NULL, 10) % WORDS * HIDDEN + 5] = rare;
    for (int layer = 0; layer < LAYERS; layer++)
        add_layer(layer);
    add("model.norm.weight", HIDDEN, 0, 1.0);
    add("lm_head.weight", WORDS, HIDDEN, 0.4);

    mkdir(argv[1], 0777);
    snprintf(path, sizeof path, "%s/model.safetensors", argv[1]);
    bool fine =
        ft_safetensors_write(path, tensor, count, true, &err) == FT_OK &&
        write_json(argv[1], "config.json", config()) &&
        write_json(argv[1], "generation_config.json", json_pack("{si}", "eos_token_id", END)) &&
        write_json(argv[1], "tokenizer.json", tokenizer()) &&
        write_json(argv[1], "tokenizer_config.json", tokenizer_config());
    while (count > 0)
        free(tensor[--count].tensor.data);
    if (!fine)
        fprintf(stderr, "make-decoder: %s: %s\n", argv[1], err.text);
    return !fine;
}
