/*
 * tokenizer_class.c - find the class of a tokenizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "convert/tokenizer/tokenizer_class.h"

#include "runtime/mem.h"

#include <string.h>

#define BERT_FILES                                                                                 \
    {                                                                                              \
        "vocab.txt"                                                                                \
    }
#define BPE_FILES                                                                                  \
    {                                                                                              \
        "vocab.json", "merges.txt"                                                                 \
    }
#define FAIRSEQ_FILES                                                                              \
    {                                                                                              \
        "sentencepiece.bpe.model"                                                                  \
    }

static const ft_tokenizer_class classes[] = {
    { "BertTokenizer", BERT_FILES, ft_bert_build, NULL, NULL },
    { "DistilBertTokenizer", BERT_FILES, ft_bert_build, NULL, NULL },
    { "ElectraTokenizer", BERT_FILES, ft_bert_build, NULL, NULL },
    { "MPNetTokenizer", BERT_FILES, ft_mpnet_build, NULL, NULL },
    { "GPT2Tokenizer", BPE_FILES, ft_gpt2_build, NULL, NULL },
    { "RobertaTokenizer", BPE_FILES, ft_roberta_build, NULL, NULL },
    { "BartTokenizer", BPE_FILES, ft_roberta_build, NULL, NULL },
    { "Qwen2Tokenizer", BPE_FILES, ft_qwen2_build, NULL, NULL },
    { "HerbertTokenizer", BPE_FILES, ft_herbert_build, NULL, NULL },
    { "LlamaTokenizer", { "tokenizer.model" }, ft_llama_build, NULL, NULL },
    { "T5Tokenizer", { "spiece.model" }, ft_t5_build, NULL, NULL },
    { "XLMRobertaTokenizer", FAIRSEQ_FILES, ft_xlm_roberta_build, NULL, NULL },
    { "MBartTokenizer", FAIRSEQ_FILES, ft_mbart_build, NULL, &ft_mbart_languages },
    { "MBart50Tokenizer", FAIRSEQ_FILES, ft_mbart50_build, NULL, &ft_mbart50_languages },
    { "NllbTokenizer", FAIRSEQ_FILES, ft_nllb_build, NULL, &ft_nllb_languages },
    { "M2M100Tokenizer",
      { "sentencepiece.bpe.model", "vocab.json" },
      ft_m2m100_build,
      NULL,
      &ft_m2m100_languages },
    { "MarianTokenizer",
      { "source.spm", "target.spm", "vocab.json" },
      ft_marian_build,
      ft_marian_build_target,
      &ft_marian_languages },
};

/* Where no file names the class; the first whose file exists. MBart's two classes look alike. */
static const struct {
    const char *model_type, *file, *class;
} by_model_type[] = {
    { "bert", "vocab.txt", "BertTokenizer" },
    { "distilbert", "vocab.txt", "DistilBertTokenizer" },
    { "electra", "vocab.txt", "ElectraTokenizer" },
    { "mpnet", "vocab.txt", "MPNetTokenizer" },
    { "gpt2", "merges.txt", "GPT2Tokenizer" },
    { "roberta", "merges.txt", "RobertaTokenizer" },
    { "bart", "merges.txt", "BartTokenizer" },
    { "qwen2", "merges.txt", "Qwen2Tokenizer" },
    { "qwen3", "merges.txt", "Qwen2Tokenizer" },
    { "llama", "tokenizer.model", "LlamaTokenizer" },
    { "mistral", "tokenizer.model", "LlamaTokenizer" },
    { "t5", "spiece.model", "T5Tokenizer" },
    { "xlm-roberta", "sentencepiece.bpe.model", "XLMRobertaTokenizer" },
    { "m2m_100", "vocab.json", "M2M100Tokenizer" },
    { "m2m_100", "sentencepiece.bpe.model", "NllbTokenizer" },
    { "marian", "source.spm", "MarianTokenizer" },
};

static const ft_tokenizer_class *find_by_name(const char *name)
{
    size_t bytes = strlen(name);
    if (bytes > 4 && strcmp(name + bytes - 4, "Fast") == 0)
        bytes -= 4;
    for (size_t i = 0; i < FT_COUNT(classes); i++)
        if (strlen(classes[i].name) == bytes && memcmp(classes[i].name, name, bytes) == 0)
            return &classes[i];
    return NULL;
}

/* Whether a name says nothing about the form of the tokenizer. */
static bool is_general(const char *name)
{
    static const char *const names[] = { "PreTrainedTokenizerFast", "PreTrainedTokenizer",
                                         "TokenizersBackend", "AutoTokenizer" };
    size_t i = 0;
    while (i < FT_COUNT(names) && strcmp(names[i], name) != 0)
        i++;
    return i < FT_COUNT(names);
}

static const ft_tokenizer_class *find_by_model_type(const ft_tokenizer_source *source,
                                                    const char *model_type)
{
    for (size_t i = 0; i < FT_COUNT(by_model_type); i++)
        if (strcmp(by_model_type[i].model_type, model_type) == 0 &&
            ft_tokenizer_source_has(source, by_model_type[i].file))
            return find_by_name(by_model_type[i].class);
    return NULL;
}

const ft_tokenizer_class *ft_tokenizer_class_find(const ft_tokenizer_source *source,
                                                  const char *name, const char *config_name,
                                                  const char *model_type)
{
    if (name != NULL && !is_general(name))
        return find_by_name(name);
    if (config_name != NULL && !is_general(config_name))
        return find_by_name(config_name);
    return model_type == NULL ? NULL : find_by_model_type(source, model_type);
}
