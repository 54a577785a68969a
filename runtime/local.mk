# Models: load, plan, run.
# SPDX-License-Identifier: Apache-2.0

# Everything, not installed: the tests link this and reach what no header of the tools declares.
noinst_LTLIBRARIES += runtime/libcore.la
runtime_libcore_la_SOURCES = \
	runtime/text/added_tokens.c runtime/text/added_tokens.h \
	runtime/text/aligned/aligned_text.c runtime/text/aligned/aligned_text.h \
	runtime/text/aligned/byte_range.h \
	runtime/text/decoders/decode.c runtime/text/decoders/decode.h runtime/text/decoders/decoder_json.c \
	runtime/text/decoders/json_fields.c runtime/text/decoders/json_fields.h \
	runtime/text/embedding_rows.c runtime/text/embedding_rows.h \
	runtime/text/encode.c runtime/text/encoding.c \
	runtime/text/tokenizer_language.c runtime/text/translator.c runtime/text/translator.h \
	runtime/text/trim_offsets.c runtime/text/trim_offsets.h \
	runtime/text/normalizers/bert.c runtime/text/normalizers/bert.h runtime/text/normalizers/bert_steps.c \
	runtime/text/normalizers/characters.c runtime/text/normalizers/characters.h \
	runtime/text/normalizers/charsmap.c runtime/text/normalizers/charsmap.h \
	runtime/text/normalizers/forms.c runtime/text/normalizers/forms.h \
	runtime/text/normalizers/normalizer.c runtime/text/normalizers/normalizer.h \
	runtime/text/normalizers/normalizer_json.c \
	runtime/text/normalizers/replace.c runtime/text/normalizers/replace.h \
	runtime/text/post_processors/post_processor.h runtime/text/post_processors/post_processor_json.c \
	runtime/text/pre_tokenizers/pre_tokenizer.c runtime/text/pre_tokenizers/pre_tokenizer.h \
	runtime/text/pre_tokenizers/pre_tokenizer_json.c \
	runtime/text/pre_tokenizers/splits.c runtime/text/pre_tokenizers/splits.h \
	runtime/text/pre_tokenizers/transforms.c runtime/text/pre_tokenizers/transforms.h \
	runtime/text/unicode/regex_json.c runtime/text/unicode/regex_json.h \
	runtime/text/added_tokens_json.c \
	runtime/container/amax.c runtime/container/amax.h \
	runtime/container/amax_list.c \
	runtime/container/artifact.h \
	runtime/container/artifact_lookup.c \
	runtime/container/artifact_private.h \
	runtime/container/artifact_read.c runtime/container/artifact_scales.c \
	runtime/container/artifact_verify.c \
	runtime/container/artifact_write.c \
	runtime/container/artifact_copy.c runtime/container/artifact_copy.h \
	runtime/container/provenance.c runtime/container/provenance.h \
	runtime/model/bind.c runtime/model/bind.h \
	runtime/text/models/bpe.c runtime/text/models/bpe.h runtime/text/models/bpe_joins.h \
	runtime/text/models/bpe_merge.c runtime/text/models/bpe_merge.h \
	runtime/text/embedding_prompts.c runtime/text/embedding_prompts.h \
	runtime/text/unicode/byte_chars.h \
	runtime/text/chat.c \
	runtime/text/chat_template.c runtime/text/chat_template.h \
	runtime/text/jinja/evaluate.c \
	runtime/text/jinja/execute.c \
	runtime/text/jinja/interpreter.h \
	runtime/text/jinja/jinja.h \
	runtime/text/jinja/lexer.c runtime/text/jinja/lexer.h \
	runtime/text/jinja/lexer_expression.c \
	runtime/text/jinja/loop.c \
	runtime/text/jinja/macro.c \
	runtime/text/jinja/node.h \
	runtime/text/jinja/parse_expression.c \
	runtime/text/jinja/parse_primary.c \
	runtime/text/jinja/parse_statement.c \
	runtime/text/jinja/parse.c \
	runtime/text/jinja/parser.h runtime/text/jinja/parser_tokens.c \
	runtime/text/jinja/render.c \
	runtime/text/jinja/variables.c \
	runtime/text/jinja/builtins/attribute.c \
	runtime/text/jinja/builtins/builtin.h \
	runtime/text/jinja/builtins/filters.h \
	runtime/text/jinja/builtins/filters_list.c \
	runtime/text/jinja/builtins/filters_number.c \
	runtime/text/jinja/builtins/filters_select.c \
	runtime/text/jinja/builtins/filters_sort.c \
	runtime/text/jinja/builtins/filters_text.c \
	runtime/text/jinja/builtins/functions.c \
	runtime/text/jinja/builtins/invoke.c \
	runtime/text/jinja/builtins/letter_case.c \
	runtime/text/jinja/builtins/methods.c runtime/text/jinja/builtins/methods.h \
	runtime/text/jinja/builtins/methods_split.c \
	runtime/text/jinja/builtins/methods_string.c \
	runtime/text/jinja/builtins/operators.c \
	runtime/text/jinja/builtins/strings.c \
	runtime/text/jinja/builtins/tests.c \
	runtime/text/jinja/values/arena.c runtime/text/jinja/values/arena.h \
	runtime/text/jinja/values/json.c \
	runtime/text/jinja/values/percent.c \
	runtime/text/jinja/values/run.c runtime/text/jinja/values/run.h \
	runtime/text/jinja/values/sequence.c \
	runtime/text/jinja/values/string.c runtime/text/jinja/values/string.h \
	runtime/text/jinja/values/text.c runtime/text/jinja/values/text.h \
	runtime/text/jinja/values/value.c runtime/text/jinja/values/value.h \
	runtime/scores/class_metrics.c runtime/scores/class_metrics.h \
	runtime/scores/class_scores.c runtime/scores/class_scores.h \
	runtime/scores/divergence.c runtime/scores/divergence.h \
	runtime/base/base64.c runtime/base/base64.h \
	runtime/base/affix.h \
	runtime/base/file_name.h \
	runtime/base/read_file.c runtime/base/read_file.h \
	runtime/base/file_memory.c runtime/base/file_memory.h \
	runtime/base/clock.h \
	runtime/tuning/tuning.c runtime/tuning/tuning.h \
	runtime/model/validate.c runtime/model/validate.h \
	runtime/container/features.c runtime/container/features.h \
	runtime/scores/tasks/best_answer.c runtime/scores/tasks/best_answer.h \
	runtime/scores/tasks/tagged_entities.c runtime/scores/tasks/tagged_entities.h \
	runtime/scores/tasks/top_tokens.c runtime/scores/tasks/top_tokens.h \
	runtime/data/context_windows.c runtime/data/context_windows.h \
	runtime/data/dataset.c runtime/data/dataset.h runtime/data/dataset_read.c \
	runtime/data/target_labels.c runtime/data/target_labels.h \
	runtime/model/devices.c runtime/model/devices.h \
	runtime/selftest/model_open.c \
	runtime/selftest/selftest.c runtime/selftest/selftest.h \
	runtime/selftest/selftest_file.c \
	runtime/error.c runtime/error.h \
	runtime/model/quantize_weight.c runtime/model/quantize_weight.h \
	runtime/model/folded.c runtime/model/folded.h \
	runtime/model/smoothing.c runtime/model/smoothing.h \
	runtime/families/bert.c runtime/families/bert.h \
	runtime/families/distilbert.c \
	runtime/families/embedding.c runtime/families/embedding.h \
	runtime/families/encoder_decoder.c runtime/families/encoder_decoder.h \
	runtime/families/families.def runtime/families/families.h \
	runtime/families/llama.c runtime/families/llama.h \
	runtime/families/m2m100.c \
	runtime/families/marian.c \
	runtime/families/mistral.c \
	runtime/families/qwen2.c \
	runtime/families/qwen3.c \
	runtime/families/roberta.c \
	runtime/families/vit.c \
	runtime/families/family.c runtime/families/family.h \
	runtime/ft.h \
	runtime/engine/encoder_batch.c \
	runtime/engine/engine.c \
	runtime/engine/engine_end.c \
	runtime/engine/engine_private.h \
	runtime/engine/engine_thread.c \
	runtime/engine/job.c runtime/engine/job.h \
	runtime/engine/job_inputs.c \
	runtime/engine/searches.c \
	runtime/engine/submit.c \
	runtime/generate/generate.c \
	runtime/generate/kept_cache.c runtime/generate/kept_cache.h \
	runtime/generate/prefix_cache.c runtime/generate/prefix_cache.h \
	runtime/generate/scheduler.c runtime/generate/scheduler.h \
	runtime/generate/scheduler_passes.c runtime/generate/scheduler_private.h \
	runtime/generate/scheduler_slots.c \
	runtime/generate/sequence.c runtime/generate/sequence.h \
	runtime/graph/graph.c runtime/graph/graph.h runtime/graph/graph_decoder.c runtime/graph/graph_private.h \
	runtime/base/json_build.c runtime/base/json_build.h \
	runtime/base/json_reader.c runtime/base/json_reader.h \
	runtime/base/messages.c runtime/base/messages.h \
	runtime/base/read_options.c runtime/base/read_options.h \
	runtime/text/tables/tokenizer_tables.c \
	runtime/graph/lower.c runtime/graph/lower.h \
	runtime/graph/lower_quantize.c runtime/graph/lower_edit.c runtime/graph/assign_dtypes.c runtime/graph/lower_fusion.c runtime/graph/lower_passes.h \
	runtime/container/identifier.c runtime/container/identifier.h \
	runtime/container/manifest.c runtime/container/manifest.h \
	runtime/text/unicode/combining_marks.c runtime/text/unicode/combining_marks.h \
	runtime/mem.c runtime/mem.h \
	runtime/model/model.c runtime/model/model_tokenizers.c runtime/model/model.h runtime/model/model_prompts.c \
	runtime/graph/model_config.c runtime/graph/model_config.h \
	runtime/graph/model_config_embedding.c \
	runtime/graph/model_config_json.c \
	runtime/graph/model_config_members.c runtime/graph/model_config_members.h \
	runtime/graph/model_config_text.c \
	runtime/base/atomic_file.c runtime/base/atomic_file.h \
	runtime/model/padded_batch.c runtime/model/padded_batch.h \
	runtime/model/page_table.c runtime/model/page_table.h \
	runtime/model/prefill_chunks.c runtime/model/prefill_chunks.h \
	runtime/model/pixels.c runtime/model/pixels.h \
	runtime/graph/plan.c runtime/graph/plan.h \
	runtime/graph/plan_cut.c runtime/graph/plan_cut.h \
	runtime/model/explain_gemm.c runtime/model/explain_gemm.h \
	runtime/container/file_type.c runtime/container/file_type.h \
	runtime/text/unicode/regex.c runtime/text/unicode/regex.h \
	runtime/text/unicode/regex_pattern.c \
	runtime/generate/requests.c runtime/generate/requests.h \
	runtime/generate/session_sizes.c runtime/generate/session_sizes.h \
	runtime/graph/rope.c runtime/graph/rope.h \
	runtime/graph/scale_fold.c runtime/graph/scale_fold.h \
	runtime/container/safetensors.c runtime/container/safetensors.h \
	runtime/container/safetensors_header.c runtime/container/safetensors_header.h \
	runtime/base/json_scan.c runtime/base/json_scan.h \
	runtime/container/safetensors_write.c \
	runtime/scores/metrics/bleu.c runtime/scores/metrics/bleu.h \
	runtime/scores/metrics/bleu_words.c runtime/scores/metrics/bleu_words.h \
	runtime/scores/metrics/chrf.c runtime/scores/metrics/chrf.h \
	runtime/scores/metrics/entities.c runtime/scores/metrics/entities.h \
	runtime/scores/metrics/exact_match.c runtime/scores/metrics/exact_match.h \
	runtime/scores/metrics/label_f1.c runtime/scores/metrics/label_f1.h \
	runtime/scores/metrics/ngrams.c runtime/scores/metrics/ngrams.h \
	runtime/scores/metrics/spearman.c runtime/scores/metrics/spearman.h \
	runtime/scores/metrics/squad.c runtime/scores/metrics/squad.h \
	runtime/scores/metrics/words.c runtime/scores/metrics/words.h \
	runtime/scores/token_scores.c runtime/scores/token_scores.h \
	runtime/generate/beam_search.c runtime/generate/beam_search.h \
	runtime/generate/beam_search_check.c \
	runtime/model/activation_checkpoint.c runtime/model/activation_checkpoint.h \
	runtime/model/session.c runtime/model/session.h runtime/model/session_open.c \
	runtime/base/sha256.c runtime/base/sha256.h \
	runtime/graph/sinusoids.c runtime/graph/sinusoids.h \
	runtime/text/stop_ids.c runtime/text/stop_ids.h \
	runtime/text/stop_text.c runtime/text/stop_text.h \
	runtime/tensor.c runtime/tensor.h \
	runtime/base/strbuf.c runtime/base/strbuf.h \
	runtime/text/models/byte_tokens.h \
	runtime/text/models/piece_trie.c runtime/text/models/piece_trie.h \
	runtime/text/models/unigram.c runtime/text/models/unigram.h \
	runtime/text/models/word_level.h \
	runtime/text/models/model.c runtime/text/models/model.h \
	runtime/text/models/token_list.c runtime/text/models/token_list.h \
	runtime/text/tokenizer.c runtime/text/tokenizer.h \
	runtime/text/languages/languages.c runtime/text/languages/languages.h \
	runtime/text/tokenizer_check.c runtime/text/tokenizer_check.h \
	runtime/text/tokenizer_decode.c \
	runtime/text/tokenizer_json.c runtime/text/tokenizer_json.h \
	runtime/text/models/trie.c runtime/text/models/trie.h \
	runtime/base/temp_files.c runtime/base/temp_files.h \
	runtime/text/unicode/scripts.c runtime/text/unicode/scripts.def runtime/text/unicode/scripts.h \
	runtime/text/unicode/unicode.c runtime/text/unicode/unicode.h \
	runtime/base/utf8.h \
	runtime/text/models/vocabulary.c runtime/text/models/vocabulary.h \
	runtime/text/tables/model_json.c runtime/text/tables/model_json.h \
	runtime/text/tables/score_number.c runtime/text/tables/score_number.h \
	runtime/text/tables/scores_json.c \
	runtime/text/tables/vocabulary_json.c runtime/text/tables/vocabulary_json.h \
	runtime/text/word_list.c runtime/text/word_list.h \
	runtime/text/models/wordpiece.c runtime/text/models/wordpiece.h \
	runtime/container/zip_directory.c runtime/container/zip_directory.h \
	runtime/container/zip_writer.c runtime/container/zip_writer.h
