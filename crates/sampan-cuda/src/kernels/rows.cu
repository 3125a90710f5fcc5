// Softmax, losses and normalisation: one warp or one block for each row, sums in a fixed order.

__device__ __forceinline__ float lowest(float) { return -INFINITY; }
__device__ __forceinline__ double lowest(double) { return -INFINITY; }
template <typename W> __device__ __forceinline__ W warp_max(W v) {
    for (int apart = 16; apart > 0; apart /= 2) { W o = __shfl_xor_sync(0xffffffffu, v, apart); v = v > o || v != v ? v : o; }
    return v;
}
template <typename W> __device__ __forceinline__ W warp_sum(W v) {
    for (int apart = 16; apart > 0; apart /= 2) v += __shfl_xor_sync(0xffffffffu, v, apart);
    return v;
}
// Each warp takes line after line.
#define EACH_LINE(l, lines) \
    for (i64 l = blockIdx.x * (i64)(blockDim.x / 32) + threadIdx.x / 32; l < (lines); l += (i64)gridDim.x * (blockDim.x / 32))

// A line lies in steps of `inner`.
template <typename T>
__global__ void softmax(i64 lines, i64 n, i64 inner, i64 logarithm, const T* __restrict__ x, T* __restrict__ y) {
    begin();
    typedef typename of<T>::wide W;
    int lane = threadIdx.x % 32;
    EACH_LINE(l, lines) {
        i64 within, base = split(l, inner, within) * n * inner;
        base += within;
        W peak = lowest(W());
        for (i64 i = lane; i < n; i += 32) { W v = wide(x[base + i * inner]); peak = v > peak || v != v ? v : peak; }
        peak = warp_max(peak);
        W sum = 0;
        for (i64 i = lane; i < n; i += 32) sum += f_exp(wide(x[base + i * inner]) - peak);
        sum = warp_sum(sum);
        W rest = logarithm ? f_ln(sum) : (W)1 / sum;
        for (i64 i = lane; i < n; i += 32) {
            W v = wide(x[base + i * inner]) - peak;
            y[base + i * inner] = narrow<T>(logarithm ? v - rest : f_exp(v) * rest);
        }
    }
}

template <typename T>
__global__ void softmax_back(i64 lines, i64 n, i64 inner, i64 logarithm, const T* __restrict__ y, const T* __restrict__ g,
                             T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    int lane = threadIdx.x % 32;
    EACH_LINE(l, lines) {
        i64 within, base = split(l, inner, within) * n * inner;
        base += within;
        W sum = 0;
        for (i64 i = lane; i < n; i += 32) {
            W v = wide(g[base + i * inner]);
            sum += logarithm ? v : v * wide(y[base + i * inner]);
        }
        sum = warp_sum(sum);
        for (i64 i = lane; i < n; i += 32) {
            W p = wide(y[base + i * inner]), v = wide(g[base + i * inner]);
            dx[base + i * inner] = narrow<T>(logarithm ? v - f_exp(p) * sum : p * (v - sum));
        }
    }
}

// A class that lies outside raises the alarm and counts as the first.
__device__ __forceinline__ i64 class_of(i64 label, i64 classes, i64 row, i64 op, alarm* a, int lane) {
    if (label >= 0 && label < classes) return label;
    if (lane == 0) raise(a, op, row, label, classes);
    return 0;
}

template <typename T>
__global__ void cross_entropy(i64 rows, i64 n, i64 ignore, i64 op, alarm* a, const T* __restrict__ x, const i64* __restrict__ labels,
                              T* __restrict__ loss, typename of<T>::wide* __restrict__ peaks, typename of<T>::wide* __restrict__ rests) {
    begin();
    typedef typename of<T>::wide W;
    int lane = threadIdx.x % 32;
    EACH_LINE(r, rows) {
        const T* row = x + r * n;
        W peak = lowest(W());
        for (i64 i = lane; i < n; i += 32) { W v = wide(row[i]); peak = v > peak || v != v ? v : peak; }
        peak = warp_max(peak);
        W sum = 0;
        for (i64 i = lane; i < n; i += 32) sum += f_exp(wide(row[i]) - peak);
        W rest = f_ln(warp_sum(sum));
        i64 label = labels[r];
        W out = 0;
        if (label != ignore) out = rest - (wide(row[class_of(label, n, r, op, a, lane)]) - peak);
        if (lane == 0) { loss[r] = narrow<T>(out); peaks[r] = peak; rests[r] = rest; }
    }
}

