// Elements as they lie in memory and as they are computed.

struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

// The type that an element is computed in.
template <typename T> struct of { typedef i64 wide; };
template <> struct of<f16> { typedef float wide; };
template <> struct of<bf16> { typedef float wide; };
template <> struct of<float> { typedef float wide; };
template <> struct of<double> { typedef double wide; };
template <> struct of<c64> { typedef c64 wide; };
template <> struct of<c128> { typedef c128 wide; };

template <typename T> __device__ __forceinline__ typename of<T>::wide wide(T v) { return (typename of<T>::wide)v; }
__device__ __forceinline__ float wide(f16 v) { return from_f16(v.bits); }
__device__ __forceinline__ float wide(bf16 v) { return from_bf16(v.bits); }
__device__ __forceinline__ c64 wide(c64 v) { return v; }
__device__ __forceinline__ c128 wide(c128 v) { return v; }

template <typename T> struct narrowed { template <typename W> static __device__ __forceinline__ T from(W v) { return (T)v; } };
template <> struct narrowed<f16> { template <typename W> static __device__ __forceinline__ f16 from(W v) { return {to_f16((float)v)}; } };
template <> struct narrowed<bf16> { template <typename W> static __device__ __forceinline__ bf16 from(W v) { return {to_bf16((float)v)}; } };
template <typename T, typename W> __device__ __forceinline__ T narrow(W v) { return narrowed<T>::from(v); }

// At most eight axes, their extents and steps, from the last to the first.
struct axes { i64 rank, extent[8], step[8]; };

// How far from the first element the i-th lies.
__device__ __forceinline__ i64 place(const axes& a, i64 i) {
    i64 at = 0;
    int last = (int)a.rank - 1;
    if (i <= 0xffffffffll) {
        u32 t = (u32)i;
        for (int k = 0; k < last; k++) { u32 q = t / (u32)a.extent[k]; at += (i64)(t - q * (u32)a.extent[k]) * a.step[k]; t = q; }
        return last < 0 ? at : at + (i64)t * a.step[last];
    }
    for (int k = 0; k < last; k++) { at += i % a.extent[k] * a.step[k]; i /= a.extent[k]; }
    return last < 0 ? at : at + i * a.step[last];
}

// Quotient and rest; of 32 bits where that is enough, which is much shorter.
__device__ __forceinline__ i64 split(i64 e, i64 n, i64& rest) {
    if (((u64)(e | n) >> 32) == 0) { u32 q = (u32)e / (u32)n; rest = (i64)((u32)e - q * (u32)n); return q; }
    i64 q = e / n;
    rest = e - q * n;
    return q;
}

#define EACH(i, n) for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)

// What went wrong in a kernel, for the host to read: the first position and value that lie outside a limit.
struct alarm { u64 raised; i64 op, position, value, limit; };
__device__ __forceinline__ void raise(alarm* a, i64 op, i64 position, i64 value, i64 limit) {
    if (atomicCAS(&a->raised, 0ull, 1ull) == 0ull) {
        a->op = op; a->position = position; a->value = value; a->limit = limit;
        __threadfence_system();
        a->raised = 2ull;
    }
}

// Several blocks make parts of one result; the last of them to come joins the parts. It leaves the counter as it found it.
__device__ __forceinline__ bool is_last(int* arrived, int parts) {
    __shared__ int last;
    __threadfence();
    __syncthreads();
    if (parts == 1) return true;
    if (threadIdx.x == 0) last = atomicAdd(arrived, 1) == parts - 1;
    __syncthreads();
    if (last) {
        if (threadIdx.x == 0) *arrived = 0;
        __threadfence();
    }
    return last;
}