runtime_libcore_la_LIBADD = $(kernels_libs) $(FT_LIBS)

# The installed library: the same objects.  Programs see FT_API, the tools FT_PRIVATE, too.
lib_LTLIBRARIES += libftruntime.la
libftruntime_la_SOURCES =
libftruntime_la_LIBADD = runtime/libcore.la
libftruntime_la_LDFLAGS = $(FT_SAN_FLAGS) -no-undefined -version-info 0:0:0 \
	-Wl,--version-script=runtime/libftruntime.map -Wl,-Bsymbolic-functions
EXTRA_libftruntime_la_DEPENDENCIES = runtime/libftruntime.map
include_HEADERS = runtime/ft.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runtime/ft-runtime.pc
cmakedir = $(libdir)/cmake/ft
cmake_DATA = runtime/ftConfig.cmake runtime/ftConfigVersion.cmake

# Tools: each links the common command line, ft-convert and ft-calibrate too.
noinst_LTLIBRARIES += runtime/libtools.la
runtime_libtools_la_SOURCES = \
	runtime/cli/class_scores_text.c runtime/cli/class_scores_text.h \
	runtime/cli/completion.c runtime/cli/completion.h \
	runtime/cli/date.c runtime/cli/date.h \
	runtime/cli/html/page.c runtime/cli/html/page.h \
	runtime/cli/html/scatter.c runtime/cli/html/scatter.h \
	runtime/cli/html/svg.c runtime/cli/html/svg.h \
	runtime/cli/html/table.c runtime/cli/html/table.h \
	runtime/cli/image_options.c runtime/cli/image_options.h \
	runtime/cli/json_stream.c runtime/cli/json_stream.h \
	runtime/cli/listing.c runtime/cli/table.c runtime/cli/table.h \
	runtime/base/characters.h \
	runtime/data/encoded_examples.c runtime/data/encoded_examples.h \
	runtime/data/example_labels.c runtime/data/example_labels.h \
	runtime/data/model_pairs.c runtime/data/model_pairs.h \
	runtime/data/model_texts.c runtime/data/model_texts.h \
	runtime/cli/text_options.c runtime/cli/text_options.h \
	runtime/data/texts/example_json.c runtime/data/texts/example_json.h \
	runtime/data/texts/examples.c runtime/data/texts/examples.h \
	runtime/data/texts/text_reader.c runtime/data/texts/text_reader.h \
	runtime/cli/terminal_width.c runtime/cli/terminal_width.h \
	runtime/tools/synthetic/counter_rng.h \
	runtime/cli/option_table.c runtime/cli/option_table.h \
	runtime/cli/options.c runtime/cli/options.h \
	runtime/cli/progress.c runtime/cli/progress.h \
	runtime/tools/synthetic/model_shapes.c \
	runtime/cli/signals.c runtime/cli/signals.h \
	runtime/tools/synthetic/synthetic.c runtime/tools/synthetic/synthetic.h \
	runtime/tools/synthetic/weight_fill.c