template <typename T>
__global__ void cross_entropy_back(i64 total, i64 n, i64 ignore, i64 hot, i64 op, alarm* a, const T* __restrict__ x,
                                   const i64* __restrict__ labels, const typename of<T>::wide* __restrict__ peaks,
                                   const typename of<T>::wide* __restrict__ rests, const T* __restrict__ g, T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    EACH(e, total) {
        i64 c, r = split(e, n, c), label = labels[r];
        W out = 0;
        if (label != ignore) {
            i64 mine = class_of(label, n, r, op, a, (int)c);
            out = (f_exp(wide(x[e]) - peaks[r] - rests[r]) - (hot && c == mine ? (W)1 : (W)0)) * wide(g[r]);
        }
        dx[e] = narrow<T>(out);
    }
}

// y[r] = x[r, labels[r]], or back: y[r, labels[r]] = x[r] and zero elsewhere; zero where the label is ignored.
template <typename T>
__global__ void pick(i64 total, i64 n, i64 ignore, i64 back, i64 op, alarm* a, const T* __restrict__ x, const i64* __restrict__ labels,
                     T* __restrict__ y) {
    begin();
    EACH(e, total) {
        i64 c = 0, r = back ? split(e, n, c) : e, label = labels[r];
        if (label == ignore) { y[e] = T{}; continue; }
        i64 mine = class_of(label, n, r, op, a, 0);
        if (back) y[e] = c == mine ? x[r] : T{};
        else y[e] = n > 0 ? x[r * n + mine] : T{};
    }
}

// ---- normalisation of rows ----

template <typename A> __device__ __forceinline__ A block_sum(A v, A* shared) {
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    A sum = 0;
    for (int w = 0; w < (int)blockDim.x / 32; w++) sum += shared[w];
    return sum;
}

// Joins the parts of two sums for each of `count` neighbours, sums[(2 part + 0 or 1) * n + first + i], by all threads of the
// block in a fixed order, and gives them to `f(first + i, a, b)`. There are at most 64 neighbours, and blocks of 256 or 512.
template <typename F>
__device__ __forceinline__ void join_parts(const double* sums, i64 n, i64 first, int count, int parts, F f) {
    __shared__ double shared[2][512];
    int across = count <= 1 ? 1 : count <= 32 ? 32 : 64, lines = blockDim.x / across;
    int i = threadIdx.x % across, line = threadIdx.x / across;
    double a = 0, b = 0;
    if (i < count)
#pragma unroll 4
        for (int p = line; p < parts; p += lines) {
            a += __ldcg(sums + 2 * (i64)p * n + first + i);
            b += __ldcg(sums + (2 * (i64)p + 1) * n + first + i);
        }
    for (int half = lines / 2; half > 0; half /= 2) {
        __syncthreads();
        shared[0][threadIdx.x] = a;
        shared[1][threadIdx.x] = b;
        __syncthreads();
        if (line < half) { a += shared[0][threadIdx.x + half * across]; b += shared[1][threadIdx.x + half * across]; }
    }
    if (line == 0 && i < count) f(first + i, a, b);
}
template <typename W> __device__ __forceinline__ void moments_of(i64 c, double sum, double squares, double count, W* means, W* variances) {
    double mean = sum / count, variance = squares / count - mean * mean;
    means[c] = (W)mean;
    variances[c] = (W)(variance > 0 || variance != variance ? variance : 0.0);
}

template <typename T>
__global__ void row_norm(i64 rows, i64 n, i64 rms, double epsilon, const T* __restrict__ x, const T* __restrict__ weight,
                         const T* __restrict__ bias, T* __restrict__ y, typename of<T>::wide* __restrict__ means,
                         typename of<T>::wide* __restrict__ scales) {
    begin();
    typedef typename of<T>::wide W;
    __shared__ W shared[32];
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const T* row = x + r * n;
        W mean = 0;
        if (!rms) {
            W sum = 0;
            for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += wide(row[i]);
            mean = block_sum(sum, shared) / (W)n;
        }
        W squares = 0;
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) { W d = wide(row[i]) - mean; squares += d * d; }
        W scale = (W)1 / f_sqrt(block_sum(squares, shared) / (W)n + (W)epsilon);
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
            W v = (wide(row[i]) - mean) * scale;
            if (weight) v *= wide(weight[i]);
            if (bias) v += wide(bias[i]);
            y[r * n + i] = narrow<T>(v);
        }
        if (threadIdx.x == 0) { means[r] = mean; scales[r] = scale; }
    }
}

