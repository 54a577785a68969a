/*
 * tokenizer.c - fuzz target: the parser of tokenizer.json, encoders and decoders.
 *
 * The first byte selects the input.  From 0x80, the rest is a tokenizer.json, which then encodes a
 * text; below, the rest is a text, and also token ids of one byte each.  Up to 0x3f the tokenizer
 * is WordPiece, and the low bits are the steps of the normalizer; from 0x40 it is BPE, and the low
 * bits select its settings.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "runtime/mem.h"
#include "runtime/text/tokenizer.h"
#include "runtime/base/utf8.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

/* ---- Requirements -------------------------------------------------------------------------- */

/* Incremental detokenization gives the same text in pieces of complete characters. */
static void check_stream(const ft_tokenizer *tokenizer, const int32_t *ids, size_t count,
                         const char *text, size_t bytes)
{
    ft_detokenizer *decoder;
    const char *piece;
    size_t length, done = 0;
    require(ft_detokenizer_open(&decoder, tokenizer, false, NULL) == FT_OK);
    for (size_t i = 0; i <= count; i++) {
        require((i < count ? ft_detokenizer_push(decoder, ids[i], &piece, &length, NULL)
                           : ft_detokenizer_finish(decoder, &piece, &length, NULL)) == FT_OK);
        require(done + length <= bytes && memcmp(text + done, piece, length) == 0);
        require(ft_utf8_valid_prefix(piece, length) == length);
        done += length;
    }
    require(done == bytes);
    ft_detokenizer_close(decoder);
}

static void decode(const ft_tokenizer *tokenizer, const int32_t *ids, size_t count)
{
    ft_error err;
    size_t bytes, again;
    ft_status rc = ft_tokenizer_decode(tokenizer, ids, count, false, NULL, 0, &bytes, &err);
    require(rc == FT_OK || (rc == FT_EUNSUPPORTED && bytes == 0));
    if (rc != FT_OK)
        return;
    char *text = ft_calloc(bytes, 1);
    require(text != NULL);
    require(ft_tokenizer_decode(tokenizer, ids, count, false, text, bytes, &again, &err) == FT_OK);
    require(again == bytes);
    check_stream(tokenizer, ids, count, text, bytes);
    free(text);
}

/* The count and the ids do not depend on the capacity, and all ids are valid. */
static void encode(const ft_tokenizer *tokenizer, const char *text, size_t bytes)
{
    ft_error err;
    size_t count, again;
    ft_status rc = ft_tokenizer_encode(tokenizer, text, bytes, NULL, 0, &count, &err);
    require(rc == FT_OK || ((rc == FT_EFORMAT || rc == FT_ELIMIT) && count == 0));
    if (rc != FT_OK)
        return;
    int32_t *ids = ft_calloc(count, sizeof *ids);
    require(ids != NULL);
    require(ft_tokenizer_encode(tokenizer, text, bytes, ids, count, &again, &err) == FT_OK);
    require(again == count);
    for (size_t i = 0; i < count; i++)
        require(ids[i] >= 0);
    decode(tokenizer, ids, count);
    free(ids);
}

static void parse_and_encode(const char *json, size_t bytes)
{
    static const char text[] =
        "[MASK] un\u00e9able \u5b57\t\u302e\u302f <x> ing.  abc\u20ac12 <s>a";
    ft_tokenizer *tokenizer;
    ft_error err;
    ft_status rc = ft_tokenizer_parse(&tokenizer, "fuzz", json, bytes, &err);
    require((rc == FT_OK) == (tokenizer != NULL));
    if (rc == FT_OK)
        encode(tokenizer, text, sizeof text - 1);
    ft_tokenizer_close(tokenizer);
}

/* ---- Fixed tokenizers ------------------------------------------------------------------------ */

/* clang-format off */
#define ADDED(id, content, single, left, right, normal)                                            \
    "{'id':" id ",'content':'" content "','single_word':" single ",'lstrip':" left                 \
    ",'rstrip':" right ",'normalized':" normal ",'special':false}"
#define ADDED_TOKENS(a, b, c, d, e)                                                                \
    "'added_tokens':["                                                                             \
    ADDED(a, "[M]", "false", "false", "false", "false") ","                                        \
    ADDED(b, " ", "false", "false", "true", "false") ","                                           \
    ADDED(c, "<x>", "false", "true", "true", "false") ","                                          \
    ADDED(d, "un", "true", "false", "false", "true") ","                                           \
    ADDED(e, "\\u00e9", "false", "true", "false", "true") "],"
/* clang-format on */