# Image files: what only the tools that read samples need libraries for.
noinst_LTLIBRARIES += runtime/libimages.la
runtime_libimages_la_SOURCES = \
	runtime/data/image_files/image_dataset.c runtime/data/image_files/image_dataset.h \
	runtime/data/image_files/image_list.c runtime/data/image_files/image_list.h \
	runtime/data/image_files/image_reader.c runtime/data/image_files/image_reader.h \
	runtime/data/images/decode.c \
	runtime/data/images/decoder.h \
	runtime/data/images/image.c runtime/data/images/image.h \
	runtime/data/images/jpeg.c \
	runtime/data/images/png.c \
	runtime/data/images/processor.c runtime/data/images/processor.h \
	runtime/data/images/resize.c
runtime_libimages_la_CFLAGS = $(AM_CFLAGS) $(PNG_CFLAGS) $(JPEG_CFLAGS)
runtime_libimages_la_LIBADD = $(PNG_LIBS) $(JPEG_LIBS)

noinst_PROGRAMS += ft-run
bin_PROGRAMS += bin/ft-run
ft_run_SOURCES = \
	runtime/tools/run/ft-run.c \
	runtime/tools/run/generation.h \
	runtime/tools/run/results.c runtime/tools/run/results.h \
	runtime/tools/run/request.c \
	runtime/tools/run/run.c runtime/tools/run/run.h \
	runtime/tools/run/chat.c \
	runtime/tools/run/forward.c \
	runtime/tools/run/tasks/answers.c runtime/tools/run/tasks/entities.c runtime/tools/run/tasks/masks.c \
	runtime/tools/run/tasks/task.c runtime/tools/run/tasks/task.h \
	runtime/tools/run/generate.c \
	runtime/tools/run/interrupt.c runtime/tools/run/interrupt.h \
	runtime/tools/run/options.c \
	runtime/tools/run/encode_text.c runtime/tools/run/encode_text.h \
	runtime/tools/run/prompts.c runtime/tools/run/prompts.h \
	runtime/tools/run/report.c \
	runtime/tools/run/beam_search.c \
	runtime/tools/run/conversation.c runtime/tools/run/conversation.h