template <typename T>
__global__ void row_norm_back(i64 rows, i64 n, i64 rms, const T* __restrict__ x, const T* __restrict__ g, const T* __restrict__ weight,
                              const typename of<T>::wide* __restrict__ means, const typename of<T>::wide* __restrict__ scales,
                              T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    __shared__ W shared[32];
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        W mean = rms ? (W)0 : means[r], scale = scales[r], sum = 0, dot = 0;
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
            W v = wide(g[r * n + i]);
            if (weight) v *= wide(weight[i]);
            sum += v;
            dot += v * ((wide(x[r * n + i]) - mean) * scale);
        }
        sum = rms ? (W)0 : block_sum(sum, shared) / (W)n;
        dot = block_sum(dot, shared) / (W)n;
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
            W v = wide(g[r * n + i]);
            if (weight) v *= wide(weight[i]);
            W normal = (wide(x[r * n + i]) - mean) * scale;
            dx[r * n + i] = narrow<T>((v - sum - normal * dot) * scale);
        }
    }
}

// Sums over rows of g * normal (row 2p) and of g (row 2p + 1), each of gridDim.y parts of the rows.
template <typename T>
__global__ void row_norm_columns(i64 rows, i64 n, i64 rms, const T* __restrict__ x, const T* __restrict__ g,
                                 const typename of<T>::wide* __restrict__ means, const typename of<T>::wide* __restrict__ scales,
                                 double* __restrict__ sums, int* __restrict__ arrived, typename of<T>::wide* __restrict__ dw,
                                 typename of<T>::wide* __restrict__ db) {
    begin();
    typedef typename of<T>::wide W;
    __shared__ double dots[8][33], plain[8][33];
    int column = threadIdx.x % 32, lane = threadIdx.x / 32;
    i64 c = blockIdx.x * 32ll + column;
    double dot = 0, sum = 0;
    if (c < n)
        for (i64 r = blockIdx.y * 8ll + lane; r < rows; r += gridDim.y * 8ll) {
            W v = wide(g[r * n + c]);
            sum += v;
            dot += v * ((wide(x[r * n + c]) - (rms ? (W)0 : means[r])) * scales[r]);
        }
    dots[lane][column] = dot;
    plain[lane][column] = sum;
    __syncthreads();
    if (lane == 0 && c < n) {
        for (int k = 1; k < 8; k++) { dot += dots[k][column]; sum += plain[k][column]; }
        sums[(2 * (i64)blockIdx.y) * n + c] = dot;
        sums[(2 * (i64)blockIdx.y + 1) * n + c] = sum;
    }
    if (is_last(arrived + blockIdx.x, gridDim.y)) {
        i64 first = blockIdx.x * 32ll;
        join_parts(sums, n, first, n - first < 32 ? (int)(n - first) : 32, gridDim.y, [&](i64 c, double dot, double sum) {
            dw[c] = (W)dot;
            db[c] = (W)sum;
        });
    }
}

// ---- normalisation of channels of [batch, channels, inner] ----

template <typename W> __device__ __forceinline__ W activated(W y, i64 activation) {
    if (activation == 1) return y > 0 ? y : y != y ? y : (W)0;
    if (activation == 2) return y > 6 ? (W)6 : y > 0 ? y : y != y ? y : (W)0;
    if (activation == 3) return y * (y <= -3 ? (W)0 : y >= 3 ? (W)1 : (y + 3) * (W)(1.0 / 6.0));
    return y;
}
template <typename W> __device__ __forceinline__ W before(W y, W g, i64 activation) {
    if (activation == 1) return y <= 0 ? (W)0 : g;
    if (activation == 2) return y <= 0 || y >= 6 ? (W)0 : g;
    if (activation == 3) return g * (y <= -3 ? (W)0 : y >= 3 ? (W)1 : (2 * y + 3) * (W)(1.0 / 6.0));
    return g;
}

