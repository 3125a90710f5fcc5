// Elements by their numbers. A number outside its limit raises the alarm and counts as the first.

// Numbers from -n to n - 1 (or from 0, unless `wrap`) become numbers from 0 to n - 1.
__device__ __forceinline__ i64 within(i64 v, i64 n, i64 wrap, i64 position, i64 op, alarm* a) {
    i64 at = wrap && v < 0 ? v + n : v;
    if (at >= 0 && at < n) return at;
    raise(a, op, position, v, n);
    return 0;
}

// y[o, j, i] = x[o, index[j], i]; zero where the number is `skip`.
template <typename T>
__global__ void pick_rows(i64 total, i64 n, i64 k, i64 inner, i64 wrap, i64 skip, i64 op, alarm* a,
                          const i64* __restrict__ index, const T* __restrict__ x, T* __restrict__ y) {
    begin();
    EACH(e, total) {
        i64 i, j, line = split(e, inner, i), o = split(line, k, j);
        i64 v = index[j];
        if (v == skip) { y[e] = T{}; continue; }
        i64 row = within(v, n, wrap, j, op, a);
        y[e] = n > 0 ? x[(o * n + row) * inner + i] : T{};
    }
}

// y[e] = x at the place of e with index[e] along one axis. `rest` are the other axes' steps in x.
template <typename T>
__global__ void pick_along(i64 total, i64 n, i64 step, axes rest, i64 op, alarm* a, const i64* __restrict__ index,
                           const T* __restrict__ x, T* __restrict__ y) {
    begin();
    EACH(e, total) {
        i64 row = within(index[e], n, 1, e, op, a);
        y[e] = n > 0 ? x[place(rest, e) + row * step] : T{};
    }
}

// Where each element goes along one axis.
__global__ void places_along(i64 total, i64 n, i64 step, axes rest, i64 op, alarm* a, const i64* __restrict__ index,
                             i64* __restrict__ y) {
    begin();
    EACH(e, total) y[e] = place(rest, e) + within(index[e], n, 1, e, op, a) * step;
}

// Numbers checked and made positive; those that are `skip` become -1.
__global__ void checked(i64 total, i64 n, i64 wrap, i64 skip, i64 op, alarm* a, const i64* __restrict__ index, i64* __restrict__ y) {
    begin();
    EACH(j, total) { i64 v = index[j]; y[j] = v == skip ? -1 : within(v, n, wrap, j, op, a); }
}

// ---- sums of rows, in the order of their positions ----

__global__ void count_rows(i64 k, const i64* __restrict__ index, u32* __restrict__ counts) {
    begin();
    EACH(j, k) if (index[j] >= 0) atomicAdd(&counts[index[j]], 1u);
}

// Running sums of counts, by one block; `starts` has one more.
__global__ void run_starts(i64 n, const u32* __restrict__ counts, u32* __restrict__ starts) {
    begin();
    __shared__ u32 sums[1024];
    u32 before = 0;
    for (i64 base = 0; base < n; base += 4096) {
        u32 own[4], sum = 0;
        for (int c = 0; c < 4; c++) {
            i64 at = base + threadIdx.x * 4 + c;
            own[c] = at < n ? counts[at] : 0;
            sum += own[c];
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int apart = 1; apart < 1024; apart *= 2) {
            u32 add = threadIdx.x >= apart ? sums[threadIdx.x - apart] : 0;
            __syncthreads();
            sums[threadIdx.x] += add;
            __syncthreads();
        }
        u32 at_start = before + sums[threadIdx.x] - sum;
        for (int c = 0; c < 4; c++) {
            i64 at = base + threadIdx.x * 4 + c;
            if (at < n) starts[at] = at_start;
            at_start += own[c];
        }
        before += sums[1023];
        __syncthreads();
    }
    if (threadIdx.x == 0) starts[n] = before;
}

__global__ void place_positions(i64 k, const i64* __restrict__ index, const u32* __restrict__ starts, u32* __restrict__ used,
                                u32* __restrict__ order) {
    begin();
    EACH(j, k) if (index[j] >= 0) order[starts[index[j]] + atomicAdd(&used[index[j]], 1u)] = (u32)j;
}

