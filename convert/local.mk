# From checkpoints to float artifacts.
# SPDX-License-Identifier: Apache-2.0

# Everything of ft-convert but its main(), for the tests too.
noinst_LTLIBRARIES += convert/libconvert.la
convert_libconvert_la_SOURCES = \
	convert/checkpoint/checkpoint.c convert/checkpoint/checkpoint.h \
	convert/config/hf_config.c convert/config/hf_config.h \
	convert/config/config_reader.h \
	convert/config/config_value.c \
	convert/convert.c convert/convert.h \
	convert/tied_weights.c convert/tied_weights.h \
	convert/dtype_convert.c convert/dtype_convert.h \
	convert/map_weights.c convert/map_weights.h \
	convert/config/generation.c convert/config/generation.h \
	convert/config/labels.c \
	convert/config/other_keys.c \
	convert/config/refuse.c convert/config/refuse.h \
	convert/provenance.c convert/provenance.h \
	convert/report.c convert/report.h \
	convert/rotate_weights.c convert/rotate_weights.h \
	convert/rotation.c convert/rotation.h \
	convert/source_files.c convert/source_files.h \
	convert/config/rope.c \
	convert/config/sentence_text.c \
	convert/config/sentence_transformers.c convert/config/sentence_transformers.h \
	convert/checkpoint/shard_index.c convert/checkpoint/shard_index.h \
	convert/protect_checkpoint.c convert/protect_checkpoint.h \
	convert/checkpoint/text_file.c convert/checkpoint/text_file.h \
	convert/tokenizer/bert.c \
	convert/tokenizer/byte_level.c convert/tokenizer/herbert.c \
	convert/tokenizer/checkpoint_chat.c convert/tokenizer/checkpoint_chat.h \
	convert/tokenizer/tokenizer_class.c convert/tokenizer/tokenizer_class.h \
	convert/tokenizer/draft/base64.c convert/tokenizer/draft/base64.h \
	convert/tokenizer/draft/components.c convert/tokenizer/draft/components.h \
	convert/tokenizer/draft/draft.c convert/tokenizer/draft/draft.h \
	convert/tokenizer/draft/bpe_model.c convert/tokenizer/draft/bpe_model.h \
	convert/tokenizer/draft/merges.c convert/tokenizer/draft/merges.h \
	convert/tokenizer/draft/piece_file.c convert/tokenizer/draft/piece_file.h \
	convert/tokenizer/draft/piece_model.c convert/tokenizer/draft/piece_model.h \
	convert/tokenizer/draft/piece_pipeline.c \
	convert/tokenizer/draft/source.c convert/tokenizer/draft/source.h \
	convert/tokenizer/draft/special_names.c convert/tokenizer/draft/special_names.h \
	convert/tokenizer/draft/vocabulary_files.c convert/tokenizer/draft/vocabulary_files.h \
	convert/tokenizer/fairseq.c \
	convert/tokenizer/id_table.c \
	convert/tokenizer/language_codes.c \
	convert/tokenizer/languages.c convert/tokenizer/languages.h \
	convert/tokenizer/llama.c \
	convert/tokenizer/lowercase.c convert/tokenizer/lowercase.h \
	convert/tokenizer/sentencepiece/sentencepiece.c convert/tokenizer/sentencepiece/sentencepiece.h \
	convert/tokenizer/sentencepiece/wire.c convert/tokenizer/sentencepiece/wire.h \
	convert/tokenizer/t5.c \
	convert/tokenizer/tokenizer_files.c convert/tokenizer/tokenizer_files.h \
	convert/weight_reader.c convert/weight_reader.h \
	convert/config/window.c

noinst_PROGRAMS += ft-convert
bin_PROGRAMS += bin/ft-convert
ft_convert_SOURCES = convert/main.c
ft_convert_LDADD = convert/libconvert.la runtime/libtools.la $(tool_libs)
bin_ft_convert_SOURCES = $(ft_convert_SOURCES)
bin_ft_convert_LDADD = $(ft_convert_LDADD)
bin_ft_convert_LDFLAGS = $(installed_ldflags)
dist_man_MANS += convert/ft-convert.1

# What each folder holds, and what it may include.
EXTRA_DIST += \
	convert/README.md \
	convert/checkpoint/README.md \
	convert/config/README.md \
	convert/tokenizer/README.md \
	convert/tokenizer/draft/README.md \
	convert/tokenizer/sentencepiece/README.md