// Elements of a plane are read V at a time, V dividing `inner`: one load of up to sixteen bytes. Element e of so many packs
// belongs to pack e % (inner / V) of plane e / (inner / V).
template <typename T, int V> struct alignas(sizeof(T) * V) pack { T v[V]; };

// Sums of a channel's elements and of their squares, of one of gridDim.y parts of them: sums[(2 part + 0 or 1) * channels + c].
template <typename T, int V>
__global__ void channel_sums(i64 batch, i64 channels, i64 inner, const T* __restrict__ x, double* __restrict__ sums,
                             int* __restrict__ arrived, typename of<T>::wide* __restrict__ means,
                             typename of<T>::wide* __restrict__ variances) {
    begin();
    __shared__ double shared[32];
    i64 c = blockIdx.x, packs = inner / V, count = batch * packs, step = (i64)gridDim.y * blockDim.x;
    double sum = 0, squares = 0;
    // Four loads are under way at a time.
    for (i64 e = blockIdx.y * (i64)blockDim.x + threadIdx.x; e < count; e += 4 * step) {
        pack<T, V> p[4];
        int n = 0;
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (e + k * step < count) {
                i64 i, b = split(e + k * step, packs, i);
                p[k] = ((const pack<T, V>*)(x + (b * channels + c) * inner))[i];
                n = k + 1;
            }
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (k < n)
#pragma unroll
                for (int j = 0; j < V; j++) { double v = (double)wide(p[k].v[j]); sum += v; squares += v * v; }
    }
    sum = block_sum(sum, shared);
    squares = block_sum(squares, shared);
    if (threadIdx.x == 0) {
        sums[2 * (i64)blockIdx.y * channels + c] = sum;
        sums[(2 * (i64)blockIdx.y + 1) * channels + c] = squares;
    }
    if (is_last(arrived + c, gridDim.y))
        join_parts(sums, channels, c, 1, gridDim.y, [&](i64 c, double sum, double squares) {
            moments_of(c, sum, squares, (double)batch * (double)inner, means, variances);
        });
}
template <typename T, int V>
__global__ void channel_apply(i64 total, i64 channels, i64 inner, double epsilon, i64 activation, const T* __restrict__ x,
                              const typename of<T>::wide* __restrict__ means, const typename of<T>::wide* __restrict__ variances,
                              const typename of<T>::wide* __restrict__ weight, const typename of<T>::wide* __restrict__ bias,
                              T* __restrict__ y) {
    begin();
    typedef typename of<T>::wide W;
    i64 packs = inner / V;
    EACH(e, total / V) {
        pack<T, V> p = ((const pack<T, V>*)x)[e];
        i64 i, c;
        split(split(e, packs, i), channels, c);
        W mean = means[c], scale = (W)1 / f_sqrt(variances[c] + (W)epsilon);
        W w = weight ? weight[c] : (W)1, shift = bias ? bias[c] : (W)0;
#pragma unroll
        for (int j = 0; j < V; j++) {
            W v = (wide(p.v[j]) - mean) * scale;
            p.v[j] = narrow<T>(activated(v * w + shift, activation));
        }
        ((pack<T, V>*)y)[e] = p;
    }
}
// Sums of the gradient before the activation times the normalised element, and of the gradient.
template <typename T, int V>
__global__ void channel_back_sums(i64 batch, i64 channels, i64 inner, double epsilon, i64 activation, const T* __restrict__ x,
                                  const T* __restrict__ g, const typename of<T>::wide* __restrict__ means,
                                  const typename of<T>::wide* __restrict__ variances, const typename of<T>::wide* __restrict__ weight,
                                  const typename of<T>::wide* __restrict__ bias, double* __restrict__ sums,
                                  int* __restrict__ arrived, typename of<T>::wide* __restrict__ dw, typename of<T>::wide* __restrict__ db) {
    begin();
    typedef typename of<T>::wide W;
    __shared__ double shared[32];
    i64 c = blockIdx.x, packs = inner / V, count = batch * packs, step = (i64)gridDim.y * blockDim.x;
    W mean = means[c], scale = (W)1 / f_sqrt(variances[c] + (W)epsilon);
    W w = weight ? weight[c] : (W)1, shift = bias ? bias[c] : (W)0;
    double dot = 0, sum = 0;
    // Twice two loads are under way at a time.
    for (i64 e = blockIdx.y * (i64)blockDim.x + threadIdx.x; e < count; e += 2 * step) {
        pack<T, V> p[2], q[2];
        int n = 0;
#pragma unroll
        for (int k = 0; k < 2; k++)
            if (e + k * step < count) {
                i64 i, b = split(e + k * step, packs, i), at = (b * channels + c) * inner;
                p[k] = ((const pack<T, V>*)(x + at))[i];
                q[k] = ((const pack<T, V>*)(g + at))[i];
                n = k + 1;
            }
#pragma unroll
        for (int k = 0; k < 2; k++)
            if (k < n)
#pragma unroll
                for (int j = 0; j < V; j++) {
                    W normal = (wide(p[k].v[j]) - mean) * scale;
                    W v = before(normal * w + shift, wide(q[k].v[j]), activation);
                    dot += (double)(v * normal);
                    sum += (double)v;
                }
    }
    dot = block_sum(dot, shared);
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0) {
        sums[2 * (i64)blockIdx.y * channels + c] = dot;
        sums[(2 * (i64)blockIdx.y + 1) * channels + c] = sum;
    }
    if (is_last(arrived + c, gridDim.y))
        join_parts(sums, channels, c, 1, gridDim.y, [&](i64 c, double dot, double sum) { dw[c] = (W)dot; db[c] = (W)sum; });
}
template <typename T, int V>
__global__ void channel_back(i64 total, i64 channels, i64 inner, double count, double epsilon, i64 activation,
                             const T* __restrict__ x, const T* __restrict__ g, const typename of<T>::wide* __restrict__ means,
                             const typename of<T>::wide* __restrict__ variances, const typename of<T>::wide* __restrict__ weight,
                             const typename of<T>::wide* __restrict__ bias, const typename of<T>::wide* __restrict__ dw,
                             const typename of<T>::wide* __restrict__ db, T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    i64 packs = inner / V;
    EACH(e, total / V) {
        pack<T, V> p = ((const pack<T, V>*)x)[e], q = ((const pack<T, V>*)g)[e];
        i64 i, c;
        split(split(e, packs, i), channels, c);
        W mean = means[c], scale = (W)1 / f_sqrt(variances[c] + (W)epsilon);
        W w = weight ? weight[c] : (W)1, shift = bias ? bias[c] : (W)0;
        W of_sum = db[c] / (W)count, of_dot = dw[c] / (W)count;
#pragma unroll
        for (int j = 0; j < V; j++) {
            W normal = (wide(p.v[j]) - mean) * scale;
            W v = before(normal * w + shift, wide(q.v[j]), activation);
            p.v[j] = narrow<T>((v - of_sum - normal * of_dot) * w * scale);
        }
        ((pack<T, V>*)dx)[e] = p;
    }
}

