dnl ft_cuda.m4 - find the CUDA Toolkit: nvcc, headers, libraries, target architectures.
dnl SPDX-License-Identifier: Apache-2.0

AC_DEFUN([FT_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
    [build the CUDA backend with the toolkit in DIR, or no @<:@default=auto@:>@])],
    [], [with_cuda=auto])
  AC_ARG_WITH([cuda-arch], [AS_HELP_STRING([--with-cuda-arch=LIST],
    [compute capabilities, e.g. 75,86,90a @<:@default=80,90a@:>@])],
    [], [with_cuda_arch=80,90a])
  AC_ARG_VAR([NVCC], [CUDA compiler command])
  AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags, default "-O2 -g"])
  : ${NVCCFLAGS="-O2 -g"}
  ft_cuda=no
  ft_cuda_why="asked for none"
  AS_IF([test "$with_cuda" != no], [
    AS_CASE([$with_cuda], [auto|yes], [ft_cuda_path=$PATH:/usr/local/cuda/bin],
                          [ft_cuda_path=$with_cuda/bin])
    AC_PATH_PROG([NVCC], [nvcc], [], [$ft_cuda_path])
    AS_IF([test -z "$NVCC"], [ft_cuda_why="no nvcc in $ft_cuda_path"], [FT_CUDA_TRY])
    AS_IF([test "$ft_cuda" = no && test "$with_cuda" != auto],
      [AC_MSG_ERROR([--with-cuda=$with_cuda: $ft_cuda_why])])
  ])
  AS_IF([test "$ft_cuda" = yes], [
    AC_DEFINE([HAVE_CUDA], [1], [Define to 1 to build the CUDA backend.])
    AS_CASE([,$with_cuda_arch,], [*,90a,*],
      [AC_DEFINE([HAVE_WGMMA], [1], [Define to 1 where the build has code for sm_90a.])])
    ft_cuda_summary="$NVCC, compute capability $with_cuda_arch"
    FT_DEB_CONFIGURE="--with-cuda=$ft_cuda_root --with-cuda-arch=$with_cuda_arch"
  ], [
    CUDA_CPPFLAGS=; CUDA_LIBS=
    FT_DEB_CONFIGURE=--with-cuda=no
    ft_cuda_summary="no ($ft_cuda_why)"
  ])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([FT_NVCCFLAGS])
  dnl The same choice for `make deb`.
  AC_SUBST([FT_DEB_CONFIGURE])
  AM_CONDITIONAL([WITH_CUDA], [test "$ft_cuda" = yes])
])

dnl Link one program against the toolkit; set ft_cuda, CUDA_CPPFLAGS, CUDA_LIBS, FT_NVCCFLAGS.
AC_DEFUN([FT_CUDA_TRY], [
  dnl A toolkit is often a symbolic link: follow it, headers lie beside the real compiler.
  ft_nvcc=`readlink -f "$NVCC"`
  ft_cuda_root=`dirname "$ft_nvcc"`
  ft_cuda_root=`dirname "$ft_cuda_root"`
  ft_cuda_lib=$ft_cuda_root/lib64
  AS_IF([test -d "$ft_cuda_lib"], [], [ft_cuda_lib=$ft_cuda_root/lib])
  CUDA_CPPFLAGS="-isystem $ft_cuda_root/include"
  CUDA_LIBS="-L$ft_cuda_lib -lcublasLt -lcublas -lcurand -lcudart"
  ft_save_CPPFLAGS=$CPPFLAGS; ft_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"; LIBS="$CUDA_LIBS $LIBS"
  AC_MSG_CHECKING([whether a program links with cuBLASLt and cuRAND])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cublasLt.h>
#include <curand.h>]], [[int version; return cublasLtGetVersion() == 0 || curandGetVersion(&version);]])],
    [AC_MSG_RESULT([yes]); ft_cuda=yes],
    [AC_MSG_RESULT([no]); ft_cuda_why="cannot link with cuBLASLt and cuRAND from $ft_cuda_lib"])
  CPPFLAGS=$ft_save_CPPFLAGS; LIBS=$ft_save_LIBS

  FT_NVCCFLAGS="-std=c++17 -fmad=false -Xcompiler -fvisibility=hidden -Xcompiler -Wall"
  ft_last=
  for ft_arch in `AS_ECHO(["$with_cuda_arch"]) | tr ',' ' '`; do
    FT_NVCCFLAGS="$FT_NVCCFLAGS -gencode=arch=compute_$ft_arch,code=sm_$ft_arch"
    ft_last=$ft_arch
  done
  dnl PTX of the last architecture lets newer devices run the portable kernels.
  FT_NVCCFLAGS="$FT_NVCCFLAGS -gencode=arch=compute_$ft_last,code=compute_$ft_last"

  dnl Device code is most of the library.  nvcc 12.8 can compress it better than by default.
  AC_CACHE_CHECK([for the option of $NVCC that compresses device code], [ft_cv_nvcc_compress], [
    ft_cv_nvcc_compress=none
    AS_ECHO(["__global__ void f() {}"]) >conftest.cu
    for ft_flag in --compress-mode=size "-Xfatbin -compress-all"; do
      AS_IF([$NVCC $ft_flag -c conftest.cu -o conftest.o >&AS_MESSAGE_LOG_FD 2>&1],
        [ft_cv_nvcc_compress=$ft_flag; break])
    done
    rm -f conftest.cu conftest.o
  ])
  AS_IF([test "$ft_cv_nvcc_compress" != none],
    [FT_NVCCFLAGS="$FT_NVCCFLAGS $ft_cv_nvcc_compress"])
])
