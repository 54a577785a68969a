# Models: load, plan, run.
# SPDX-License-Identifier: Apache-2.0

# Everything, not installed: the tools and the tests link this and may use internals.
noinst_LTLIBRARIES += runtime/libcore.la
runtime_libcore_la_SOURCES = \
	runtime/added_tokens.c runtime/added_tokens.h \
	runtime/added_tokens_json.c \
	runtime/amax.c runtime/amax.h \
	runtime/amax_list.c \
	runtime/artifact.h \
	runtime/artifact_private.h \
	runtime/artifact_read.c runtime/artifact_scales.c \
	runtime/artifact_verify.c \
	runtime/artifact_write.c \
	runtime/bert_normalizer.c runtime/bert_normalizer.h \
	runtime/bind.c runtime/bind.h \
	runtime/bpe.c runtime/bpe.h \
	runtime/byte_chars.h \
	runtime/chat.c \
	runtime/classes.c runtime/classes.h \
	runtime/clock.h \
	runtime/contract.c runtime/contract.h \
	runtime/dataset.c runtime/dataset.h runtime/dataset_read.c \
	runtime/decode.c runtime/decode.h \
	runtime/decoder_json.c \
	runtime/devices.c runtime/devices.h \
	runtime/error.c runtime/error.h \
	runtime/fake.c runtime/fake.h \
	runtime/families/bert.c \
	runtime/families/encoder_decoder.c runtime/families/encoder_decoder.h \
	runtime/families/families.h \
	runtime/families/llama.c \
	runtime/families/m2m100.c \
	runtime/families/marian.c \
	runtime/families/vit.c \
	runtime/family.c runtime/family.h \
	runtime/ft.h \
	runtime/generate.c \
	runtime/graph.c runtime/graph.h runtime/graph_decoder.c runtime/graph_private.h \
	runtime/json_build.c runtime/json_build.h \
	runtime/json_section.c runtime/json_section.h \
	runtime/json_tables.c \
	runtime/lower.c runtime/lower.h \
	runtime/lower_codes.c runtime/lower_edit.c runtime/lower_types.c runtime/lower_passes.h \
	runtime/manifest.c runtime/manifest.h \
	runtime/mark_run.c runtime/mark_run.h \
	runtime/mem.c runtime/mem.h \
	runtime/model.c runtime/model.h \
	runtime/model_config.c runtime/model_config.h \
	runtime/model_config_json.c \
	runtime/model_config_text.c \
	runtime/nfc.c runtime/nfc.h \
	runtime/normalizer.c runtime/normalizer.h \
	runtime/output.c runtime/output.h \
	runtime/padded.c runtime/padded.h \
	runtime/pages.c runtime/pages.h \
	runtime/passages.c runtime/passages.h \
	runtime/pipeline_json.c \
	runtime/pixels.c runtime/pixels.h \
	runtime/plan.c runtime/plan.h \
	runtime/post_processor_json.c \
	runtime/pretokenize.c runtime/pretokenize.h \
	runtime/products.c runtime/products.h \
	runtime/recognize.c runtime/recognize.h \
	runtime/regex.c runtime/regex.h \
	runtime/regex_pattern.c \
	runtime/requests.c runtime/requests.h \
	runtime/rope.c runtime/rope.h \
	runtime/safetensors.c runtime/safetensors.h \
	runtime/safetensors_header.c runtime/safetensors_header.h \
	runtime/safetensors_scan.c runtime/safetensors_scan.h \
	runtime/safetensors_write.c \
	runtime/score.c runtime/score.h \
	runtime/search.c runtime/search.h \
	runtime/search_check.c \
	runtime/session.c runtime/session.h runtime/session_open.c \
	runtime/sha256.c runtime/sha256.h \
	runtime/sinusoids.c runtime/sinusoids.h \
	runtime/stop_ids.c runtime/stop_ids.h \
	runtime/stop_text.c runtime/stop_text.h \
	runtime/tensor.c runtime/tensor.h \
	runtime/text.c runtime/text.h \
	runtime/token_ids.h \
	runtime/tokenizer.c runtime/tokenizer.h \
	runtime/tokenizer_decode.c \
	runtime/tokenizer_json.c runtime/tokenizer_json.h \
	runtime/trie.c runtime/trie.h \
	runtime/unfinished.c runtime/unfinished.h \
	runtime/unicode.c runtime/unicode.h \
	runtime/utf8.h \
	runtime/vocabulary.c runtime/vocabulary.h \
	runtime/vocabulary_json.c runtime/vocabulary_json.h \
	runtime/word_list.c runtime/word_list.h \
	runtime/wordpiece.c runtime/wordpiece.h \
	runtime/zipdir.c runtime/zipdir.h \
	runtime/zipwrite.c runtime/zipwrite.h
