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

template <typename T>
__global__ void row_norm(i64 rows, i64 n, i64 rms, double epsilon, const T* __restrict__ x, const T* __restrict__ weight,
                         const T* __restrict__ bias, T* __restrict__ y, typename of<T>::wide* __restrict__ means,
                         typename of<T>::wide* __restrict__ scales) {
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
                                 double* __restrict__ sums) {
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
}
// Joins the parts.
template <typename T>
__global__ void row_norm_joined(i64 n, i64 parts, const double* __restrict__ sums, typename of<T>::wide* __restrict__ dw,
                                typename of<T>::wide* __restrict__ db) {
    EACH(c, n) {
        double dot = 0, sum = 0;
        for (i64 p = 0; p < parts; p++) { dot += sums[2 * p * n + c]; sum += sums[(2 * p + 1) * n + c]; }
        dw[c] = (typename of<T>::wide)dot;
        db[c] = (typename of<T>::wide)sum;
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
__global__ void channel_sums(i64 batch, i64 channels, i64 inner, const T* __restrict__ x, double* __restrict__ sums) {
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
}
template <typename T>
__global__ void channel_moments(i64 channels, i64 parts, double count, const double* __restrict__ sums,
                                typename of<T>::wide* __restrict__ means, typename of<T>::wide* __restrict__ variances) {
    EACH(c, channels) {
        double sum = 0, squares = 0;
        for (i64 p = 0; p < parts; p++) { sum += sums[2 * p * channels + c]; squares += sums[(2 * p + 1) * channels + c]; }
        double mean = sum / count, variance = squares / count - mean * mean;
        means[c] = (typename of<T>::wide)mean;
        variances[c] = (typename of<T>::wide)(variance > 0 || variance != variance ? variance : 0.0);
    }
}
template <typename T, int V>
__global__ void channel_apply(i64 total, i64 channels, i64 inner, double epsilon, i64 activation, const T* __restrict__ x,
                              const typename of<T>::wide* __restrict__ means, const typename of<T>::wide* __restrict__ variances,
                              const typename of<T>::wide* __restrict__ weight, const typename of<T>::wide* __restrict__ bias,
                              T* __restrict__ y) {
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
                                  const typename of<T>::wide* __restrict__ bias, double* __restrict__ sums) {
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
}
template <typename T, int V>
__global__ void channel_back(i64 total, i64 channels, i64 inner, double count, double epsilon, i64 activation,
                             const T* __restrict__ x, const T* __restrict__ g, const typename of<T>::wide* __restrict__ means,
                             const typename of<T>::wide* __restrict__ variances, const typename of<T>::wide* __restrict__ weight,
                             const typename of<T>::wide* __restrict__ bias, const typename of<T>::wide* __restrict__ dw,
                             const typename of<T>::wide* __restrict__ db, T* __restrict__ dx) {
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
