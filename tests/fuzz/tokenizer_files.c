/*
 * tokenizer_files.c - fuzz target: the files of tokenizers that ft-convert turns into a
 * tokenizer.json.
 *
 * The first byte selects a class and one of its files, and the rest is that file. What becomes of it
 * is valid JSON, which the parser of tokenizer.json accepts or refuses with a text.  What it accepts
 * encodes a text, of which the charsmap of a seed replaces characters and graphemes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_files.h"
#include "runtime/mem.h"
#include "runtime/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <unistd.h>

static const char bpe_ids[] = "{\"a\":0,\"b\":1,\"ab\":2,\"<s>\":3,\"</s>\":4,\"<unk>\":5}";
static const char table[] = "{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"<unk>\":3,\"\\u2581\":4,\"a\":5}";

/* A class, the file that is fuzzed, and another one with its text. */
static const struct {
    const char *class, *file, *other, *text;
} targets[] = {
    { "BertTokenizer", "vocab.txt", NULL, NULL },
    { "RobertaTokenizer", "merges.txt", "vocab.json", bpe_ids },
    { "GPT2Tokenizer", "vocab.json", "merges.txt", "a b\n" },
    { "LlamaTokenizer", "tokenizer.model", NULL, NULL },
    { "T5Tokenizer", "spiece.model", "tokenizer_config.json", "{\"extra_ids\":2}" },
    { "XLMRobertaTokenizer", "sentencepiece.bpe.model", NULL, NULL },
    { "M2M100Tokenizer", "sentencepiece.bpe.model", "vocab.json", table },
    { "BertTokenizer", "tokenizer_config.json", "vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n##b\n" },
};

static char folder[64];

static void remove_folder(void)
{
    rmdir(folder);
}

static const char *in_folder(const char *name)
{
    static char path[128];
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/tmp/ft-fuzz-XXXXXX");
        require(mkdtemp(folder) != NULL);
        atexit(remove_folder);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
    FILE *out = fopen(in_folder(name), "wb");
    require(out != NULL);
    require(fwrite(data, 1, size, out) == size);
    require(fclose(out) == 0);
}

static void encode(const ft_tokenizer *tokenizer)
{
    static const char text[] = "A\u030a un\u00e9able \u5b57\t\u20ac12 <s>a \U0001f600";
    size_t count;
    ft_error err = { .text = "" };
    ft_status status =
        ft_tokenizer_encode(tokenizer, text, sizeof text - 1, NULL, 0, &count, &err);
    require(status == FT_OK || (err.text[0] != '\0' && count == 0));
}

/* Components that the parser lacks, and charsmaps that are none, are refused. */
static void parse(const ft_json_file *file)
{
    ft_tokenizer *tokenizer;
    ft_error err = { .text = "" };
    if (file->text == NULL)
        return;
    ft_status status =
        ft_tokenizer_parse(&tokenizer, "tokenizer.json", file->text, file->bytes, &err);
    require(status == FT_OK || err.text[0] != '\0');
    require(strstr(err.text, "not valid JSON") == NULL);
    if (status == FT_OK)
        encode(tokenizer);
    ft_tokenizer_close(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ft_tokenizer_files files;
    ft_error err = { .text = "" };
    if (size == 0)
        return 0;
    size_t i = data[0] % FT_COUNT(targets);
    const ft_tokenizer_hints hints = { NULL, targets[i].class };
    write_file(targets[i].file, data + 1, size - 1);
    if (targets[i].other != NULL)
        write_file(targets[i].other, targets[i].text, strlen(targets[i].text));
    ft_status status = ft_tokenizer_files_read(&files, folder, &hints, &err);
    if (status == FT_OK)
        parse(&files.tokenizer);
    else
        require(err.code == status && err.text[0] != '\0');
    ft_tokenizer_files_fini(&files);
    unlink(in_folder(targets[i].file));
    if (targets[i].other != NULL)
        unlink(in_folder(targets[i].other));
    return 0;
}
