# Arithmetic: matrices, not models.
# SPDX-License-Identifier: Apache-2.0

noinst_LTLIBRARIES += kernels/libcpu.la
kernels_libcpu_la_SOURCES = \
	kernels/chain.c kernels/chain.h \
	kernels/activation.h \
	kernels/backend.h \
	kernels/beam.h \
	kernels/blas.c kernels/blas.h \
	kernels/blocks.h \
	kernels/cache.h \
	kernels/cgroup.c \
	kernels/check.c kernels/check_private.h \
	kernels/check_decoder.c \
	kernels/check_image.c \
	kernels/choice.h \
	kernels/choose.h \
	kernels/count.c kernels/count.h \
	kernels/cpu/attend.c \
	kernels/cpu/attention.c \
	kernels/cpu/attention_f32.c \
	kernels/cpu/attention_i8.c kernels/cpu/attention_i8.h \
	kernels/cpu/backend.c \
	kernels/cpu/beam.c kernels/cpu/beam.h \
	kernels/cpu/choose.c kernels/cpu/choose.h \
	kernels/cpu/conv.c kernels/cpu/conv.h \
	kernels/cpu/conv_rows.c \
	kernels/cpu/count.c kernels/cpu/count.h \
	kernels/cpu/cpu.h \
	kernels/cpu/embed.c \
	kernels/cpu/float.h \
	kernels/cpu/float_generic.c \
	kernels/cpu/float_impl.h \
	kernels/cpu/gate.c \
	kernels/cpu/gemm_blocks.c kernels/cpu/gemm_blocks.h \
	kernels/cpu/gemm_float.c kernels/cpu/gemm_float.h \
	kernels/cpu/gemm_i8.c kernels/cpu/gemm_i8.h \
	kernels/cpu/history.c \
	kernels/cpu/i8.h \
	kernels/cpu/i8_finish.h \
	kernels/cpu/i8_generic.c \
	kernels/cpu/i8_softmax.h \
	kernels/cpu/isa.c kernels/cpu/isa.h \
	kernels/cpu/linear.c \
	kernels/cpu/linear_f32.c \
	kernels/cpu/maps.c \
	kernels/cpu/norm.c \
	kernels/cpu/observe.c \
	kernels/cpu/panel.h \
	kernels/cpu/panel_generic.c \
	kernels/cpu/panel_impl.h \
	kernels/cpu/panel_parts.h \
	kernels/cpu/panel_split.h \
	kernels/cpu/patches.c \
	kernels/cpu/pool.c \
	kernels/cpu/rows.c kernels/cpu/rows.h \
	kernels/cpu/rows_generic.c \
	kernels/cpu/rows_impl.h \
	kernels/cpu/select.c \
	kernels/cpu/shares.c kernels/cpu/shares.h \
	kernels/cpu/simd.h \
	kernels/cpu/simd_math.h \
	kernels/cpu/simd_norm.h \
	kernels/cpu/store.c \
	kernels/cpu/views.c \
	kernels/half.h \
	kernels/layout.h \
	kernels/norm.h \
	kernels/op.c kernels/op.h \
	kernels/philox.h \
	kernels/quant.h \
	kernels/processors.c kernels/processors.h \
	kernels/softmax.h \
	kernels/team.c kernels/team.h \
	kernels/thread_pool.c kernels/thread_pool.h \
	kernels/ops.def
kernels_libcpu_la_LIBADD =

# One library for each instruction set, compiled with its flags and chosen at run time.
if WITH_AVX2
noinst_LTLIBRARIES += kernels/libavx2.la
kernels_libavx2_la_SOURCES = kernels/cpu/float_avx2.c kernels/cpu/i8_avx2.c kernels/cpu/i8_ymm.h \
	kernels/cpu/panel_avx2.c kernels/cpu/panel_ymm.h \
	kernels/cpu/panel_avx2_reals.c kernels/cpu/panel_avx2_reals.h \
	kernels/cpu/rows_avx2.c