runtime_libcore_la_LIBADD = $(kernels_libs) $(FT_LIBS)

# The installed library: the same objects, only FT_API symbols visible.
lib_LTLIBRARIES += libftruntime.la
libftruntime_la_SOURCES =
libftruntime_la_LIBADD = runtime/libcore.la
libftruntime_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -version-info 0:0:0
include_HEADERS = runtime/ft.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runtime/ft-runtime.pc

# Tools: each links the common command line, ft-convert and ft-calibrate too.
noinst_LTLIBRARIES += runtime/libtools.la
runtime_libtools_la_SOURCES = \
	runtime/tools/classes_text.c runtime/tools/classes_text.h \
	runtime/tools/json_stream.c runtime/tools/json_stream.h \
	runtime/tools/columns.c runtime/tools/columns.h \
	runtime/tools/noise.h \
	runtime/tools/options.c runtime/tools/options.h \
	runtime/tools/progress.c runtime/tools/progress.h \
	runtime/tools/shapes.c \
	runtime/tools/signals.c runtime/tools/signals.h \
	runtime/tools/synthetic.c runtime/tools/synthetic.h
runtime_libtools_la_LIBADD = runtime/libcore.la

# Image files: what ft-run alone needs libraries for.
noinst_LTLIBRARIES += runtime/libimages.la
runtime_libimages_la_SOURCES = \
	runtime/images/decoder.h \
	runtime/images/image.c runtime/images/image.h \
	runtime/images/jpeg.c \
	runtime/images/png.c \
	runtime/images/processor.c runtime/images/processor.h \
	runtime/images/resize.c
runtime_libimages_la_CFLAGS = $(AM_CFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS)
runtime_libimages_la_LIBADD = runtime/libcore.la $(PNG_LIBS) $(JPEG_LIBS)

bin_PROGRAMS += ft-run
ft_run_SOURCES = \
	runtime/tools/ft-run.c \
	runtime/tools/generation.h \
	runtime/tools/results.c runtime/tools/results.h \
	runtime/tools/run.h \
	runtime/tools/run_chat.c \
	runtime/tools/run_forward.c \
	runtime/tools/run_generate.c \
	runtime/tools/run_images.c runtime/tools/run_images.h \
	runtime/tools/run_options.c \
	runtime/tools/run_prompts.c runtime/tools/run_prompts.h \
	runtime/tools/run_report.c \
	runtime/tools/run_search.c \
	runtime/tools/talk.c runtime/tools/talk.h \
	runtime/tools/text_reader.c \
	runtime/tools/texts.c runtime/tools/texts.h
ft_run_LDADD = runtime/libimages.la runtime/libtools.la

bin_PROGRAMS += ft-inspect
ft_inspect_SOURCES = \
	runtime/tools/ft-inspect.c \
	runtime/tools/inspect.h \
	runtime/tools/inspect_amax.c \
	runtime/tools/inspect_diff.c \
	runtime/tools/inspect_plan.c
ft_inspect_LDADD = runtime/libtools.la

bin_PROGRAMS += ft-eval
ft_eval_SOURCES = \
	runtime/tools/eval.h \
	runtime/tools/eval_classes.c \
	runtime/tools/eval_judge.c \
	runtime/tools/eval_tokens.c \
	runtime/tools/ft-eval.c
ft_eval_LDADD = runtime/libtools.la

bin_PROGRAMS += ft-bench
ft_bench_SOURCES = \
	runtime/tools/bench.h \
	runtime/tools/bench_case.c \
	runtime/tools/bench_decode.c \
	runtime/tools/bench_gemm.c \
	runtime/tools/bench_ops.c \
	runtime/tools/bench_options.c runtime/tools/bench_options.h \
	runtime/tools/bench_product.c \
	runtime/tools/bench_search.c \
	runtime/tools/bench_step.c \
	runtime/tools/bench_time.c \
	runtime/tools/ft-bench.c \
	runtime/tools/table.c runtime/tools/table.h
ft_bench_LDADD = runtime/libtools.la

dist_man_MANS += runtime/ft-artifact.5 \
	runtime/tools/ft-bench.1 runtime/tools/ft-eval.1 \
	runtime/tools/ft-inspect.1 runtime/tools/ft-run.1