ft_run_LDADD = runtime/libimages.la runtime/libtools.la $(tool_libs)
bin_ft_run_SOURCES = $(ft_run_SOURCES)
bin_ft_run_LDADD = $(ft_run_LDADD)
bin_ft_run_LDFLAGS = $(installed_ldflags)

# Style and script of pages become C strings, a line each.
SUFFIXES += .css .js .inc
c_string = sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/'
.css.inc:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(c_string) $< >$@
.js.inc:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(c_string) $< >$@
page_strings = runtime/cli/html/style.inc runtime/cli/html/sort.inc
BUILT_SOURCES += $(page_strings)
CLEANFILES += $(page_strings)
EXTRA_DIST += runtime/cli/html/style.css runtime/cli/html/sort.js
runtime/cli/html/page.lo: $(page_strings)

noinst_PROGRAMS += ft-inspect
bin_PROGRAMS += bin/ft-inspect
ft_inspect_SOURCES = \
	runtime/tools/inspect/ft-inspect.c \
	runtime/tools/inspect/inspect.h \
	runtime/tools/inspect/amax.c \
	runtime/tools/inspect/diff.c \
	runtime/tools/inspect/divergence.c runtime/tools/inspect/divergence.h \
	runtime/tools/inspect/divergence_html.c \
	runtime/tools/inspect/column_scales.c runtime/tools/inspect/column_scales.h \
	runtime/tools/inspect/observed_counts.c runtime/tools/inspect/observed_counts.h \
	runtime/tools/inspect/range_error.c runtime/tools/inspect/range_error.h \
	runtime/tools/inspect/suspects.c runtime/tools/inspect/suspects.h \
	runtime/tools/inspect/value_errors.c runtime/tools/inspect/value_errors.h \
	runtime/tools/inspect/weight_error.c runtime/tools/inspect/weight_error.h \
	runtime/tools/inspect/plan.c \
	runtime/tools/inspect/provenance.c \
	runtime/tools/inspect/selftest.c