static const char wordpiece[] = "{" ADDED_TOKENS(
    "12", "13", "14", "15",
    "16") "'normalizer':{'type':'BertNormalizer','clean_text':%s,'handle_chinese_chars':%s,"
          "'strip_accents':%s,'lowercase':%s},'pre_tokenizer':{'type':'BertPreTokenizer'},"
          "'decoder':{'type':'WordPiece','prefix':'##','cleanup':true},"
          "'model':{'type':'WordPiece','unk_token':'[UNK]','continuing_subword_prefix':'##',"
          "'max_input_chars_per_word':20,'vocab':{'[UNK]':0,'a':1,'##a':2,'ab':3,'##ba':4,'e':5,'##"
          "e':6,"
          "'\\u5b57':7,'!':8,'##\\u0301':9,'\\u302e':10,'##\\u302f':11}}}";

static const char bpe[] = "{" ADDED_TOKENS(
    "18", "19", "20", "21",
    "22") "'normalizer':%s,'pre_tokenizer':%s,'decoder':%s,"
          "'model':{'type':'BPE','unk_token':'?','fuse_unk':%s,'byte_fallback':%s,'vocab':{'a':0,'"
          "b':1,"
          "'ab':2,'aa':3,'\\u0120':4,'\\u00c3':5,'\\u00a9':6,'\\u00c3\\u00a9':7,'\\u2581':8,'"
          "\\u2581a':9,"
          "'<0xC3>':10,'<0xA9>':11,'<0xE5>':12,'?':13,'1':14,'11':15,'aaaa':16,'\\u00e5':17},"
          "'merges':['a b','a a',['\\u00c3','\\u00a9'],'\\u2581 a','1 1','aa aa']}}";

static const char *const normalizers[] = {
    "null",
    "{'type':'NFC'}",
    "{'type':'Sequence','normalizers':[{'type':'Prepend','prepend':'\\u2581'},"
    "{'type':'Replace','pattern':{'String':' '},'content':'\\u2581'}]}",
    "{'type':'Sequence','normalizers':[{'type':'NFC'},"
    "{'type':'Replace','pattern':{'String':'a'},'content':''}]}",
};
static const char *const words[] = {
    "null",
    "{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':true,'use_regex':true}",
    "{'type':'Sequence','pretokenizers':[{'type':'Digits','individual_digits':true},{'type':'Split'"
    ","
    "'pattern':{'Regex':'(?:a|b)+?|\\\\s+(?!\\\\S)|x*'},'behavior':'MergedWithNext','invert':false}"
    ","
    "{'type':'ByteLevel','add_prefix_space':false,'trim_offsets':true,'use_regex':false}]}",
    "{'type':'Metaspace','replacement':'\\u2581','prepend_scheme':'first','split':true}",
};
static const char *const decoders[] = {
    "{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':true,'use_regex':true}",
    "{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' "
    "'},"
    "{'type':'ByteFallback'},{'type':'Fuse'},{'type':'Strip','content':' ','start':1,'stop':0}]}",
};

/* A tokenizer from JSON text with ' in place of ". */
static ft_tokenizer *parse(char *json)
{
    ft_tokenizer *tokenizer;
    ft_error err;
    for (char *quote = json; (quote = strchr(quote, '\'')) != NULL;)
        *quote = '"';
    require(ft_tokenizer_parse(&tokenizer, "fixed", json, strlen(json), &err) == FT_OK);
    return tokenizer;
}

static ft_tokenizer *fixed_tokenizer(unsigned choice)
{
    static const char *const truth[] = { "false", "true" };
    char json[4096];
    if (choice < 0x40)
        snprintf(json, sizeof json, wordpiece, truth[choice & 1], truth[choice >> 1 & 1],
                 truth[choice >> 2 & 1], truth[choice >> 3 & 1]);
    else
        snprintf(json, sizeof json, bpe, normalizers[choice & 3], words[choice >> 2 & 3],
                 decoders[choice >> 4 & 1], truth[choice >> 5 & 1], truth[choice >> 4 & 1]);
    return parse(json);
}

static void decode_bytes(const ft_tokenizer *tokenizer, const char *data, size_t count)
{
    int32_t *ids = ft_calloc(count, sizeof *ids);
    require(ids != NULL);
    for (size_t i = 0; i < count; i++)
        ids[i] = (unsigned char) data[i] % 32;
    decode(tokenizer, ids, count);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *rest = (const char *) data + 1;
    if (data[0] >= 0x80) {
        parse_and_encode(rest, size - 1);
    } else {
        ft_tokenizer *tokenizer = fixed_tokenizer(data[0]);
        encode(tokenizer, rest, size - 1);
        decode_bytes(tokenizer, rest, size - 1);
        ft_tokenizer_close(tokenizer);
    }
    return 0;
}
