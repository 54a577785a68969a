# Calibration: from float artifacts and samples to int8 artifacts.
# SPDX-License-Identifier: Apache-2.0

# Everything of ft-calibrate but its main(), for the tests too.
noinst_LTLIBRARIES += calibrate/libcalibrate.la
calibrate_libcalibrate_la_SOURCES = \
	calibrate/amax_in/amax_in.c calibrate/amax_in/amax_in.h \
	calibrate/amax_in/given_ranges.c calibrate/amax_in/given_ranges.h \
	calibrate/amax_in/list_in.c calibrate/amax_in/list_in.h \
	calibrate/amax_in/list_names.c calibrate/amax_in/list_names.h \
	calibrate/amax_in/module_names.c calibrate/amax_in/module_names.h \
	calibrate/amax_in/name_list.c calibrate/amax_in/name_list.h \
	calibrate/amax_in/quantizers.c calibrate/amax_in/quantizers.h \
	calibrate/amax_in/list_out.c calibrate/amax_in/list_out.h \
	calibrate/weights/awq.c calibrate/weights/awq.h \
	calibrate/weights/groupwise.c calibrate/weights/groupwise.h \
	calibrate/weights/groupwise_stream.c calibrate/weights/groupwise_stream.h \
	calibrate/weights/groupwise_weight.c calibrate/weights/groupwise_weight.h \
	calibrate/calibrate.c calibrate/calibrate.h \
	calibrate/ranges/channels.c calibrate/ranges/channels.h \
	calibrate/ranges/counters.c calibrate/ranges/counters.h \
	calibrate/ranges/counters_file.c calibrate/ranges/counters_file.h \
	calibrate/describe.c calibrate/describe.h \
	calibrate/find_ranges.c calibrate/find_ranges.h \
	calibrate/ranges/entropy.c \
	calibrate/mixed/evaluate.c calibrate/mixed/evaluate.h \
	calibrate/weights/fold_ranges.c calibrate/weights/fold_ranges.h \
	calibrate/weights/gptq.c calibrate/weights/gptq.h \
	calibrate/weights/group_descent.c calibrate/weights/group_descent.h \
	calibrate/ranges/hashed_output.c calibrate/ranges/hashed_output.h \
	calibrate/ranges/histogram.c calibrate/ranges/histogram.h \
	calibrate/stats/activation_stats.c calibrate/stats/activation_stats.h \
	calibrate/stats/exact_sums.c calibrate/stats/exact_sums.h \
	calibrate/weights/device_rounding.c calibrate/weights/device_rounding.h \
	calibrate/stats/sample_runner.c calibrate/stats/sample_runner.h \
	calibrate/stats/shard.h calibrate/stats/stats_pass.c calibrate/stats/stats_pass.h \
	calibrate/weights/prefix.c calibrate/weights/prefix.h \
	calibrate/weights/correction.c calibrate/weights/correction.h \
	calibrate/job.h \
	calibrate/shards/merged_shards.c calibrate/shards/merged_shards.h \
	calibrate/shards/shard_file.h \
	calibrate/shards/shard_read.c \
	calibrate/shards/shard_sums.c \
	calibrate/shards/shard_write.c \
	calibrate/ranges/method.c calibrate/ranges/method.h \
	calibrate/ranges/mse.c \
	calibrate/ranges/observe.c calibrate/ranges/observe.h \
	calibrate/open.c \
	calibrate/pack.c calibrate/pack.h \
	calibrate/mix_precision.c calibrate/mix_precision.h \
	calibrate/mixed/mixed_plan.c calibrate/mixed/mixed_plan.h \
	calibrate/mixed/accuracy_target.c calibrate/mixed/accuracy_target.h \
	calibrate/mixed/row_loss.c calibrate/mixed/row_loss.h \
	calibrate/mixed/labels.c calibrate/mixed/labels.h \
	calibrate/mixed/loss.c calibrate/mixed/loss.h \
	calibrate/mixed/loss_kind.c calibrate/mixed/loss_kind.h \
	calibrate/mixed/sensitivity.c calibrate/mixed/sensitivity.h \
	calibrate/mixed/units.c calibrate/mixed/units.h \
	calibrate/mixed/variant.c calibrate/mixed/variant.h \
	calibrate/budget/budget.c calibrate/budget/budget.h \
	calibrate/budget/knapsack.c calibrate/budget/knapsack.h \
	calibrate/budget/weight_plan.c calibrate/budget/weight_plan.h \
	calibrate/budget/weight_units.c calibrate/budget/weight_units.h \
	calibrate/budget/weight_variants.c calibrate/budget/weight_variants.h \
	calibrate/check_budget.c calibrate/check_budget.h \
	calibrate/plan_weights.c calibrate/plan_weights.h \
	calibrate/report/weight_plan_report.c calibrate/report/weight_plan_report.h \
	calibrate/prepare.c calibrate/prepare.h \
	calibrate/report/mixed_report.c calibrate/report/mixed_report.h \
	calibrate/times/op_times.c calibrate/times/op_times.h \
	calibrate/times/time_plan.c calibrate/times/time_plan.h \
	calibrate/times/times_file.c calibrate/times/times_file.h \
	calibrate/times/unit_times.c calibrate/times/unit_times.h \
	calibrate/times/weight_times.c calibrate/times/weight_times.h \
	calibrate/provenance.c \
	calibrate/output_paths.c calibrate/output_paths.h \
	calibrate/weights/quantized.c calibrate/weights/quantized.h \
	calibrate/readers.c calibrate/readers.h \
	calibrate/run_shard.c calibrate/run_shard.h \
	calibrate/weights/recipe.c calibrate/weights/recipe.h \
	calibrate/weights/refine.c calibrate/weights/refine.h \
	calibrate/report/report.c calibrate/report/report.h \
	calibrate/smooth/factors.c calibrate/smooth/factors.h \
	calibrate/smooth/pair_error.c calibrate/smooth/pair_error.h \
	calibrate/smooth/rewrite.c calibrate/smooth/rewrite.h \
	calibrate/smooth/smooth.c calibrate/smooth/smooth.h \
	calibrate/selftest/make_selftest.c calibrate/selftest/make_selftest.h \
	calibrate/report/report_html.c calibrate/report/report_html.h \
	calibrate/html/heat_strip.c calibrate/html/heat_strip.h \
	calibrate/html/bars.c calibrate/html/bars.h \
	calibrate/html/histogram_chart.c calibrate/html/histogram_chart.h \
	calibrate/report/verdict.c calibrate/report/verdict.h \
	calibrate/report/weight_report.c calibrate/report/weight_report.h \
	calibrate/write_model.c calibrate/write_model.h \
	calibrate/weights/weights.c calibrate/weights/weights.h \
	calibrate/ranges/methods.def

noinst_PROGRAMS += ft-calibrate
bin_PROGRAMS += bin/ft-calibrate
ft_calibrate_SOURCES = calibrate/main.c calibrate/options.c calibrate/options.h
ft_calibrate_LDADD = calibrate/libcalibrate.la runtime/libimages.la runtime/libtools.la $(tool_libs)
bin_ft_calibrate_SOURCES = $(ft_calibrate_SOURCES)
bin_ft_calibrate_LDADD = $(ft_calibrate_LDADD)
bin_ft_calibrate_LDFLAGS = $(installed_ldflags)
dist_man_MANS += calibrate/ft-calibrate.1

# What each folder holds, and what it may include.
EXTRA_DIST += \
	calibrate/README.md \
	calibrate/amax_in/README.md \
	calibrate/budget/README.md \
	calibrate/mixed/README.md \
	calibrate/html/README.md \
	calibrate/ranges/README.md \
	calibrate/report/README.md \
	calibrate/selftest/README.md \
	calibrate/shards/README.md \
	calibrate/smooth/README.md \
	calibrate/stats/README.md \
	calibrate/times/README.md \
	calibrate/weights/README.md