// ---- the same where the channels of a place lie side by side: [places, channels] ----

// Each thread has V channels for its own, whose settings it reads once, and takes place after place. `across` threads stand
// beside each other, the rest of the block's below them.
#define SIDE(...) \
    int column = threadIdx.x % (int)across, line = threadIdx.x / (int)across, lines = blockDim.x / (int)across; \
    i64 first = (blockIdx.x * across + column) * V, step = (i64)gridDim.y * lines; \
    bool mine = first < channels; \
    __VA_ARGS__

// Joins two sums of V channels over the threads of a block that stand below each other; the uppermost have them.
template <int V> __device__ __forceinline__ void side_joined(double (&a)[V], double (&b)[V], int column, int line, int across, double* shared) {
    for (int half = blockDim.x / across / 2; half > 0; half /= 2) {
        __syncthreads();
        if (line >= half && line < 2 * half)
#pragma unroll
            for (int j = 0; j < V; j++) {
                shared[((line - half) * across + column) * 2 * V + 2 * j] = a[j];
                shared[((line - half) * across + column) * 2 * V + 2 * j + 1] = b[j];
            }
        __syncthreads();
        if (line < half)
#pragma unroll
            for (int j = 0; j < V; j++) {
                a[j] += shared[(line * across + column) * 2 * V + 2 * j];
                b[j] += shared[(line * across + column) * 2 * V + 2 * j + 1];
            }
    }
}

