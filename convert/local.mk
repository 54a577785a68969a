# From checkpoints to float artifacts.
# SPDX-License-Identifier: Apache-2.0

# Everything of ft-convert but its main(), for the tests too.
noinst_LTLIBRARIES += convert/libconvert.la
convert_libconvert_la_SOURCES = \
	convert/checkpoint.c convert/checkpoint.h \
	convert/shard_index.c convert/shard_index.h \
	convert/text_file.c convert/text_file.h
