// Reductions. Several threads, the lanes, share one result; the order of each sum is fixed by the shape alone.

struct to_sum {
    template <typename A> static __device__ __forceinline__ A zero() { return (A)0; }
    template <typename A> static __device__ __forceinline__ A join(A a, A b) { return a + b; }
};
struct to_prod {
    template <typename A> static __device__ __forceinline__ A zero() { return (A)1; }
    template <typename A> static __device__ __forceinline__ A join(A a, A b) { return a * b; }
};
template <typename A> struct ends;
template <> struct ends<float> { static __device__ float low() { return -INFINITY; } static __device__ float high() { return INFINITY; } };
template <> struct ends<double> { static __device__ double low() { return -INFINITY; } static __device__ double high() { return INFINITY; } };
template <> struct ends<i64> { static __device__ i64 low() { return (i64)0x8000000000000000ull; } static __device__ i64 high() { return 0x7fffffffffffffffll; } };
struct to_max {
    template <typename A> static __device__ __forceinline__ A zero() { return ends<A>::low(); }
    template <typename A> static __device__ __forceinline__ A join(A a, A b) { return a > b || a != a ? a : b; }
};
struct to_min {
    template <typename A> static __device__ __forceinline__ A zero() { return ends<A>::high(); }
    template <typename A> static __device__ __forceinline__ A join(A a, A b) { return a < b || a != a ? a : b; }
};
struct to_any {
    template <typename A> static __device__ __forceinline__ A zero() { return (A)0; }
    template <typename A> static __device__ __forceinline__ A join(A a, A b) { return a != 0 || b != 0; }
};
struct to_all {
    template <typename A> static __device__ __forceinline__ A zero() { return (A)1; }
    template <typename A> static __device__ __forceinline__ A join(A a, A b) { return a != 0 && b != 0; }
};

// What is done to an element first. `p` is a power.
struct as_it_is { template <typename A, typename W> static __device__ __forceinline__ A of(W v, double) { return (A)v; } };
struct not_zero { template <typename A, typename W> static __device__ __forceinline__ A of(W v, double) { return (A)(v != 0); } };
struct magnitude { template <typename A, typename W> static __device__ __forceinline__ A of(W v, double) { return (A)(v < 0 ? -v : v); } };
struct square { template <typename A, typename W> static __device__ __forceinline__ A of(W v, double) { return (A)v * (A)v; } };
struct power { template <typename A, typename W> static __device__ __forceinline__ A of(W v, double p) { return (A)pow(fabs((double)v), p); } };

// And to the result at last.
struct unchanged { template <typename A> static __device__ __forceinline__ A of(A v, double) { return v; } };
struct divided { template <typename A> static __device__ __forceinline__ A of(A v, double p) { return (A)(v / p); } };
struct divided_rooted { template <typename A> static __device__ __forceinline__ A of(A v, double p) { return (A)sqrt((double)v / p); } };
struct rooted { template <typename A> static __device__ __forceinline__ A of(A v, double p) { return (A)(p == 2.0 ? sqrt((double)v) : pow((double)v, 1.0 / p)); } };