// A channel's scale and shift, and how the normalised element follows from x.
template <typename W, int V> struct affine {
    W mean[V], scale[V], w[V], shift[V];
    __device__ __forceinline__ affine(i64 first, bool mine, double epsilon, const W* means, const W* variances, const W* weight, const W* bias) {
#pragma unroll
        for (int j = 0; j < V; j++) {
            mean[j] = mine ? means[first + j] : (W)0;
            scale[j] = mine ? (W)1 / f_sqrt(variances[first + j] + (W)epsilon) : (W)0;
            w[j] = mine && weight ? weight[first + j] : (W)1;
            shift[j] = mine && bias ? bias[first + j] : (W)0;
        }
    }
};

template <typename T, int V>
__global__ void __launch_bounds__(512) side_sums(i64 places, i64 channels, i64 across, const T* __restrict__ x, double* __restrict__ sums,
                                                 int* __restrict__ arrived, typename of<T>::wide* __restrict__ means,
                                                 typename of<T>::wide* __restrict__ variances) {
    begin();
    __shared__ double shared[256 * 2 * V];
    SIDE(double sum[V] = {}; double squares[V] = {};)
    if (mine)
        for (i64 r = blockIdx.y * (i64)lines + line; r < places; r += 4 * step) {
            pack<T, V> p[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (r + k * step < places) p[k] = *(const pack<T, V>*)(x + (r + k * step) * channels + first);
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (r + k * step < places)
#pragma unroll
                    for (int j = 0; j < V; j++) { double v = (double)wide(p[k].v[j]); sum[j] += v; squares[j] += v * v; }
        }
    side_joined<V>(sum, squares, column, line, (int)across, shared);
    if (mine && line == 0)
#pragma unroll
        for (int j = 0; j < V; j++) {
            sums[2 * (i64)blockIdx.y * channels + first + j] = sum[j];
            sums[(2 * (i64)blockIdx.y + 1) * channels + first + j] = squares[j];
        }
    if (is_last(arrived + blockIdx.x, gridDim.y)) {
        i64 from = blockIdx.x * across * V, rest = channels - from;
        join_parts(sums, channels, from, (int)(rest < across * V ? rest : across * V), gridDim.y,
                   [&](i64 c, double sum, double squares) { moments_of(c, sum, squares, (double)places, means, variances); });
    }
}
template <typename T, int V>
__global__ void __launch_bounds__(512) side_apply(i64 places, i64 channels, i64 across, double epsilon, i64 activation,
                                                  const T* __restrict__ x,
                                                  const typename of<T>::wide* __restrict__ means, const typename of<T>::wide* __restrict__ variances,
                                                  const typename of<T>::wide* __restrict__ weight, const typename of<T>::wide* __restrict__ bias,
                                                  T* __restrict__ y) {
    begin();
    typedef typename of<T>::wide W;
    SIDE(affine<W, V> a(first, mine, epsilon, means, variances, weight, bias);)
    if (mine)
        for (i64 r = blockIdx.y * (i64)lines + line; r < places; r += 2 * step) {
            pack<T, V> p[2];
#pragma unroll
            for (int k = 0; k < 2; k++)
                if (r + k * step < places) p[k] = *(const pack<T, V>*)(x + (r + k * step) * channels + first);
#pragma unroll
            for (int k = 0; k < 2; k++)
                if (r + k * step < places) {
#pragma unroll
                    for (int j = 0; j < V; j++) {
                        W v = (wide(p[k].v[j]) - a.mean[j]) * a.scale[j];
                        p[k].v[j] = narrow<T>(activated(v * a.w[j] + a.shift[j], activation));
                    }
                    *(pack<T, V>*)(y + (r + k * step) * channels + first) = p[k];
                }
        }
}
template <typename T, int V>
__global__ void __launch_bounds__(512) side_back_sums(i64 places, i64 channels, i64 across, double epsilon, i64 activation, const T* __restrict__ x,
                               const T* __restrict__ g, const typename of<T>::wide* __restrict__ means,
                               const typename of<T>::wide* __restrict__ variances, const typename of<T>::wide* __restrict__ weight,
                               const typename of<T>::wide* __restrict__ bias, double* __restrict__ sums, int* __restrict__ arrived,
                               typename of<T>::wide* __restrict__ dw, typename of<T>::wide* __restrict__ db) {
    begin();
    typedef typename of<T>::wide W;
    __shared__ double shared[256 * 2 * V];
    SIDE(affine<W, V> a(first, mine, epsilon, means, variances, weight, bias);)
    double dot[V] = {}, sum[V] = {};
    if (mine)
        for (i64 r = blockIdx.y * (i64)lines + line; r < places; r += 2 * step) {
            pack<T, V> p[2], q[2];
#pragma unroll
            for (int k = 0; k < 2; k++)
                if (r + k * step < places) {
                    p[k] = *(const pack<T, V>*)(x + (r + k * step) * channels + first);
                    q[k] = *(const pack<T, V>*)(g + (r + k * step) * channels + first);
                }
#pragma unroll
            for (int k = 0; k < 2; k++)
                if (r + k * step < places)
#pragma unroll
                    for (int j = 0; j < V; j++) {
                        W normal = (wide(p[k].v[j]) - a.mean[j]) * a.scale[j];
                        W v = before(normal * a.w[j] + a.shift[j], wide(q[k].v[j]), activation);
                        dot[j] += (double)(v * normal);
                        sum[j] += (double)v;
                    }
        }
    side_joined<V>(dot, sum, column, line, (int)across, shared);
    if (mine && line == 0)
#pragma unroll
        for (int j = 0; j < V; j++) {
            sums[2 * (i64)blockIdx.y * channels + first + j] = dot[j];
            sums[(2 * (i64)blockIdx.y + 1) * channels + first + j] = sum[j];
        }
    if (is_last(arrived + blockIdx.x, gridDim.y)) {
        i64 from = blockIdx.x * across * V, rest = channels - from;
        join_parts(sums, channels, from, (int)(rest < across * V ? rest : across * V), gridDim.y,
                   [&](i64 c, double dot, double sum) { dw[c] = (W)dot; db[c] = (W)sum; });
    }
}
template <typename T, int V>
__global__ void __launch_bounds__(512) side_back(i64 places, i64 channels, i64 across, double count, double epsilon, i64 activation,
                                                 const T* __restrict__ x, const T* __restrict__ g, const typename of<T>::wide* __restrict__ means,
                                                 const typename of<T>::wide* __restrict__ variances, const typename of<T>::wide* __restrict__ weight,
                                                 const typename of<T>::wide* __restrict__ bias, const typename of<T>::wide* __restrict__ dw,
                                                 const typename of<T>::wide* __restrict__ db, T* __restrict__ dx) {
    begin();
    typedef typename of<T>::wide W;
    SIDE(affine<W, V> a(first, mine, epsilon, means, variances, weight, bias);)
    W of_sum[V], of_dot[V];
#pragma unroll
    for (int j = 0; j < V; j++) {
        of_sum[j] = mine ? db[first + j] / (W)count : (W)0;
        of_dot[j] = mine ? dw[first + j] / (W)count : (W)0;
    }
    if (mine)
        for (i64 r = blockIdx.y * (i64)lines + line; r < places; r += 2 * step) {
            pack<T, V> p[2], q[2];
#pragma unroll
            for (int k = 0; k < 2; k++)
                if (r + k * step < places) {
                    p[k] = *(const pack<T, V>*)(x + (r + k * step) * channels + first);
                    q[k] = *(const pack<T, V>*)(g + (r + k * step) * channels + first);
                }
#pragma unroll
            for (int k = 0; k < 2; k++)
                if (r + k * step < places) {
#pragma unroll
                    for (int j = 0; j < V; j++) {
                        W normal = (wide(p[k].v[j]) - a.mean[j]) * a.scale[j];
                        W v = before(normal * a.w[j] + a.shift[j], wide(q[k].v[j]), activation);
                        p[k].v[j] = narrow<T>((v - of_sum[j] - normal * of_dot[j]) * a.w[j] * a.scale[j]);
                    }
                    *(pack<T, V>*)(dx + (r + k * step) * channels + first) = p[k];
                }
        }
}