ft_inspect_LDADD = runtime/libtools.la $(tool_libs)
bin_ft_inspect_SOURCES = $(ft_inspect_SOURCES)
bin_ft_inspect_LDADD = $(ft_inspect_LDADD)
bin_ft_inspect_LDFLAGS = $(installed_ldflags)

noinst_PROGRAMS += ft-eval
bin_PROGRAMS += bin/ft-eval
ft_eval_SOURCES = \
	runtime/tools/eval/eval.h \
	runtime/tools/eval/classifier.c \
	runtime/tools/eval/generate.c runtime/tools/eval/generate.h \
	runtime/tools/eval/generated.c \
	runtime/tools/eval/answers.c \
	runtime/tools/eval/entities.c \
	runtime/tools/eval/head_rows.c runtime/tools/eval/head_rows.h \
	runtime/tools/eval/samples.c \
	runtime/tools/eval/similarity.c \
	runtime/tools/eval/judge.c \
	runtime/tools/eval/tokens.c \
	runtime/tools/eval/ft-eval.c
ft_eval_LDADD = runtime/libimages.la runtime/libtools.la $(tool_libs)
bin_ft_eval_SOURCES = $(ft_eval_SOURCES)
bin_ft_eval_LDADD = $(ft_eval_LDADD)
bin_ft_eval_LDFLAGS = $(installed_ldflags)

