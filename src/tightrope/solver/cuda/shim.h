// CUDA's vocabulary for a plain C++ compiler: a launch runs its threads one after the other.
#pragma once
#include <cmath>
#include <cstring>
#include <utility>

using std::fabs;
using std::fma;
using std::isfinite;
using std::isinf;
using std::sqrt;

#define __device__
#define __global__
#define __launch_bounds__(threads, blocks)

struct Dim { unsigned x; };
struct double2 { double x, y; };
static thread_local Dim gridDim, blockDim, blockIdx, threadIdx;

inline double __longlong_as_double(long long bits) { double x; std::memcpy(&x, &bits, 8); return x; }
inline long long __double_as_longlong(double x) { long long bits; std::memcpy(&bits, &x, 8); return bits; }

template <class T> T atomicMax(T *at, T value) { T old = *at; if (value > old) *at = value; return old; }
template <class T> T atomicAdd(T *at, T value) { T old = *at; *at = old + value; return old; }
template <class T> T atomicExch(T *at, T value) { T old = *at; *at = value; return old; }
template <class T> T atomicCAS(T *at, T expected, T value) { T old = *at; if (old == expected) *at = value; return old; }

// Launch a kernel as cuLaunchKernel does: `arguments` points to the values of its parameters.
template <class... P, size_t... I>
void run_all(void (*kernel)(P...), unsigned blocks, unsigned threads, void **arguments, std::index_sequence<I...>) {
    gridDim.x = blocks, blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) kernel(*(P *)arguments[I]...);
}
template <class... P> void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, void **arguments) {
    run_all(kernel, blocks, threads, arguments, std::index_sequence_for<P...>{});
}