// Positions came in any order; each row's are put in order again, so that sums are the same every time.
__global__ void sort_positions(i64 n, const u32* __restrict__ starts, u32* __restrict__ order) {
    begin();
    EACH(r, n) {
        u32* p = order + starts[r];
        int count = (int)(starts[r + 1] - starts[r]);
        if (count <= 32) {
            for (int i = 1; i < count; i++) {
                u32 v = p[i];
                int j = i;
                for (; j > 0 && p[j - 1] > v; j--) p[j] = p[j - 1];
                p[j] = v;
            }
            continue;
        }
        for (int end = count, top = count / 2; end > 1;) {
            u32 v;
            if (top > 0) v = p[--top];
            else { end--; v = p[end]; p[end] = p[0]; }
            int at = top;
            for (int child = 2 * at + 1; child < end; child = 2 * at + 1) {
                if (child + 1 < end && p[child + 1] > p[child]) child++;
                if (p[child] <= v) break;
                p[at] = p[child];
                at = child;
            }
            p[at] = v;
        }
    }
}

template <typename T> struct sums { typedef typename of<T>::wide acc; };
template <> struct sums<float> { typedef float acc; };
__device__ __forceinline__ void add_to(float& a, float b) { a += b; }
__device__ __forceinline__ void add_to(double& a, double b) { a += b; }
__device__ __forceinline__ void add_to(i64& a, i64 b) { a += b; }

// y[o, r, i] += alpha * the sum of x[o, j, i] over the positions j of row r.
template <typename T>
__global__ void add_rows(i64 total, i64 n, i64 k, i64 inner, double alpha, const u32* __restrict__ starts,
                         const u32* __restrict__ order, const T* __restrict__ x, T* __restrict__ y) {
    begin();
    typedef typename sums<T>::acc A;
    EACH(e, total) {
        i64 i, r, line = split(e, inner, i), o = split(line, n, r);
        u32 from = starts[r], to = starts[r + 1];
        if (from == to) continue;
        A sum = (A)wide(y[e]);
        for (u32 p = from; p < to; p++) sum += (A)alpha * (A)wide(x[(o * k + order[p]) * inner + i]);
        y[e] = narrow<T>(sum);
    }
}

// One at the label of each row.
template <typename T>
__global__ void one_hot(i64 total, i64 classes, i64 op, alarm* a, const i64* __restrict__ labels, T* __restrict__ y) {
    begin();
    EACH(e, total) {
        i64 c, row = split(e, classes, c);
        i64 v = labels[row];
        if ((v < 0 || v >= classes) && c == 0) raise(a, op, row, v, classes);
        y[e] = narrow<T>(v == c ? 1.0f : 0.0f);
    }
}

// first + i * step, computed as on the CPU.
template <typename T, typename W>
__global__ void count_up(i64 n, W first, W step, T* __restrict__ y) {
    begin();
    EACH(i, n) y[i] = narrow<T>(first + (W)i * step);
}

// A triangle of matrices: what lies on or below (above) a diagonal.
template <typename T>
__global__ void triangle(i64 total, i64 rows, i64 columns, i64 diagonal, i64 lower, const T* __restrict__ x, T* __restrict__ y) {
    begin();
    EACH(e, total) {
        i64 c, r;
        split(split(e, columns, c), rows, r);
        y[e] = (lower ? c - r <= diagonal : c - r >= diagonal) ? x[e] : T{};
    }
}

// Evenly spaced numbers, from both ends, or a power of them.
template <typename T>
__global__ void spaced(i64 n, double first, double last, double step, i64 power, double base, T* __restrict__ y) {
    begin();
    EACH(i, n) {
        double v = i < n / 2 || n == 1 ? first + step * (double)i : last - step * (double)(n - 1 - i);
        if (power) v = pow(base, v);
        y[i] = narrow<T>(v);
    }
}