noinst_PROGRAMS += ft-tokenize
bin_PROGRAMS += bin/ft-tokenize
ft_tokenize_SOURCES = \
	runtime/tools/tokenize/tokenize.h \
	runtime/tools/tokenize/chat.c \
	runtime/tools/tokenize/decode.c \
	runtime/tools/tokenize/encode.c \
	runtime/tools/tokenize/open.c \
	runtime/tools/tokenize/ft-tokenize.c
ft_tokenize_LDADD = convert/libconvert.la runtime/libtools.la $(tool_libs)
bin_ft_tokenize_SOURCES = $(ft_tokenize_SOURCES)
bin_ft_tokenize_LDADD = $(ft_tokenize_LDADD)
bin_ft_tokenize_LDFLAGS = $(installed_ldflags)

noinst_PROGRAMS += ft-bench
bin_PROGRAMS += bin/ft-bench
ft_bench_SOURCES = \
	runtime/tools/bench/bench.h \
	runtime/tools/bench/case.c \
	runtime/tools/bench/decode.c \
	runtime/tools/bench/engine_requests.c runtime/tools/bench/engine_requests.h \
	runtime/tools/bench/gemm.c \
	runtime/tools/bench/load.c \
	runtime/tools/bench/ops.c \
	runtime/tools/bench/options.c runtime/tools/bench/options.h \
	runtime/tools/bench/scheme_times.c \
	runtime/tools/bench/single_op.c \
	runtime/tools/bench/throughput.c \
	runtime/tools/bench/beam_search.c \
	runtime/tools/bench/beam_step.c \
	runtime/tools/bench/time.c \
	runtime/tools/bench/tune.c \
	runtime/tools/bench/ft-bench.c
