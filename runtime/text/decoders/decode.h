/*
 * decode.h - decode token ids to text by the decoder of a tokenizer.json.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FT_RUNTIME_TEXT_DECODERS_DECODE_H
#define FT_RUNTIME_TEXT_DECODERS_DECODE_H

#include "runtime/base/json_reader.h"
#include "runtime/base/strbuf.h"

enum { FT_DECODER_MAX_REPLACE = 4 };

typedef enum ft_decoder_kind {
    FT_DECODER_SPACES,      /* no decoder: tokens are joined by spaces */
    FT_DECODER_BYTE_LEVEL,  /* ByteLevel: each character encodes a byte */
    FT_DECODER_METASPACE,   /* Metaspace: one character encodes spaces */
    FT_DECODER_WORDPIECE,   /* WordPiece: a space before tokens without the continuation prefix */
    FT_DECODER_BPE,         /* BPEDecoder: a suffix becomes a space, but not in the last token */
    FT_DECODER_SEQUENCE,    /* any of Replace, ByteFallback, Fuse, Strip */
    FT_DECODER_UNSUPPORTED, /* `problem` says why */
} ft_decoder_kind;

typedef struct ft_decoder_config {
    ft_decoder_kind kind;
    char *space_text;      /* METASPACE, BPE: encodes a space; SEQUENCE: is stripped; owned */
    bool keep_first_space; /* METASPACE: keep the spaces of the first token */
    char *prefix;          /* WORDPIECE: "##"; owned */
    bool cleanup;          /* WORDPIECE: no space before punctuation */
    struct {
        char *pattern, *content; /* owned */
    } replace[FT_DECODER_MAX_REPLACE];
    size_t n_replace;
    bool bytes;        /* SEQUENCE: tokens such as <0xE2> are bytes */
    bool fuse;         /* SEQUENCE: later steps see all tokens as one */
    int64_t max_strip; /* SEQUENCE: strip at most this many at the start */
    ft_error problem;
} ft_decoder_config;

/*
 * Parse the section "decoder" of a tokenizer.json. An unsupported decoder is not an error here:
 * out->problem describes it for later.
 */
FT_MUST_USE ft_status ft_decoder_read_json(ft_decoder_config *out, const ft_json_reader *file);
void ft_decoder_config_fini(ft_decoder_config *decoder_config);

/* Incremental decoding, token by token. Initialize with { .decoder_config = ... }. */
typedef struct ft_decode_stream {
    const ft_decoder_config *decoder_config;
    ft_strbuf out;     /* decoded text; the caller consumes it and sets bytes to 0 */
    ft_strbuf token;   /* the current token, between steps */
    ft_strbuf pending; /* bytes of an incomplete character, of byte tokens, or the last token */
    size_t tokens;     /* so far */
    int64_t stripped;
    bool text_started; /* text has started: nothing more is stripped */
} ft_decode_stream;

/*
 * Append the text that is complete after one more token, or the rest at the end. False when out of
 * memory, or when the token grows by more than ft_strbuf_growth_limit(), which sets
 * stream->token.overflowed.
 */
FT_MUST_USE bool ft_decode_stream_push(ft_decode_stream *stream, const char *text, size_t bytes);
FT_MUST_USE bool ft_decode_stream_finish(ft_decode_stream *stream);
/* Start another text; keeps the memory. */
void ft_decode_stream_reset(ft_decode_stream *stream);
void ft_decode_stream_fini(ft_decode_stream *stream);

#endif
