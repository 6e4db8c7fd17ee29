// Posteriors of all SIZE-subsets of P columns, made in registers from sums that all subsets share. `cpu_engine.py` is the
// same on a processor. SIZE, 2 or more, is set where this is compiled.
//
// A subset's matrix V = gram + rho I is decomposed as L D L'. What it weighs and its coefficients are computed with its
// columns in increasing order: a subset is seen with each of its pairs, and where it were not the same to the last bit,
// differences between subsets would be lost in rounding. For the inverse the pair (a, b) that a block of threads is about
// comes last: it is then read off the last two pivots.

#define OTHERS (SIZE - 2)
#define FAR -46.0  // weights below exp of it are left out
#define LOWEST -1.7e308

typedef long long whole;

struct Sums {  // of all rewards: gram (P, P), its diagonal, cross (P,) with rewards, and their squares
    const double *gram, *diagonal, *cross;
    double total;
};

struct Law {  // log weight of a component, see `CellTerms`: cells (n, 4) hold ridge^2, alpha, kappa, nu
    const double *cells, *units;
    int n_cells;
    double power, shape;
};

struct Fit {
    double inverse[SIZE], lower[SIZE][SIZE], along[SIZE], residual, determinant;
};

__device__ __forceinline__ void load(const double *gram, const double *diagonal, int p, const int (&columns)[SIZE],
                                     double (&block)[SIZE][SIZE]) {
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
        block[i][i] = diagonal[columns[i]];
#pragma unroll
        for (int k = 0; k < i; ++k) block[i][k] = gram[(whole)columns[i] * p + columns[k]];
    }
}

// L, D^-1 and det(V / rho); a pivot is never below rho but for rounding.
__device__ __forceinline__ void decompose(const double (&block)[SIZE][SIZE], double rho, Fit &fit) {
    double upper[SIZE][SIZE];
    const double unit = 1.0 / rho;
    fit.determinant = 1.0;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
        double pivot = block[i][i] + rho;
#pragma unroll
        for (int k = 0; k < i; ++k) {
            double value = block[i][k];
#pragma unroll
            for (int m = 0; m < k; ++m) value -= fit.lower[i][m] * upper[k][m];
            upper[i][k] = value;
            fit.lower[i][k] = value * fit.inverse[k];
            pivot -= fit.lower[i][k] * value;
        }
        pivot = fmax(pivot, rho);
        fit.inverse[i] = 1.0 / pivot;
        fit.determinant *= pivot * unit;
    }
}

__device__ __forceinline__ void regress(const double (&right)[SIZE], double total, Fit &fit) {
    double residual = total;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
        double value = right[i];
#pragma unroll
        for (int m = 0; m < i; ++m) value -= fit.lower[i][m] * fit.along[m];
        fit.along[i] = value;
        residual -= value * value * fit.inverse[i];
    }
    fit.residual = fmax(residual, 0.0);
}

template <class Value>
__device__ __forceinline__ void exchange(bool wanted, Value &one, Value &two) {
    const Value kept = one;
    one = wanted ? two : one;
    two = wanted ? kept : two;
}

// Sorts the columns, with their block and right-hand side.
__device__ __forceinline__ void in_order(int (&columns)[SIZE], double (&block)[SIZE][SIZE], double (&right)[SIZE]) {
#pragma unroll
    for (int end = SIZE - 1; end > 0; --end) {
#pragma unroll
        for (int i = 0; i < end; ++i) {
            const bool wanted = columns[i] > columns[i + 1];
            exchange(wanted, columns[i], columns[i + 1]);
            exchange(wanted, right[i], right[i + 1]);
            exchange(wanted, block[i][i], block[i + 1][i + 1]);
#pragma unroll
            for (int k = 0; k < i; ++k) exchange(wanted, block[i][k], block[i + 1][k]);
#pragma unroll
            for (int k = i + 2; k < SIZE; ++k) exchange(wanted, block[k][i], block[k][i + 1]);
        }
    }
}