ft_bench_LDADD = runtime/libtools.la $(tool_libs)
bin_ft_bench_SOURCES = $(ft_bench_SOURCES)
bin_ft_bench_LDADD = $(ft_bench_LDADD)
bin_ft_bench_LDFLAGS = $(installed_ldflags)

dist_man_MANS += runtime/ft-artifact.5 \
	runtime/tools/bench/ft-bench.1 runtime/tools/eval/ft-eval.1 \
	runtime/tools/tokenize/ft-tokenize.1 \
	runtime/tools/inspect/ft-inspect.1 runtime/tools/run/ft-run.1

# What each folder holds, and what it may include.
EXTRA_DIST += \
	runtime/README.md \
	runtime/base/README.md \
	runtime/cli/README.md \
	runtime/cli/html/README.md \
	runtime/container/README.md \
	runtime/data/README.md \
	runtime/data/image_files/README.md \
	runtime/data/images/README.md \
	runtime/data/texts/README.md \
	runtime/families/README.md \
	runtime/engine/README.md \
	runtime/generate/README.md \
	runtime/graph/README.md \
	runtime/model/README.md \
	runtime/scores/README.md \
	runtime/scores/metrics/README.md \
	runtime/scores/tasks/README.md \
	runtime/tools/run/tasks/README.md \
	runtime/text/README.md \
	runtime/tuning/README.md \
	runtime/text/aligned/README.md \
	runtime/text/decoders/README.md \
	runtime/text/jinja/README.md \
	runtime/text/jinja/builtins/README.md \
	runtime/text/jinja/values/README.md \
	runtime/text/languages/README.md \
	runtime/text/models/README.md \
	runtime/text/normalizers/README.md \
	runtime/text/post_processors/README.md \
	runtime/text/pre_tokenizers/README.md \
	runtime/text/tables/README.md \
	runtime/text/unicode/README.md \
	runtime/tools/bench/README.md \
	runtime/tools/eval/README.md \
	runtime/tools/inspect/README.md \
	runtime/selftest/README.md \
	runtime/tools/run/README.md \
	runtime/tools/tokenize/README.md \
	runtime/tools/synthetic/README.md
