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
	convert/report.c convert/report.h \
	convert/config/rope.c \
	convert/config/sentence_transformers.c convert/config/sentence_transformers.h \
	convert/checkpoint/shard_index.c convert/checkpoint/shard_index.h \
	convert/protect_checkpoint.c convert/protect_checkpoint.h \
	convert/checkpoint/text_file.c convert/checkpoint/text_file.h \
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
	convert/config/README.md