__device__ __forceinline__ void coefficients(const Fit &fit, double (&theta)[SIZE]) {
#pragma unroll
    for (int i = SIZE - 1; i >= 0; --i) {
        theta[i] = fit.along[i] * fit.inverse[i];
#pragma unroll
        for (int m = i + 1; m < SIZE; ++m) theta[i] -= fit.lower[m][i] * theta[m];
    }
}

__device__ __forceinline__ double unit_of(const double *units, const int (&columns)[SIZE]) {
    double unit = 0.0;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) unit += units[columns[i]];
    return unit > 0.0 ? unit : 1.0;
}

// Log weight of a component, and the variance of its noise.
__device__ __forceinline__ double weigh(const Law &law, const double *cell, const Fit &fit, double &noise) {
    const double excess = fit.residual * cell[1];
    const bool known = law.shape == 0.0;
    const double misfit = known ? excess : law.shape * log1p(excess);
    noise = known ? cell[3] : cell[3] * (1.0 + excess);
    return fmax(law.power * (cell[2] - misfit - 0.5 * log(fit.determinant)), -1e300);
}

// Logarithm of the summed weights of a subset's components.
__device__ double level_of(const Sums &sums, const Law &law, int p, const int (&subset)[SIZE]) {
    int columns[SIZE];
    double block[SIZE][SIZE], right[SIZE], top = LOWEST, sum = 0.0, noise;
    Fit fit;
    load(sums.gram, sums.diagonal, p, subset, block);
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
        columns[i] = subset[i];
        right[i] = sums.cross[subset[i]];
    }
    in_order(columns, block, right);
    const double unit = unit_of(law.units, columns);
    for (int c = 0; c < law.n_cells; ++c) {
        const double *cell = law.cells + 4 * c;
        decompose(block, cell[0] * unit, fit);
        regress(right, sums.total, fit);
        const double level = weigh(law, cell, fit, noise);
        if (level > top) {
            sum = 1.0 + (top - level > FAR ? sum * exp(top - level) : 0.0);
            top = level;
        } else if (level - top > FAR) {
            sum += exp(level - top);
        }
    }
    return top + log(sum);
}

// Calls visit(columns) for the pair (a, b) with all OTHERS further columns out of `n`, where place o stands for column
// o + shift, less a and b where shift is negative; the first of `columns` is spread over the threads of a block.
template <class Visit>
__device__ __forceinline__ void with_others(int a, int b, int n, int shift, Visit visit) {
    int columns[SIZE];
    columns[SIZE - 2] = a;
    columns[SIZE - 1] = b;
    auto column = [&](int place) {
        if (shift >= 0) return place + shift;
        place += place >= a;
        return place + (place >= b);
    };
#if SIZE == 2
    if (threadIdx.x == 0) visit(columns);
#else
    int prefix[OTHERS];  // the others but the last, in the same order for all threads
    for (int i = 0; i < OTHERS - 1; ++i) prefix[i] = i;
    if (n < OTHERS) return;
    while (true) {
#pragma unroll
        for (int i = 0; i < OTHERS - 1; ++i) columns[i + 1] = column(prefix[i]);
        const int low = OTHERS > 1 ? prefix[OTHERS > 1 ? OTHERS - 2 : 0] + 1 : 0;
        for (int last = low + threadIdx.x; last < n; last += blockDim.x) {
            columns[0] = column(last);
            visit(columns);
        }
        int i = OTHERS - 2;
        while (i >= 0 && prefix[i] == n - OTHERS + i) --i;
        if (i < 0) break;
        ++prefix[i];
        for (int m = i + 1; m < OTHERS - 1; ++m) prefix[m] = prefix[m - 1] + 1;
    }
#endif
}