kernels_libavx2_la_CFLAGS = $(AM_CFLAGS) $(FT_AVX2_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavx2.la
endif
if WITH_AVXVNNI
noinst_LTLIBRARIES += kernels/libavxvnni.la
kernels_libavxvnni_la_SOURCES = kernels/cpu/i8_avxvnni.c kernels/cpu/i8_ymm.h \
	kernels/cpu/panel_avxvnni.c kernels/cpu/panel_ymm.h
kernels_libavxvnni_la_CFLAGS = $(AM_CFLAGS) $(FT_AVXVNNI_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavxvnni.la
endif
if WITH_AVX512
noinst_LTLIBRARIES += kernels/libavx512.la
kernels_libavx512_la_SOURCES = kernels/cpu/float_avx512.c kernels/cpu/i8_avx512.c \
	kernels/cpu/panel_avx512.c kernels/cpu/rows_avx512.c
kernels_libavx512_la_CFLAGS = $(AM_CFLAGS) $(FT_AVX512_FLAGS)
kernels_libcpu_la_LIBADD += kernels/libavx512.la
endif

kernels_libs = kernels/libcpu.la

if WITH_CUDA
noinst_LTLIBRARIES += kernels/libcuda.la
kernels_libcuda_la_SOURCES = $(cuda_sources)
kernels_libcuda_la_LIBADD = $(CUDA_LIBS) -lstdc++
kernels_libs += kernels/libcuda.la
else
EXTRA_DIST += $(cuda_sources)
endif
cuda_sources = \
	kernels/cuda/amax.cuh \
	kernels/cuda/attend.cu \
	kernels/cuda/attend.cuh \
	kernels/cuda/attend_codes.cu \
	kernels/cuda/attend_codes_sums.cuh \
	kernels/cuda/attend_codes_walk.cuh \
	kernels/cuda/attend_mma.cu \
	kernels/cuda/attend_plain.cu \
	kernels/cuda/attend_short.cu \
	kernels/cuda/attend_step.cu \
	kernels/cuda/attend_step_forms.cuh \
	kernels/cuda/attend_step_parts.cuh \
	kernels/cuda/attend_step_read.cuh \
	kernels/cuda/attend_step_sums.cuh \
	kernels/cuda/attend_step_walk.cuh \
	kernels/cuda/attend_store.cu \
	kernels/cuda/attend_store.cuh \
	kernels/cuda/attend_wgmma.cu \
	kernels/cuda/attend_wgmma.cuh \
	kernels/cuda/attention.cu \
	kernels/cuda/attention.cuh \
	kernels/cuda/attention_f16.cu \
	kernels/cuda/attention_f32.cu \
	kernels/cuda/attention_halves.cuh \
	kernels/cuda/attention_i8.cu \
	kernels/cuda/attention_i8.cuh \
	kernels/cuda/attention_i8_ring.cuh \
	kernels/cuda/attention_i8_wgmma.cu \
	kernels/cuda/backend.c \
	kernels/cuda/blocks.cu \
	kernels/cuda/blocks.cuh \
	kernels/cuda/blocks.h \
	kernels/cuda/blocks_ends.cu \
	kernels/cuda/blocks_few.cu \
	kernels/cuda/blocks_few.cuh \
	kernels/cuda/blocks_few_multiply.cuh \
	kernels/cuda/blocks_plain.cu \
	kernels/cuda/blocks_step.cu \
	kernels/cuda/blocks_step.cuh \
	kernels/cuda/blocks_step.h \
	kernels/cuda/blocks_step_ends.cuh \
	kernels/cuda/blocks_tiles.cu \
	kernels/cuda/blocks_tiles.cuh \
	kernels/cuda/blocks_wgmma.cu \
	kernels/cuda/blocks_wgmma.cuh \
	kernels/cuda/blocks_wgmma_finish.cuh \
	kernels/cuda/blocks_wgmma_share.cuh \
	kernels/cuda/blocks_codes.cu \
	kernels/cuda/blocks_codes.cuh \
	kernels/cuda/blocks_codes_few.cu \
	kernels/cuda/blocks_codes_few.cuh \
	kernels/cuda/blocks_codes_held.cu \
	kernels/cuda/blocks_codes_records.cuh \
	kernels/cuda/beam.h \
	kernels/cuda/beam_merge.cu \
	kernels/cuda/beam_rows.cu \
	kernels/cuda/chains.h \
	kernels/cuda/choose.cu \
	kernels/cuda/choose.h \
	kernels/cuda/choose_note.cu \
	kernels/cuda/choose_order.cuh \
	kernels/cuda/choose_row.cuh \
	kernels/cuda/cluster.cuh \
	kernels/cuda/cluster_send.cuh \
	kernels/cuda/common.cuh \
	kernels/cuda/compare.c \
	kernels/cuda/compare.h \
	kernels/cuda/compare_lt.c \
	kernels/cuda/conv.cu \
	kernels/cuda/conv.cuh \
	kernels/cuda/conv_choose.cu \
	kernels/cuda/conv_cut.cu \
	kernels/cuda/conv_frame.cu \
	kernels/cuda/conv_held.cu \
	kernels/cuda/conv_held.cuh \
	kernels/cuda/conv_held_halves.cuh \
	kernels/cuda/conv_held_work.cuh \
	kernels/cuda/conv_plain.cu \
	kernels/cuda/conv_rows.cuh \
	kernels/cuda/conv_rows_blocks.cu \
	kernels/cuda/conv_rows_codes.cu \
	kernels/cuda/conv_rows_finish.cuh \
	kernels/cuda/conv_rows_halves.cu \
	kernels/cuda/conv_rows_sums.cuh \
	kernels/cuda/conv_turn.cu \
	kernels/cuda/conv_turn.cuh \
	kernels/cuda/conv_wgmma.cu \
	kernels/cuda/conv_wgmma.cuh \
	kernels/cuda/conv_wgmma_blocks.cu \
	kernels/cuda/conv_wgmma_codes.cu \
	kernels/cuda/conv_wgmma_halves.cu \
	kernels/cuda/conv_wgmma_finish.cuh \
	kernels/cuda/conv_wgmma_load.cuh \
	kernels/cuda/conv_wgmma_serve.cuh \
	kernels/cuda/conv_wgmma_sums.cuh \
	kernels/cuda/conv_wgmma_tiles.cuh \
	kernels/cuda/conv_wgmma_work.cuh \
	kernels/cuda/copy.cuh \
	kernels/cuda/count.cuh \
	kernels/cuda/counts.c \
	kernels/cuda/cuda.h \
	kernels/cuda/device.h \
	kernels/cuda/dynamic.cu \
	kernels/cuda/dynamic.cuh \
	kernels/cuda/embed.cu \
	kernels/cuda/epilogue.cuh \
	kernels/cuda/errors.c \
	kernels/cuda/exec.c \
	kernels/cuda/exec.h \
	kernels/cuda/ferry.c \
	kernels/cuda/ferry.h \
	kernels/cuda/gemm.cu \
	kernels/cuda/gemm_few.cu \
	kernels/cuda/gemm_halves.cu \
	kernels/cuda/gemm_halves.cuh \
	kernels/cuda/gemm_halves_few.cu \
	kernels/cuda/gemm_lt.cu \
	kernels/cuda/gemm_mma.cu \
	kernels/cuda/gemm_mma.cuh \
	kernels/cuda/gemm_out.cuh \
	kernels/cuda/gemm_plain.cu \
	kernels/cuda/gemm_stream.cu \
	kernels/cuda/gemm_wgmma.cu \
	kernels/cuda/gemm_wgmma.cuh \
	kernels/cuda/gemm_wgmma_any.cuh \
	kernels/cuda/gemm_wgmma_args.cuh \
	kernels/cuda/gemm_wgmma_codes.cu \
	kernels/cuda/gemm_wgmma_deep.cu \
	kernels/cuda/gemm_wgmma_few.cu \
	kernels/cuda/gemm_wgmma_finish.cuh \
	kernels/cuda/gemm_wgmma_floats.cu \
	kernels/cuda/gemm_wgmma_floats.cuh \
	kernels/cuda/gemm_wgmma_halves.cu \
	kernels/cuda/gemm_wgmma_halves.cuh \
	kernels/cuda/gemm_wgmma_halves.h \
	kernels/cuda/gemm_wgmma_halves_finish.cuh \
	kernels/cuda/gemm_wgmma_kernels.h \
	kernels/cuda/gemm_wgmma_ring.cuh \
	kernels/cuda/gemm_wgmma_rs.cu \
	kernels/cuda/gemm_wgmma_units.cuh \
	kernels/cuda/history.c \
	kernels/cuda/inputs.cu \
	kernels/cuda/linear.cu \
	kernels/cuda/linear_blocks.cu \
	kernels/cuda/linear.h \
	kernels/cuda/linear_few.cu \
	kernels/cuda/linear_float.cu \
	kernels/cuda/maps.cu \
	kernels/cuda/mma.cuh \
	kernels/cuda/norm.cu \
	kernels/cuda/norm.cuh \
	kernels/cuda/norm_any.cu \
	kernels/cuda/observe.cu \
	kernels/cuda/patches.cu \
	kernels/cuda/pool.cu \
	kernels/cuda/read.cu \
	kernels/cuda/relayout.cu \
	kernels/cuda/rows.cuh \
	kernels/cuda/run.c \
	kernels/cuda/select.cu \
	kernels/cuda/stage.c \
	kernels/cuda/steps.c \
	kernels/cuda/store.cu \
	kernels/cuda/store.cuh \
	kernels/cuda/team.cuh \
	kernels/cuda/tma.cuh \
	kernels/cuda/upload.c \
	kernels/cuda/warp.cuh \
	kernels/cuda/wgmma.cuh \
	kernels/cuda/wgmma_halves.cuh

# libtool drives nvcc through a wrapper that hands host flags to the host compiler.
SUFFIXES += .cu
EXTRA_DIST += build-aux/nvcc-cc
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
am__v_NVCC_1 =
.cu.lo:
	$(AM_V_NVCC)$(MKDIR_P) $(@D)/$(DEPDIR) && \
	$(LIBTOOL) $(AM_V_lt) --tag=CC --mode=compile \
	  $(SHELL) $(top_srcdir)/build-aux/nvcc-cc $(NVCC) $(DEFS) $(DEFAULT_INCLUDES) \
	  -I$(top_srcdir) $(CPPFLAGS) $(FT_NVCCFLAGS) $(NVCCFLAGS) \
	  -MT $@ -MMD -MF $(@D)/$(DEPDIR)/$(*F).cu.d -c -o $@ $<
-include kernels/cuda/$(DEPDIR)/*.cu.d
mostlyclean-local:
	-rm -rf kernels/cuda/$(DEPDIR)
