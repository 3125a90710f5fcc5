// One step of a recurrent layer after its matrix products. Rows of gates lie side by side: a are those of the input, b of the
// state.

template <typename T>
__global__ void lstm_cell(i64 total, i64 units, const T* __restrict__ a, const T* __restrict__ b, const T* __restrict__ c,
                          T* __restrict__ h_out, T* __restrict__ c_out) {
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