// Always in the same order: the same threads give the same bits.
template <class Merge>
__device__ __forceinline__ double over_block(double value, Merge merge) {
    __shared__ double parts[32];
    for (int step = 16; step > 0; step /= 2) value = merge(value, __shfl_down_sync(0xffffffffu, value, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    for (int w = 1; w < blockDim.x / 32 && threadIdx.x == 0; ++w) value = merge(value, parts[w]);
    return value;
}

// best[a, b]: the largest level of the subsets whose two smallest columns are a < b.
extern "C" __global__ void __launch_bounds__(128)
best_of_pairs(int p, const double *gram, const double *diagonal, const double *cross, double total, const double *cells,
              const double *units, int n_cells, double power, double shape, double *best) {
    const int a = blockIdx.y, b = blockIdx.x;
    if (b <= a) return;
    const Sums sums = {gram, diagonal, cross, total};
    const Law law = {cells, units, n_cells, power, shape};
    double top = LOWEST;
    with_others(a, b, p - 1 - b, b + 1,
                [&](const int (&columns)[SIZE]) { top = fmax(top, level_of(sums, law, p, columns)); });
    top = over_block(top, [](double x, double y) { return fmax(x, y); });
    if (threadIdx.x == 0) best[(whole)a * p + b] = top;
}

// out (7, P, P): sums over the subsets with a and b of w, w noise, w theta_a, w theta_a^2, w theta_a theta_b,
// w noise (V^-1)_aa and w noise (V^-1)_ab, with w = exp(log weight - reference) of each component. `later` and its
// diagonal are the gram matrix that V^-1 is taken from.
extern "C" __global__ void __launch_bounds__(128)
sums_of_pairs(int p, const double *gram, const double *diagonal, const double *cross, double total, const double *cells,
              const double *units, int n_cells, double power, double shape, double reference, const double *later,
              const double *later_diagonal, double *out) {
    const int a = blockIdx.y, b = blockIdx.x;
    if (b <= a) return;
    const Law law = {cells, units, n_cells, power, shape};
    double kept[10] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    with_others(a, b, p - 2, -1, [&](const int (&subset)[SIZE]) {
        int columns[SIZE];
        double block[SIZE][SIZE], right[SIZE], theta[SIZE], noise;
        Fit fit;
        load(gram, diagonal, p, subset, block);
#pragma unroll
        for (int i = 0; i < SIZE; ++i) {
            columns[i] = subset[i];
            right[i] = cross[subset[i]];
        }
        in_order(columns, block, right);
        const double unit = unit_of(units, columns);
        for (int c = 0; c < n_cells; ++c) {
            const double *cell = cells + 4 * c;
            decompose(block, cell[0] * unit, fit);
            regress(right, total, fit);
            const double level = weigh(law, cell, fit, noise) - reference;
            if (level <= FAR) continue;
            const double w = exp(level), wn = w * noise;
            double ta = 0.0, tb = 0.0, last[SIZE][SIZE];
            coefficients(fit, theta);
#pragma unroll
            for (int i = 0; i < SIZE; ++i) {
                ta = columns[i] == a ? theta[i] : ta;
                tb = columns[i] == b ? theta[i] : tb;
            }
            load(later, later_diagonal, p, subset, last);
            decompose(last, cell[0] * unit, fit);
            const double slope = fit.lower[SIZE - 1][SIZE - 2], vb = fit.inverse[SIZE - 1];
            kept[0] += w;
            kept[1] += wn;
            kept[2] += w * ta;
            kept[3] += w * tb;
            kept[4] += w * ta * ta;
            kept[5] += w * tb * tb;
            kept[6] += w * ta * tb;
            kept[7] += wn * (fit.inverse[SIZE - 2] + slope * slope * vb);
            kept[8] += wn * vb;
            kept[9] -= wn * slope * vb;
        }
    });
#pragma unroll
    for (int i = 0; i < 10; ++i) kept[i] = over_block(kept[i], [](double x, double y) { return x + y; });
    if (threadIdx.x != 0) return;
    const whole n = (whole)p * p, ab = (whole)a * p + b, ba = (whole)b * p + a;
    out[ab] = out[ba] = kept[0];
    out[n + ab] = out[n + ba] = kept[1];
    out[2 * n + ab] = kept[2];
    out[2 * n + ba] = kept[3];
    out[3 * n + ab] = kept[4];
    out[3 * n + ba] = kept[5];
    out[4 * n + ab] = out[4 * n + ba] = kept[6];
    out[5 * n + ab] = kept[7];
    out[5 * n + ba] = kept[8];
    out[6 * n + ab] = out[6 * n + ba] = kept[9];
}

// The subset of a rank in lexicographic order; binomial (P + 1, SIZE + 1) holds C(n, k).
__device__ void unrank(whole rank, const whole *binomial, int p, int (&columns)[SIZE]) {
    whole left = binomial[(whole)p * (SIZE + 1) + SIZE] - 1 - rank;
    int low = 0;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
        int high = p - 1;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (binomial[(whole)(p - 1 - middle) * (SIZE + 1) + SIZE - i] > left)
                low = middle + 1;
            else
                high = middle;
        }
        columns[i] = low;
        left -= binomial[(whole)(p - 1 - low) * (SIZE + 1) + SIZE - i];
        ++low;
    }
}

