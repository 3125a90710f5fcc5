// One step of a recurrent layer after its matrix products. Rows of gates lie side by side: a are those of the input, b of the
// state.

template <typename T>
__global__ void lstm_cell(i64 total, i64 units, const T* __restrict__ a, const T* __restrict__ b, const T* __restrict__ c,
                          T* __restrict__ h_out, T* __restrict__ c_out) {
    begin();
    typedef typename of<T>::wide W;
    EACH(e, total) {
        i64 u, r = split(e, units, u), at = r * 4 * units + u;
        W g[4];
        for (int k = 0; k < 4; k++) g[k] = wide(a[at + k * units]) + wide(b[at + k * units]);
        W next = f_sigmoid(g[1]) * wide(c[e]) + f_sigmoid(g[0]) * f_tanh(g[2]);
        c_out[e] = narrow<T>(next);
        h_out[e] = narrow<T>(f_sigmoid(g[3]) * f_tanh(next));
    }
}

template <typename T>
__global__ void lstm_cell_back(i64 total, i64 units, const T* __restrict__ a, const T* __restrict__ b, const T* __restrict__ c,
                               const T* __restrict__ dh, const T* __restrict__ dc, T* __restrict__ gates, T* __restrict__ before) {
    begin();
    typedef typename of<T>::wide W;
    EACH(e, total) {
        i64 u, r = split(e, units, u), at = r * 4 * units + u;
        W v[4];
        for (int k = 0; k < 4; k++) v[k] = wide(a[at + k * units]) + wide(b[at + k * units]);
        W i = f_sigmoid(v[0]), f = f_sigmoid(v[1]), g = f_tanh(v[2]), o = f_sigmoid(v[3]), old = wide(c[e]);
        W t = f_tanh(f * old + i * g), up = wide(dh[e]), one = 1;
        W d = wide(dc[e]) + up * o * (one - t * t);
        gates[at] = narrow<T>(d * g * i * (one - i));
        gates[at + units] = narrow<T>(d * old * f * (one - f));
        gates[at + 2 * units] = narrow<T>(d * i * (one - g * g));
        gates[at + 3 * units] = narrow<T>(up * t * o * (one - o));
        before[e] = narrow<T>(d * f);
    }
}

template <typename T>
__global__ void gru_cell(i64 total, i64 units, const T* __restrict__ a, const T* __restrict__ b, const T* __restrict__ h,
                         T* __restrict__ out) {
    begin();
    typedef typename of<T>::wide W;
    EACH(e, total) {
        i64 u, row = split(e, units, u), at = row * 3 * units + u;
        W r = f_sigmoid(wide(a[at]) + wide(b[at])), z = f_sigmoid(wide(a[at + units]) + wide(b[at + units]));
        W c = f_tanh(wide(a[at + 2 * units]) + r * wide(b[at + 2 * units]));
        out[e] = narrow<T>((wide(h[e]) - c) * z + c);
    }
}

template <typename T>
__global__ void gru_cell_back(i64 total, i64 units, const T* __restrict__ a, const T* __restrict__ b, const T* __restrict__ h,
                              const T* __restrict__ g, T* __restrict__ da, T* __restrict__ db, T* __restrict__ dh) {
    begin();
    typedef typename of<T>::wide W;
    EACH(e, total) {
        i64 u, row = split(e, units, u), at = row * 3 * units + u;
        W r = f_sigmoid(wide(a[at]) + wide(b[at])), z = f_sigmoid(wide(a[at + units]) + wide(b[at + units])), one = 1;
        W inner = wide(b[at + 2 * units]), c = f_tanh(wide(a[at + 2 * units]) + r * inner), up = wide(g[e]);
        W dz = up * (wide(h[e]) - c) * z * (one - z), dc = up * (one - z) * (one - c * c), dr = dc * inner * r * (one - r);
        da[at] = db[at] = narrow<T>(dr);
        da[at + units] = db[at + units] = narrow<T>(dz);
        da[at + 2 * units] = narrow<T>(dc);
        db[at + 2 * units] = narrow<T>(dc * r);
        dh[e] = narrow<T>(up * z);
    }
}

