// Many arrays in one kernel: block b works on a chunk of one of them.

#define MOST 48
#define CHUNK 4096
struct arrays { i64 count, first[MOST], len[MOST]; u64 at[MOST]; };

__device__ __forceinline__ int array_of(const arrays& all) {
    int k = 0;
    while (k + 1 < all.count && all.first[k + 1] <= blockIdx.x) k++;
    return k;
}

// The sum of 256 numbers, one of each thread, in a fixed order; thread 0 has it.
__device__ __forceinline__ double block_sum(double v) {
    __shared__ double shared[256];
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

// The sum of squares of each chunk.
template <typename T>
__global__ void squares(const __grid_constant__ arrays all, double* __restrict__ sums) {
    begin();
    int k = array_of(all);
    const T* x = (const T*)all.at[k];
    i64 start = (blockIdx.x - all.first[k]) * (i64)CHUNK;
    i64 end = start + CHUNK < all.len[k] ? start + CHUNK : all.len[k];
    double sum = 0;
    for (i64 i = start + threadIdx.x; i < end; i += 256) { double v = (double)wide(x[i]); sum += v * v; }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// By what gradients are multiplied so that their norm is at most `limit`; a norm that is NaN goes on to them, where it is
// seen. Block b adds the sums from first[b] on, len[b] of them.
__global__ void factors(const __grid_constant__ arrays all, double limit, const double* __restrict__ sums, double* __restrict__ y) {
    begin();
    const double* from = sums + all.first[blockIdx.x];
    double sum = 0;
    for (i64 i = threadIdx.x; i < all.len[blockIdx.x]; i += 256) sum += from[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        double norm = sqrt(sum);
        y[blockIdx.x] = norm <= limit ? 1.0 : limit / norm;
    }
}

// Divides by the scale, and notes whether a number is not finite.
template <typename T>
__global__ void unscale(const __grid_constant__ arrays all, const float* __restrict__ scale, i64* __restrict__ found) {
    begin();
    typedef typename of<T>::wide W;
    int k = array_of(all);
    T* x = (T*)all.at[k];
    i64 start = (blockIdx.x - all.first[k]) * (i64)CHUNK;
    i64 end = start + CHUNK < all.len[k] ? start + CHUNK : all.len[k];
    W by = (W)(1.0 / (double)*scale);
    bool bad = false;
    for (i64 i = start + threadIdx.x; i < end; i += 256) {
        T v = narrow<T>(wide(x[i]) * by);
        bad |= !isfinite(wide(v));
        x[i] = v;
    }
    if (bad) *found = 1;
}
