/*
 * blas.c - see blas.h.
 *
 * OpenBLAS multithreads large GEMMs unless this is disabled: in a pthreads build once for all
 * callers, in an OpenMP build in each calling thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "kernels/blas.h"

#include "runtime/error.h"
#include "runtime/mem.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

typedef void potrf(const char *uplo, const int *n, double *a, const int *lda, int *info);
typedef void trtri(const char *uplo, const char *diagonal, const int *n, double *a, const int *lda,
                   int *info);

static struct {
    void *library;
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(cblas_dsyrk) *dsyrk;
    __typeof__(cblas_dsymm) *dsymm;
    potrf *dpotrf;
    trtri *dtrtri;
    __typeof__(openblas_get_corename) *core_name;
    __typeof__(openblas_get_parallel) *parallel;
    __typeof__(openblas_set_num_threads) *set_threads;
    int (*openmp_threads)(void); /* NULL: not an OpenMP build */
    void (*set_openmp_threads)(int);
} blas;

/* ---- Loading ------------------------------------------------------------------------------ */

/* Address space that its constructor and one caller reserve, with a margin for other builds. */
static const size_t library_bytes = (size_t) 384 << 20, caller_bytes = (size_t) 160 << 20;

static bool has_address_space(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    void *probe = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return probe != MAP_FAILED && munmap(probe, bytes) == 0;
}

/* Load a symbol into *function; ISO C cannot convert an object pointer to a function pointer. */
static bool load_symbol(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    *(void **) function = address;
    return address != NULL;
}

static ft_status load_symbols(void *library, ft_error *err)
{
    const struct {
        const char *name;
        void *function;
    } needed[] = {
        { "cblas_sgemm", &blas.sgemm },
        { "cblas_dsyrk", &blas.dsyrk },
        { "cblas_dsymm", &blas.dsymm },
        { "dpotrf_", &blas.dpotrf },
        { "dtrtri_", &blas.dtrtri },
        { "openblas_get_corename", &blas.core_name },
        { "openblas_get_parallel", &blas.parallel },
        { "openblas_set_num_threads", &blas.set_threads },
    };
    for (size_t i = 0; i < FT_COUNT(needed); i++)
        if (!load_symbol(library, needed[i].name, needed[i].function))
            return ft_fail(err, FT_EUNSUPPORTED, "%s has no function %s", FT_OPENBLAS,
                           needed[i].name);
    return FT_OK;
}

static void set_single_threaded(void *library)
{
    if (blas.parallel() == OPENBLAS_THREAD)
        blas.set_threads(1);
    if (blas.parallel() == OPENBLAS_OPENMP &&
        !(load_symbol(library, "omp_get_max_threads", &blas.openmp_threads) &&
          load_symbol(library, "omp_set_num_threads", &blas.set_openmp_threads)))
        blas.openmp_threads = NULL;
}

static ft_status load(ft_error *err)
{
    void *library = dlopen(FT_OPENBLAS, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return ft_fail(err, FT_EUNSUPPORTED, "cannot load OpenBLAS, which float GEMMs need: %s",
                       dlerror());
    ft_status status = load_symbols(library, err);
    if (status != FT_OK) {
        (void) dlclose(library);
        return status;
    }
    set_single_threaded(library);
    blas.library = library;
    return FT_OK;
}

ft_status ft_blas_load(int threads, ft_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    size_t bytes = (size_t) threads * caller_bytes + (blas.library == NULL ? library_bytes : 0);
    ft_status status = FT_OK;
    if (!has_address_space(bytes))
        status =
            ft_fail(err, FT_ENOMEM,
                    "OpenBLAS takes %zu MB of addresses for %d threads, more than the limit on "
                    "virtual memory leaves: raise it (ulimit -v) or use fewer threads",
                    bytes >> 20, threads);
    else if (blas.library == NULL)
        status = load(err);
    pthread_mutex_unlock(&lock);
    return status;
}

const char *ft_blas_core(void)
{
    return ft_blas_load(1, NULL) == FT_OK ? blas.core_name() : "no OpenBLAS";
}

/* ---- Calling ------------------------------------------------------------------------------ */

/* Make an OpenMP build use one thread in the calling thread; returns the caller's setting. */
static int begin_single_threaded(void)
{
    if (blas.openmp_threads == NULL)
        return 0;
    int before = blas.openmp_threads();
    blas.set_openmp_threads(1);
    return before;
}

static void end_single_threaded(int before)
{
    if (before > 0)
        blas.set_openmp_threads(before);
}

void ft_sgemm(CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n, int k, float alpha,
              const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    int before = begin_single_threaded();
    blas.sgemm(CblasRowMajor, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    end_single_threaded(before);
}

void ft_dsyrk(CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans_a, int n, int k, double alpha, const double *a,
              int lda, double beta, double *c, int ldc)
{
    int before = begin_single_threaded();
    blas.dsyrk(CblasRowMajor, uplo, trans_a, n, k, alpha, a, lda, beta, c, ldc);
    end_single_threaded(before);
}

void ft_dsymm(CBLAS_SIDE side, CBLAS_UPLO uplo, int m, int n, double alpha, const double *a,
              int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    int before = begin_single_threaded();
    blas.dsymm(CblasRowMajor, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
    end_single_threaded(before);
}

int ft_cholesky_inverse(double *a, int n)
{
    int before = begin_single_threaded(), bad = 0;
    blas.dpotrf("L", &n, a, &n, &bad);
    if (bad == 0)
        blas.dtrtri("L", "N", &n, a, &n, &bad);
    end_single_threaded(before);
    return bad;
}