// `lanes` threads of a block share a result, side by side if `along` (the reduced elements lie side by side), else apart.
// Block (x, s) takes the s-th of gridDim.y parts of the reduced elements; the last one to come joins them.
template <typename T, typename A, typename R, typename Join, typename First, typename Last>
__global__ void reduce(i64 results, i64 count, axes kept, axes reduced, i64 lanes, i64 along, double first, double last,
                       const T* __restrict__ x, R* __restrict__ y, A* __restrict__ partial, int* __restrict__ arrived) {
    begin();
    __shared__ A shared[256];
    i64 each = 256 / lanes;
    i64 lane = along ? threadIdx.x % lanes : threadIdx.x / each;
    i64 mine = along ? threadIdx.x / lanes : threadIdx.x % each;
    // Of all lanes of a result; the first one has it.
    auto joined = [&](A sum) {
        __syncthreads();
        shared[threadIdx.x] = sum;
        __syncthreads();
        i64 apart = along ? 1 : each;
        for (i64 half = lanes / 2; half > 0; half /= 2) {
            if (lane < half) shared[threadIdx.x] = Join::join(shared[threadIdx.x], shared[threadIdx.x + half * apart]);
            __syncthreads();
        }
        return shared[threadIdx.x];
    };
    for (i64 start = blockIdx.x * each; start < results; start += gridDim.x * each) {
        i64 at = start + mine;
        A sum = Join::template zero<A>();
        if (at < results) {
            const T* from = x + place(kept, at);
            i64 step = lanes * gridDim.y;
            i64 r = blockIdx.y * lanes + lane;
            // Four loads are under way at a time.
            for (; r + 3 * step < count; r += 4 * step) {
                T v[4];
#pragma unroll
                for (int q = 0; q < 4; q++) v[q] = from[place(reduced, r + q * step)];
#pragma unroll
                for (int q = 0; q < 4; q++) sum = Join::join(sum, First::template of<A>(wide(v[q]), first));
            }
            for (; r < count; r += step) sum = Join::join(sum, First::template of<A>(wide(from[place(reduced, r)]), first));
        }
        sum = joined(sum);
        if (lane == 0 && at < results) {
            if (gridDim.y == 1) y[at] = narrow<R>(Last::of(sum, last));
            else partial[blockIdx.y * results + at] = sum;
        }
    }
    if (gridDim.y == 1 || !is_last(arrived + blockIdx.x, gridDim.y)) return;
    // Several parts are made only where each block has its results for itself.
    i64 at = blockIdx.x * each + mine;
    A sum = Join::template zero<A>();
    if (at < results)
#pragma unroll 4
        for (i64 p = lane; p < gridDim.y; p += lanes) sum = Join::join(sum, __ldcg(partial + p * results + at));
    sum = joined(sum);
    if (lane == 0 && at < results) y[at] = narrow<R>(Last::of(sum, last));
}

// The place of the largest or smallest element; of equals the first, and NaN before all others.
template <typename T, int SIGN>
__global__ void arg_extreme(i64 results, i64 count, axes kept, axes reduced, const T* __restrict__ x, i64* __restrict__ y) {
    begin();
    typedef typename of<T>::wide W;
    __shared__ W values[256];
    __shared__ i64 places[256];
    for (i64 at = blockIdx.x; at < results; at += gridDim.x) {
        const T* from = x + place(kept, at);
        W best = 0;
        i64 where = -1;
        for (i64 r = threadIdx.x; r < count; r += 256) {
            W v = wide(from[place(reduced, r)]);
            if (where < 0 || (best == best && (v != v || (SIGN > 0 ? v > best : v < best)))) { best = v; where = r; }
        }
        values[threadIdx.x] = best;
        places[threadIdx.x] = where;
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if (threadIdx.x < half) {
                W a = values[threadIdx.x], b = values[threadIdx.x + half];
                i64 i = places[threadIdx.x], j = places[threadIdx.x + half];
                bool other = j >= 0 && (i < 0 || (b != b ? (a == a || j < i) : a == a && (SIGN > 0 ? b > a : b < a)) || (a == b && j < i));
                if (other) { values[threadIdx.x] = b; places[threadIdx.x] = j; }
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) y[at] = places[0];
        __syncthreads();
    }
}

// Running sums or products along lines of `n` elements that lie `inner` apart: one block for each line, chunk after chunk.
template <typename T, typename A, typename Join>
__global__ void running(i64 lines, i64 n, i64 inner, const T* __restrict__ x, T* __restrict__ y) {
    begin();
    __shared__ A shared[256];
    for (i64 l = blockIdx.x; l < lines; l += gridDim.x) {
        i64 base = l / inner * n * inner + l % inner;
        A before = Join::template zero<A>();
        for (i64 start = 0; start < n; start += 256) {
            i64 i = start + threadIdx.x;
            shared[threadIdx.x] = i < n ? (A)wide(x[base + i * inner]) : Join::template zero<A>();
            __syncthreads();
            for (int apart = 1; apart < 256; apart *= 2) {
                A own = shared[threadIdx.x];
                A other = threadIdx.x >= apart ? shared[threadIdx.x - apart] : Join::template zero<A>();
                __syncthreads();
                shared[threadIdx.x] = Join::join(other, own);
                __syncthreads();
            }
            if (i < n) y[base + i * inner] = narrow<T>(Join::join(before, shared[threadIdx.x]));
            before = Join::join(before, shared[255]);
            __syncthreads();
        }
    }
}