extern "C" __global__ void __launch_bounds__(128)
levels_of_ranks(int p, const double *gram, const double *diagonal, const double *cross, double total,
                const double *cells, const double *units, int n_cells, double power, double shape,
                const whole *binomial, const whole *ranks, whole n, double *out) {
    const whole k = (whole)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    int columns[SIZE];
    unrank(ranks[k], binomial, p, columns);
    out[k] = level_of({gram, diagonal, cross, total}, {cells, units, n_cells, power, shape}, p, columns);
}

// winners[k]: first position of the largest mean + width sqrt(base + q) of the subset of rank first + k over n_points
// candidates, rows of `points` (n, P). `later` is the gram matrix of q.
extern "C" __global__ void __launch_bounds__(128)
sweep(int p, const double *gram, const double *diagonal, const double *cross, const double *later,
      const double *later_diagonal, double rho, double base, double width, double slack, const whole *binomial,
      whole first, whole n, const double *points, int n_points, int *winners) {
    const whole k = (whole)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    int columns[SIZE];
    double block[SIZE][SIZE], right[SIZE], theta[SIZE];
    Fit fit;
    unrank(first + k, binomial, p, columns);
    load(gram, diagonal, p, columns, block);
#pragma unroll
    for (int i = 0; i < SIZE; ++i) right[i] = cross[columns[i]];
    decompose(block, rho, fit);
    regress(right, 0.0, fit);
    coefficients(fit, theta);
    double best = LOWEST, won = LOWEST;
    int winner = 0;
    if (width > 0.0) {
        if (later != gram) {
            load(later, later_diagonal, p, columns, block);
            decompose(block, rho, fit);
        }
        const double square = width * width;
#pragma unroll 2
        for (int i = 0; i < n_points; ++i) {
            const double *point = points + (whole)i * p;
            double mean = 0.0, quadratic = base, whitened[SIZE];
#pragma unroll
            for (int m = 0; m < SIZE; ++m) {
                const double value = point[columns[m]];
                mean += theta[m] * value;
                whitened[m] = value;
#pragma unroll
                for (int h = 0; h < m; ++h) whitened[m] -= fit.lower[m][h] * whitened[h];
                quadratic += whitened[m] * whitened[m] * fit.inverse[m];
            }
            const double gap = best - mean;  // roots are slow: only where the square says that it may be larger
            if (gap < 0.0 || square * quadratic >= gap * gap * (1.0 - 1e-14)) {
                const double score = mean + width * sqrt(quadratic);
                if (score > best) {
                    if (!(won >= score - slack * fabs(score))) {
                        winner = i;
                        won = score;
                    }
                    best = score;
                }
            }
        }
    } else {
#pragma unroll 4
        for (int i = 0; i < n_points; ++i) {
            const double *point = points + (whole)i * p;
            double mean = 0.0;
#pragma unroll
            for (int m = 0; m < SIZE; ++m) mean += theta[m] * point[columns[m]];
            if (mean > best) {
                if (!(won >= mean - slack * fabs(mean))) {
                    winner = i;
                    won = mean;
                }
                best = mean;
            }
        }
    }
    winners[k] = winner;
}