// A step of a walk along sequences. `z` is the product of the states with their weight; arrays with a step for each sequence
// have the distance between rows beside them. What the way back needs is kept: gates after their activations, and for GRU the
// part of the candidate that the reset gate acts on.
template <typename T>
__global__ void lstm_walk(i64 total, i64 units, const T* __restrict__ x, i64 x_row, const T* __restrict__ z, const T* __restrict__ bias,
                          const T* c, i64 c_row, T* c_out, i64 o_row, T* __restrict__ y, i64 y_row, T* __restrict__ kept, i64 k_row) {
    begin();
    EACH(e, total) {
        i64 u, r = split(e, units, u);
        T g[4];
        for (int k = 0; k < 4; k++) g[k] = x[r * x_row + k * units + u] + z[r * 4 * units + k * units + u] + bias[k * units + u];
        T i = f_sigmoid(g[0]), f = f_sigmoid(g[1]), n = f_tanh(g[2]), o = f_sigmoid(g[3]);
        T next = f * c[r * c_row + u] + i * n;
        c_out[r * o_row + u] = next;
        y[r * y_row + u] = o * f_tanh(next);
        if (kept) { T* k = kept + r * k_row + u; k[0] = i; k[units] = f; k[2 * units] = n; k[3 * units] = o; }
    }
}
template <typename T>
__global__ void lstm_walk_back(i64 total, i64 units, const T* __restrict__ kept, i64 k_row, const T* __restrict__ c, i64 c_row,
                               const T* __restrict__ now, i64 n_row, const T* __restrict__ dy, i64 dy_row, const T* __restrict__ dh,
                               T* __restrict__ dc, T* __restrict__ dx, i64 dx_row) {
    begin();
    EACH(e, total) {
        i64 u, r = split(e, units, u);
        const T* k = kept + r * k_row + u;
        T i = k[0], f = k[units], g = k[2 * units], o = k[3 * units], t = f_tanh(now[r * n_row + u]), one = 1;
        T up = dy[r * dy_row + u] + dh[e], d = dc[e] + up * o * (one - t * t);
        T* to = dx + r * dx_row + u;
        to[0] = d * g * i * (one - i);
        to[units] = d * c[r * c_row + u] * f * (one - f);
        to[2 * units] = d * i * (one - g * g);
        to[3 * units] = up * t * o * (one - o);
        dc[e] = d * f;
    }
}
template <typename T>
__global__ void gru_walk(i64 total, i64 units, const T* __restrict__ x, i64 x_row, const T* __restrict__ z, const T* __restrict__ bias,
                         const T* h, i64 h_row, T* y, i64 y_row, T* __restrict__ kept, i64 k_row) {
    begin();
    EACH(e, total) {
        i64 u, row = split(e, units, u);
        const T *a = x + row * x_row + u, *b = z + row * 3 * units + u, *d = bias + u;
        T r = f_sigmoid(a[0] + (b[0] + d[0])), s = f_sigmoid(a[units] + (b[units] + d[units]));
        T inner = b[2 * units] + d[2 * units], c = f_tanh(a[2 * units] + r * inner);
        y[row * y_row + u] = (h[row * h_row + u] - c) * s + c;
        if (kept) { T* k = kept + row * k_row + u; k[0] = r; k[units] = s; k[2 * units] = c; k[3 * units] = inner; }
    }
}
template <typename T>
__global__ void gru_walk_back(i64 total, i64 units, const T* __restrict__ kept, i64 k_row, const T* __restrict__ h, i64 h_row,
                              const T* __restrict__ dy, i64 dy_row, const T* __restrict__ dh, T* __restrict__ past,
                              T* __restrict__ dx, T* __restrict__ dz, i64 d_row) {
    begin();
    EACH(e, total) {
        i64 u, row = split(e, units, u);
        const T* k = kept + row * k_row + u;
        T r = k[0], s = k[units], c = k[2 * units], inner = k[3 * units], one = 1, up = dy[row * dy_row + u] + dh[e] + past[e];
        T ds = up * (h[row * h_row + u] - c) * s * (one - s), d = up * (one - s) * (one - c * c), dr = d * inner * r * (one - r);
        T *a = dx + row * d_row + u, *b = dz + row * d_row + u;
        a[0] = b[0] = dr;
        a[units] = b[units] = ds;
        a[2 * units] = d;
        b[2 * units] = d * r;
        past[e] = up * s;
    }
}
template <typename T>
__global__ void simple_walk(i64 total, i64 units, i64 relu, const T* __restrict__ x, i64 x_row, const T* __restrict__ z,
                            const T* __restrict__ bias, T* __restrict__ y, i64 y_row) {
    begin();
    EACH(e, total) {
        i64 u, r = split(e, units, u);
        T v = x[r * x_row + u] + (z[e] + bias[u]);
        y[r * y_row + u] = relu ? (v > 0 ? v : (T)0) : f_tanh(v);
    }
}
template <typename T>
__global__ void simple_walk_back(i64 total, i64 units, i64 relu, const T* __restrict__ y, i64 y_row, const T* __restrict__ dy,
                                 i64 dy_row, const T* __restrict__ dh, T* __restrict__ dx, i64 dx_row) {
    begin();
    EACH(e, total) {
        i64 u, r = split(e, units, u);
        T v = y[r * y_row + u], up = dy[r * dy_row + u] + dh[e];
        dx[r * dx_row + u] = relu ? (v > 0 ? up : (T)0) : up * ((T)1 - v * v);
    }
}
