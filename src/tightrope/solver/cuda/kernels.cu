// Bellman backups, verification sweeps and graph fixpoints on a GPU. One file, two compilers: NVRTC builds it for the
// device, and any C++17 compiler builds it through shim.h, so that all of its logic is tested where there is no GPU.
//
// Compiled with  -DKIND=0|1|2|3      ordinary, interval, rectangular over a polytope, over an ellipsoid
//                -DSUCCESSOR, -DID   the narrowest unsigned types that hold a state and a row of the table
//                -DSLOT, -DDIRECT    the type of a slot's index; 1 where bounds lie in the slots themselves
//                -DDIMENSION=d       coordinates of the region (KIND 2, 3)
// and without fused multiply-add: every operation rounds as in the CPU's kernels (tightrope.ambiguity.o_maximization,
// .rectangular_inner), whose arguments about rounding therefore hold here word for word.
//
// A *segment* holds states that share their number of choices and of successors K, transposed: successor j of choice a
// of its row i is at slot (a·K + j)·n + i, so that neighbouring threads read neighbouring words. K = 0 is the segment
// of all other states, row after row. A slot carries the successor and the row of a table of distinct bounds (DIRECT:
// the slot itself is the row). Values, rewards and results are in the model's own numbering.

#ifndef __CUDACC__
#include "shim.h"
#endif

enum { PLAIN = 0, INTERVAL = 1, POLYTOPE = 2, ELLIPSOID = 3 };
enum { NORMAL = 0, CLOSED = 1, EXIT = 2 };
const int UNKNOWN = -1, REQUESTED = -3; // neighbours: not looked for, asked for; BLOCKED is -2

typedef long long Offset;
typedef SUCCESSOR Successor;
typedef ID Id;
typedef SLOT Slot; // an index of slots, and with it of rows of the table
typedef unsigned char Flag;

#define ROW (KIND == PLAIN ? 1 : KIND == INTERVAL ? 2 : 4 + DIMENSION + DIMENSION % 2) // pairs are read at once
#define SIZE (DIMENSION > 0 ? DIMENSION : 1)
#define RECTANGULAR (KIND >= 2)
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#define SUM_UNIT 0x1p-52
#define UNDERFLOW_ROOM 1e-300
#define STEP_ERROR 0x1p-50
#define MOST 0x1.fffffffffffffp1023
#define MOST_STEPS 500
#define BLOCK 256
// Measured on an H200: blocks a multiprocessor (registers against loads in flight), choices loaded together.
#define RESIDENT (RECTANGULAR ? (LEAN ? 3 : 2) : LEAN && K <= 4 ? 6 : 3)
const int AHEAD = 2;

// All fields are eight bytes wide; tightrope/solver/cuda/model.py packs the same lists. Kernels get them by value:
// then they lie in constant memory and cost no registers.
struct Segment {
    Offset states, choices;       // rows; choices a row (K > 0)
    const int *row;               // state of each row; null: first, first + 1, ...
    Offset first;
    const Successor *successor;
    const Id *id;
    const double *table;          // lower, upper, middle, fuzz, slope ... of each row
    const Offset *slot_start;     // K = 0: the first slot of each row
    double *scratch;              // K = 0: eight words a successor and thread
};

struct Model {
    const Offset *choice_start, *transition_start;
    const Flag *joint;            // choices that go beyond their intervals; null: all
    int *vertex_of;               // where each choice was last optimal
    const double *rows, *reach, *vertex, *ball;
    int *link;
    int *request;                 // count, then pairs (vertex, row left) whose neighbour is not known yet
    Offset request_room, row_count;
};

struct System {
    const double *reward, *discount; // one a choice; null: the same for all
    double reward_all, discount_all;
    Offset rewarded, discounted, agent_maximises, nature_maximises; // 0 or 1
    double floor, ceiling, slack;
    const signed char *mode;      // null: all NORMAL
    const int *leader;            // null: every state on its own
    const Flag *active;           // states that are backed up; null: all
};

#define THREADS ((Offset)gridDim.x * blockDim.x)
#define THREAD ((Offset)blockIdx.x * blockDim.x + threadIdx.x)
#define EACH(i, count) (int i = (int)THREAD; i < (int)(count); i += (int)THREADS)

// Indices are read once a sweep: they leave the caches to the values.
#ifdef __CUDACC__
#define STREAMED(at) __ldcs(at)
#else
#define STREAMED(at) *(at)
#endif

// total + term, and whether this is exact if total was; tightrope.numerics.rounding says why sums near 1 matter.
__device__ inline double added(double total, double term, bool &exact) {
    double sum = total + term, back = sum - total;
    exact = exact && (total - (sum - back)) + (term - back) == 0.0;
    return sum;
}

__device__ inline double lesser(double a, double b) { return b < a ? b : a; }
__device__ inline double greater_of(double a, double b) { return b > a ? b : a; }

// The largest of all threads' numbers, none negative, into *all. Bits of such doubles are ordered as they are.
__device__ inline void raise(unsigned long long *all, double mine) {
#ifdef __CUDACC__
    for (int lanes = 16; lanes > 0; lanes /= 2) mine = greater_of(mine, __shfl_xor_sync(0xffffffffu, mine, lanes));
    if (threadIdx.x % 32) return;
#endif
    if (mine > 0.0) atomicMax(all, (unsigned long long)__double_as_longlong(mine));
}

// Change from old to now relative to max(|now|, unit); infinite where an infinity is involved.
__device__ inline double relative_change(double old, double now, double unit) {
    if (now == old) return 0.0;
    double scale = greater_of(fabs(now), unit);
    return isfinite(now - old) && scale < INFINITE ? fabs(now - old) / scale : INFINITE;
}

template <class T, int K> struct Array { // registers
    T held[K];
    __device__ void at(double *, int) {}
    __device__ T &operator[](int i) { return held[i]; }
};
template <class T> struct Array<T, 0> { // scratch memory, for rows of any length
    double *word;
    __device__ void at(double *scratch, int which) { word = scratch + which; }
    __device__ T &operator[](int i) { return *(T *)(word + 8 * i * THREADS); }
};

// ------------------------------------------------------------------------------------------------ one choice

template <int K> struct Choice {
    int length;
    Array<double, K> x, low, high, key, gap, mass;
    Array<Slot, K> id, order;
    const double *table;

    __device__ int k() const { return K ? K : length; }
    __device__ double tolerance() const { return (k() + 2) * SUM_UNIT; }
    __device__ const double *affine(int j) { return table + id[j] * ROW + 2; } // middle, fuzz, slope ...

    __device__ void load(const Segment &g, Slot slot, Slot stride, int size, const double *values) {
        length = size;
        table = g.table;
        double *mine = K ? 0 : g.scratch + 8 * THREAD;
        x.at(mine, 0), low.at(mine, 1), high.at(mine, 2), key.at(mine, 3), gap.at(mine, 4), mass.at(mine, 5);
        id.at(mine, 6), order.at(mine, 7);
#pragma unroll
        for (int j = 0; j < k(); j++) {
            Slot at = slot + j * stride;
            Successor successor = STREAMED(g.successor + at);
            id[j] = DIRECT ? at : (Slot)STREAMED(g.id + at);
            x[j] = values ? values[successor] : 0.0;
        }
#pragma unroll
        for (int j = 0; j < k(); j++) {
            const double *row = table + id[j] * ROW;
            if (KIND != PLAIN) {
                double2 bounds = *(const double2 *)row;
                low[j] = bounds.x, high[j] = bounds.y;
            } else
                low[j] = high[j] = row[0];
        }
    }

    // Best successor first; equal ones stay in order.
    __device__ void sort(bool maximise) {
#pragma unroll
        for (int i = 0; i < k(); i++) {
            key[i] = maximise ? -x[i] : x[i];
            gap[i] = high[i] - low[i];
            order[i] = i;
#pragma unroll
            for (int j = i; j > 0; j--) {
                if (!(key[j - 1] > key[j])) {
                    if (K) continue;
                    break;
                }
                double f = key[j]; key[j] = key[j - 1]; key[j - 1] = f;
                f = gap[j]; gap[j] = gap[j - 1]; gap[j - 1] = f;
                Slot o = order[j]; order[j] = order[j - 1]; order[j - 1] = o;
            }
        }
    }

    __device__ double mean() {
        double total = 0.0;
#pragma unroll
        for (int j = 0; j < k(); j++)
            if (low[j] > 0.0) total += low[j] * x[j];
        return total;
    }

    // The optimum of p·x over the intervals, in plain floating point.
    __device__ double o_maximize(bool maximise) {
        double total = 0.0, rest = 1.0;
#pragma unroll
        for (int j = 0; j < k(); j++)
            if (low[j] > 0.0) {
                rest -= low[j];
                total += low[j] * x[j];
            }
        sort(maximise);
#pragma unroll
        for (int i = 0; i < k(); i++) {
            if (!(rest > 0.0)) break;
            if (!(rest > tolerance()) && isinf(key[i])) continue; // never noise onto an infinite value
            double take = lesser(gap[i], rest);
            if (take > 0.0) {
                total += take * (maximise ? -key[i] : key[i]);
                rest -= take;
            }
        }
        return total;
    }

    // The same for few successors by duality: opt p·x = opt_i x_i + sum_j b_j·(x_j - x_i), b_j the bound of j on the
    // side of x_j - x_i. No sorting and half the operations; not a number where a value is infinite.
    __device__ double dual(bool maximise) {
        double best = 0.0;
#pragma unroll
        for (int i = 0; i < K; i++) {
            double sum = x[i];
#pragma unroll
            for (int j = 0; j < K; j++) {
                if (j == i) continue;
                double d = x[j] - x[i];
                sum = fma((d > 0.0) == maximise ? high[j] : low[j], d, sum);
            }
            if (i == 0 || !(maximise ? sum >= best : sum <= best)) best = sum;
        }
        return best;
    }

    __device__ double optimum(bool maximise) { return K == 0 || K > 5 ? o_maximize(maximise) : dual(maximise); }

    // head + the sum of key, of the right sign; key is overwritten (tightrope.numerics.rounding).
    __device__ double distilled(double head) {
        double top = head;
        for (bool moved = true; moved;) {
            moved = false;
            double below = head;
#pragma unroll
            for (int j = 0; j < k(); j++) {
                double a = key[j], sum = a + below, back = sum - a, error = (a - (sum - back)) + (below - back);
                moved = moved || sum != a;
                if (j) key[j - 1] = error;
                else head = error;
                key[j] = below = top = sum;
            }
        }
        return top;
    }

    __device__ void place(int at, double amount) { // mass[at] = amount, with registers only
        if (K) {
#pragma unroll
            for (int j = 0; j < k(); j++)
                if (at == j) mass[j] = amount;
        } else
            mass[at] = amount;
    }
    __device__ double held(Array<double, K> &from, int at) {
        double found = 0.0;
        if (!K) return from[at];
#pragma unroll
        for (int j = 0; j < k(); j++)
            if (at == j) found = from[j];
        return found;
    }
    __device__ int in_line(int place) { // order[place], with registers only
        int found = 0;
        if (!K) return (int)order[place];
#pragma unroll
        for (int i = 0; i < k(); i++)
            if (place == i) found = (int)order[i];
        return found;
    }

    // 1 minus the upper bounds of the first successors in line, minus the lower bounds of the others.
    __device__ double left(int saturated) {
        double total = 1.0;
        bool exact = true;
#pragma unroll
        for (int i = 0; i < k(); i++) {
            key[i] = -(i < saturated ? held(high, (int)order[i]) : held(low, (int)order[i]));
            total = added(total, key[i], exact);
        }
        return exact ? total : distilled(1.0);
    }

    // Nature's optimal distribution over the intervals into mass, every remainder of the right sign and relatively exact;
    // returns the pivot, -1 if there is none.
    __device__ int spread_exactly(bool maximise) {
        int pivot = -1;
#pragma unroll
        for (int j = 0; j < k(); j++) mass[j] = low[j];
        if (KIND == PLAIN) return -1;
        sort(maximise);
        double rest = left(0);
        for (int i = 0; i < k(); i++) {
            int at = in_line(i);
            double upper = held(high, at), lower = held(low, at), room = upper - lower;
            if (rest <= 0.0 || room <= 0.0) continue;
            double after = rest - room;
            if (fabs(after) <= 2.0 * tolerance()) after = left(i + 1);
            place(at, after >= 0.0 ? upper : lower + rest);
            pivot = at;
            rest = after;
        }
        return pivot;
    }

    // The same as floating point tells it. `full`: the pivot is full, or nearly, so that something may be left or nothing.
    __device__ int spread(bool maximise, bool &full) {
        double rest = 1.0, spare = 0.0;
        bool exact = true;
        full = false;
#pragma unroll
        for (int j = 0; j < k(); j++) {
            mass[j] = low[j];
            rest = added(rest, -low[j], exact);
        }
        if (KIND == PLAIN) return -1;
        sort(maximise);
        int pivot = -1;
#pragma unroll
        for (int i = 0; i < k(); i++) {
            if (!(rest > tolerance())) break;
            int at = (int)order[i];
            double lower = held(low, at), room = added(held(high, at), -lower, exact), take = lesser(room, rest);
            rest = added(rest, -take, exact);
            place(at, lower + take);
            if (take > 0.0) pivot = at, spare = room - take;
        }
        full = spare <= tolerance() && !(exact && rest == 0.0);
        return pivot;
    }

    // The optimum of p·x over the intervals, rounded up or down by a bound on all errors.
    __device__ double safely(bool maximise, bool upward) {
        bool full, empty = false;
        int pivot = spread(maximise, full);
        if (full) {
#pragma unroll
            for (int j = 0; j < k(); j++) empty = empty || (!(mass[j] > 0.0) && high[j] > 0.0);
            if (empty) pivot = spread_exactly(maximise);
        }
        double total = 0.0, size = 0.0, smallest = INFINITE, largest = -INFINITE, last = 0.0;
#pragma unroll
        for (int j = 0; j < k(); j++) {
            if (mass[j] > 0.0) {
                smallest = lesser(smallest, x[j]);
                largest = greater_of(largest, x[j]);
                total += mass[j] * x[j];
                size += fabs(mass[j] * x[j]);
            }
            if (j == pivot) last = fabs(x[j]);
        }
        if (full && !empty) last += 2.0 * greater_of(fabs(smallest), fabs(largest));
        size += last;
        double error = (k() + 6) * SUM_UNIT * size + UNDERFLOW_ROOM;
        if (smallest == largest) return smallest;
        if (isinf(smallest) || isinf(largest)) return total;
        total = lesser(greater_of(total, smallest), largest);
        return upward ? lesser(total + error, largest) : greater_of(total - error, smallest);
    }

    // Whether transition j can have positive probability, as tightrope.model.graph.support reads the bounds; `leaves`:
    // the lower bounds leave something.
    __device__ bool possible(int j, bool leaves, const Flag *kept) {
        if (kept) return kept[j];
        if (KIND == PLAIN) return high[j] > 0.0;
        return high[j] > 0.0 && (low[j] > 0.0 || leaves);
    }
    __device__ bool leaves(const Flag *kept) {
        if (kept || KIND == PLAIN) return true;
        return !reaches_one([&](int j) { return low[j]; });
    }
    // Whether terms sum to at least 1, exactly.
    template <class Term> __device__ bool reaches_one(Term term) {
        double sum = 0.0;
        bool exact = true;
#pragma unroll
        for (int j = 0; j < k(); j++) sum = added(sum, term(j), exact);
        if (exact || fabs(sum - 1.0) > tolerance()) return sum >= 1.0;
#pragma unroll
        for (int j = 0; j < k(); j++) key[j] = term(j);
        return distilled(-1.0) >= 0.0;
    }

#if RECTANGULAR
    double q[SIZE], lambda[SIZE];

    // Sum of delta·middle, and q, turned round where nature minimises; infinite error where a value is infinite.
    __device__ double direction(bool maximise, double &error) {
        bool finite = true;
        for (int i = 0; i < SIZE; i++) q[i] = 0.0;
#pragma unroll
        for (int j = 0; j < k(); j++) finite = finite && isfinite(x[j]);
        double base = 0.0, start = finite ? x[0] : isfinite(x[0]) ? 0.0 : 1.0;
        error = 0.0;
#pragma unroll
        for (int j = 1; j < k(); j++) {
            double delta = (finite ? x[j] : isfinite(x[j]) ? 0.0 : 1.0) - start;
            if (delta == 0.0) continue;
            const double *f = affine(j);
            base += delta * f[0];
            error += fabs(delta) * f[1];
            if (!maximise) delta = -delta;
            for (int i = 0; i < SIZE; i++) q[i] += delta * f[2 + i];
        }
        if (!finite) error = INFINITE;
        return base;
    }

    __device__ double image(const double *ball, double &off) { // lambda = G·q, its norm and a bound on its error
        double square = 0.0, spread = 0.0;
        for (int i = 0; i < SIZE; i++) {
            double value = 0.0, magnitude = 0.0;
            for (int c = 0; c < SIZE; c++) {
                value += ball[i * SIZE + c] * q[c];
                magnitude += fabs(ball[i * SIZE + c] * q[c]);
            }
            lambda[i] = value;
            square += value * value;
            spread += magnitude * magnitude;
        }
        off = (SIZE + 8) * SUM_UNIT * sqrt(spread) + 1e-150;
        return sqrt(square);
    }

    // The vertex that maximises q·z, as far as the pool knows it, with its multipliers in lambda.
    __device__ int climbed(const Model &m, Offset c) {
        int v = m.vertex_of[c], before = v;
        if (v < 0) v = 0;
        for (int steps = 0; steps < MOST_STEPS; steps++) {
            const double *inverse = m.vertex + (Offset)v * (SIZE * (SIZE + 1) + 1) + SIZE;
            double worst = 0.0, total = 0.0;
            int leaving = -1;
            for (int i = 0; i < SIZE; i++) {
                double value = 0.0;
                for (int j = 0; j < SIZE; j++) value += q[j] * inverse[SIZE * i + j];
                lambda[i] = value;
                total += fabs(value);
                if (value < worst && m.link[(Offset)v * 2 * SIZE + SIZE + i] >= UNKNOWN) worst = value, leaving = i;
            }
            if (leaving < 0 || worst >= -1e-13 * total) break;
            int *way = m.link + (Offset)v * 2 * SIZE + SIZE + leaving;
            int next = *way;
            if (next == UNKNOWN && atomicCAS(way, UNKNOWN, REQUESTED) == UNKNOWN) {
                int place = atomicAdd(m.request, 1);
                if (place < m.request_room) m.request[1 + 2 * place] = v, m.request[2 + 2 * place] = leaving;
                else atomicExch(way, UNKNOWN); // no room: asked for again another time
            }
            if (next < 0) break; // where it stands is good enough until the neighbour is there
            v = next;
        }
        if (v != before) m.vertex_of[c] = v;
        return v;
    }

    __device__ double outer_value(const Model &m, int v) { // weak duality: an upper bound of q·z whatever lambda is
        double value = 0.0, magnitude = 0.0, weight = 0.0;
        const int *basis = m.link + (Offset)v * 2 * SIZE;
        for (int i = 0; i < SIZE; i++)
            if (lambda[i] > 0.0) {
                double term = lambda[i] * m.rows[(Offset)basis[i] * (SIZE + 1) + SIZE];
                value += term;
                magnitude += fabs(term);
                weight += lambda[i];
            }
        for (int c = 0; c < SIZE; c++) {
            double left = q[c];
            for (int i = 0; i < SIZE; i++)
                if (lambda[i] > 0.0) left -= lambda[i] * m.rows[(Offset)basis[i] * (SIZE + 1) + c];
            value += fabs(left) * m.reach[c];
            magnitude += (fabs(q[c]) + weight) * m.reach[c];
        }
        return value + (2 * SIZE + 12) * SUM_UNIT * magnitude + 1e-300;
    }

    __device__ double inner_value(const Model &m, int v) { // a lower bound of q·z at the vertex
        const double *point = m.vertex + (Offset)v * (SIZE * (SIZE + 1) + 1);
        double value = 0.0, magnitude = 0.0, length_ = 0.0;
        for (int c = 0; c < SIZE; c++) {
            double term = q[c] * point[c];
            value += term;
            magnitude += fabs(term);
            length_ += fabs(q[c]);
        }
        return value - (length_ * point[SIZE * (SIZE + 1)] + (SIZE + 8) * SUM_UNIT * magnitude + 1e-300);
    }

    // The optimum over region and intervals in plain floating point, and a distribution that attains it in mass.
    __device__ double inner(const Model &m, Offset c, bool maximise) {
        double y = 0.0;
        if (m.joint && !m.joint[c]) {
            bool full;
            spread(maximise, full);
#pragma unroll
            for (int j = 0; j < k(); j++)
                if (mass[j] > 0.0) y += mass[j] * x[j];
            return y;
        }
        double error, best = 0.0, base = direction(maximise, error);
        if (error > 0.0) {
            if (KIND == ELLIPSOID) { // the optimal point is beta·G'Gq/|Gq|
                double off, norm = image(m.ball, off), beta = m.ball[SIZE * SIZE];
                best = beta * norm;
                for (int i = 0; i < SIZE; i++) {
                    q[i] = 0.0;
                    for (int j = 0; j < SIZE; j++) q[i] += m.ball[j * SIZE + i] * lambda[j];
                    q[i] *= beta / greater_of(norm, 1e-300);
                }
            } else {
                const double *point = m.vertex + (Offset)climbed(m, c) * (SIZE * (SIZE + 1) + 1);
                for (int i = 0; i < SIZE; i++) {
                    best += q[i] * point[i];
                    q[i] = point[i];
                }
            }
        }
        y = x[0] + base + (maximise ? best : -best);
        double total = 0.0;
        bool within = true;
#pragma unroll
        for (int j = 0; j < k(); j++) {
            const double *f = affine(j);
            double p = f[0];
            for (int i = 0; i < SIZE; i++) p += f[2 + i] * q[i];
            within = within && low[j] - 1e-12 <= p && p <= high[j] + 1e-12;
            mass[j] = p > 1e-15 ? p : 0.0;
            total += mass[j];
        }
#pragma unroll
        for (int j = 0; j < k(); j++) mass[j] /= greater_of(total, 1e-300);
        if (within && error < INFINITE) return y;
        double of_intervals = o_maximize(maximise);
        if (!(error < INFINITE)) return of_intervals;
        if (maximise ? y >= of_intervals : y <= of_intervals) {
            bool full;
            spread(maximise, full);
            y = of_intervals;
        }
        return y;
    }

    // The value of `inner` where no value is infinite and no distribution is asked for, with fewer operations.
    __device__ double inner_of_finite(const Model &m, Offset c, bool maximise) {
        double f[K ? K : 1][ROW];
#pragma unroll
        for (int j = 0; j < K; j++)
            for (int i = 2; i < ROW; i += 2) {
                double2 pair = *(const double2 *)(table + id[j] * ROW + i);
                f[j][i] = pair.x, f[j][i + 1] = pair.y;
            }
        double base = 0.0, turn = maximise ? 1.0 : -1.0;
        for (int i = 0; i < SIZE; i++) q[i] = 0.0;
#pragma unroll
        for (int j = 1; j < K; j++) {
            double delta = x[j] - x[0];
            base = fma(delta, f[j][2], base);
            for (int i = 0; i < SIZE; i++) q[i] = fma(turn * delta, f[j][4 + i], q[i]);
        }
        const double *point = m.vertex + (Offset)climbed(m, c) * (SIZE * (SIZE + 1) + 1);
        double best = 0.0;
        for (int i = 0; i < SIZE; i++) {
            best = fma(q[i], point[i], best);
            q[i] = point[i];
        }
        double y = fma(turn, best, x[0] + base);
        bool within = true;
#pragma unroll
        for (int j = 0; j < K; j++) {
            double p = f[j][2];
            for (int i = 0; i < SIZE; i++) p = fma(f[j][4 + i], q[i], p);
            within = within && low[j] - 1e-12 <= p && p <= high[j] + 1e-12;
        }
        if (within) return y;
        double of_intervals = optimum(maximise);
        return maximise ? lesser(y, of_intervals) : greater_of(y, of_intervals);
    }

    __device__ double inner_safely(const Model &m, Offset c, bool maximise, bool upward) {
        double of_intervals = safely(maximise, upward);
        if (m.joint && !m.joint[c]) return of_intervals;
        double error, base = direction(maximise, error);
        if (!(0.0 < error && error < INFINITE)) return of_intervals;
        bool outward = maximise == upward;
        double best;
        if (KIND == ELLIPSOID) {
            double off, norm = image(m.ball, off);
            best = outward ? m.ball[SIZE * SIZE] * (norm + off)
                           : m.ball[SIZE * (SIZE + 1)] * greater_of(norm - off, 0.0);
        } else {
            int v = climbed(m, c);
            best = outward ? outer_value(m, v) : inner_value(m, v);
        }
        error = error * (1.0 + 1e-9) + 0x1p-51 * (fabs(x[0]) + fabs(base) + fabs(best)) + 1e-300;
        double y = x[0] + base + (maximise ? best : -best);
        y = upward ? y + error : y - error;
        double smallest = INFINITE, largest = -INFINITE;
#pragma unroll
        for (int j = 0; j < k(); j++)
            if (high[j] > 0.0) smallest = lesser(smallest, x[j]), largest = greater_of(largest, x[j]);
        y = lesser(greater_of(y, smallest), largest);
        return maximise ? lesser(of_intervals, y) : greater_of(of_intervals, y);
    }
#endif

    // In plain floating point; FINITE: no value is infinite.
    template <bool FINITE> __device__ double value(const Model &m, Offset c, bool maximise) {
#if RECTANGULAR
        if (FINITE && K && KIND == POLYTOPE && (!m.joint || m.joint[c])) return inner_of_finite(m, c, maximise);
        return inner(m, c, maximise);
#else
        if (KIND == PLAIN) return mean();
        return FINITE ? optimum(maximise) : o_maximize(maximise);
#endif
    }
    __device__ double safe_value(const Model &m, Offset c, bool maximise, bool upward) {
#if RECTANGULAR
        return inner_safely(m, c, maximise, upward);
#else
        return safely(maximise, upward);
#endif
    }
    __device__ void distribution(const Model &m, Offset c, bool maximise) { // into mass
#if RECTANGULAR
        inner(m, c, maximise);
#else
        spread_exactly(maximise);
#endif
    }
};

// ------------------------------------------------------------------------------------------------ one state

__device__ inline int state_of(const Segment &g, int i) { return g.row ? g.row[i] : (int)g.first + i; }

// Calls use(choice) for choice a of row i, whose index in the model is c.
template <int K, class Use>
__device__ inline void with_choice(
    const Segment &g, const Model &m, Offset i, Offset c, Offset c0, int a, const double *values, Use use
) {
    if constexpr (K > 0) {
        Choice<K> choice;
        choice.load(g, (Slot)(a * K) * (Slot)g.states + (Slot)i, (Slot)g.states, K, values);
        use(choice);
    } else {
        Offset begin = m.transition_start[c];
        Slot slot = (Slot)(g.slot_start[i] + (begin - m.transition_start[c0]));
        int size = (int)(m.transition_start[c + 1] - begin);
        switch (size) {
        case 1: { Choice<1> choice; choice.load(g, slot, 1, size, values); use(choice); break; }
        case 2: { Choice<2> choice; choice.load(g, slot, 1, size, values); use(choice); break; }
        case 3: { Choice<3> choice; choice.load(g, slot, 1, size, values); use(choice); break; }
        default: { Choice<0> choice; choice.load(g, slot, 1, size, values); use(choice); }
        }
    }
}

// The slots of choice a of row i: the first, and the step from one to the next.
template <int K>
__device__ inline Offset slots_of(const Segment &g, const Model &m, Offset i, Offset c, Offset c0, int a, Offset &step) {
    step = K ? g.states : 1;
    return K ? (Offset)a * K * g.states + i : g.slot_start[i] + (m.transition_start[c] - m.transition_start[c0]);
}

template <int K> __device__ inline int choices_of(const Segment &g, const Model &m, Offset s) {
    return (int)(K ? g.choices : m.choice_start[s + 1] - m.choice_start[s]);
}

__device__ inline double step(const System &e, Offset c, double x) {
    if (e.discounted) x *= e.discount ? e.discount[c] : e.discount_all;
    if (e.rewarded) x += e.reward ? e.reward[c] : e.reward_all;
    return x;
}

__device__ inline double safe_step(const System &e, Offset c, double x, bool upward) {
    double r = e.rewarded ? (e.reward ? e.reward[c] : e.reward_all) : 0.0;
    if (e.discounted) x *= e.discount ? e.discount[c] : e.discount_all;
    if ((e.discounted || r != 0.0) && !isinf(x) && !(x == 0.0 && r == 0.0)) {
        double error = STEP_ERROR * lesser(fabs(r) + fabs(x), MOST) + UNDERFLOW_ROOM;
        x = upward ? greater_of(x + r, -MOST) + error : lesser(x + r, MOST) - error;
    }
    return x;
}

// Nature, able to idle at an EXIT, picks its best way out of the group: the slot's successor, -1 if there is none.
template <class C>
__device__ inline Offset best_exit(
    C &choice, const Segment &g, Offset slot, Offset stride, bool maximise, const int *leader, int home, double &best
) {
    Offset found = -1;
    for (int j = 0; j < choice.k(); j++) {
        Offset successor = g.successor[slot + j * stride];
        double x = maximise ? choice.x[j] : -choice.x[j];
        if (choice.high[j] > 0.0 && leader[successor] != home && (found < 0 || x > best)) found = successor, best = x;
    }
    if (!maximise) best = -best;
    return found;
}

// The value of choice a of row i under `values`: plain or safe, modes respected. False where it is not to be had.
template <int K, bool FINITE = false>
__device__ inline bool choice_value(
    const Segment &g, const Model &m, const System &e, Offset i, Offset s, Offset c0, int a, const double *values,
    bool safe, bool upward, double &result
) {
    Offset c = c0 + a;
    int mode = e.mode ? e.mode[c] : NORMAL;
    if (mode == CLOSED) return false;
    bool there = true;
    with_choice<K>(g, m, i, c, c0, a, values, [&](auto &choice) {
        double x = 0.0;
        if (mode == EXIT) {
            Offset stride, slot = slots_of<K>(g, m, i, c, c0, a, stride);
            there = best_exit(choice, g, slot, stride, e.nature_maximises, e.leader, e.leader[s], x) >= 0;
        } else if (safe)
            x = choice.safe_value(m, c, e.nature_maximises, upward);
        else
            x = choice.template value<FINITE>(m, c, e.nature_maximises);
        if (there) result = safe ? safe_step(e, c, x, upward) : step(e, c, x);
    });
    return there;
}

__device__ inline double within(const System &e, double x) { return lesser(greater_of(x, e.floor), e.ceiling); }

// ------------------------------------------------------------------------------------------------ sweeps

// y = within(opt over choices of Phi_c(x) + shift). FROZEN: over the choice in `taken` alone (none: -1); else `taken`,
// if given, receives it. `change`, if given, receives the largest relative change. LEAN: all choices are NORMAL and
// share reward and discount, and no value is infinite.
template <int K, bool FROZEN, bool LEAN>
__global__ void __launch_bounds__(BLOCK, RESIDENT) sweep(
    const Model m, const System equations, const Segment g, const double *x, double *y, const double *shift,
    int *taken, unsigned long long *change, double unit
) {
    System e = equations;
    if (LEAN) e.mode = 0, e.reward = 0, e.discount = 0;
    const bool maximise = e.agent_maximises;
    double worst = 0.0;
    for EACH(i, g.states) {
        int s = state_of(g, i);
        if (e.active && !e.active[s]) continue;
        bool needs_choice = RECTANGULAR || K == 0 || e.mode || e.reward || e.discount;
        Offset c0 = needs_choice ? m.choice_start[s] : 0;
        double best = maximise ? -INFINITE : INFINITE, value;
        int chosen = -1;
        if (FROZEN) {
            chosen = taken[s];
            if (chosen >= 0 && choice_value<K, LEAN>(g, m, e, i, s, c0, chosen, x, false, false, value)) best = value;
        } else {
            int count = choices_of<K>(g, m, s);
#pragma unroll AHEAD
            for (int a = 0; a < count; a++) {
                if (!choice_value<K, LEAN>(g, m, e, i, s, c0, a, x, false, false, value)) continue;
                if (chosen < 0 || (maximise ? value > best : value < best)) best = value, chosen = a;
            }
            if (taken) taken[s] = chosen;
        }
        double now = within(e, shift ? best + shift[s] : best);
        y[s] = now;
        if (change) worst = greater_of(worst, relative_change(x[s], now, unit));
    }
    if (change) raise(change, worst);
}

// w' = ref + W·w: the expected rest of the way, W the transitions under the choices taken and nature's answer to x.
template <int K>
__global__ void margin(
    const Model m, const System e, const Segment g, const double *x, const double *w, double *out,
    const double *reference, const int *taken, unsigned long long *change
) {
    double worst = 0.0;
    for EACH(i, g.states) {
        int s = state_of(g, i);
        int a = taken[s];
        if ((e.active && !e.active[s]) || a < 0) continue;
        Offset c0 = m.choice_start[s], c = c0 + a, stride;
        Offset slot = slots_of<K>(g, m, i, c, c0, a, stride);
        double scale = e.discounted ? (e.discount ? e.discount[c] : e.discount_all) : 1.0, total = 0.0;
        with_choice<K>(g, m, i, c, c0, a, x, [&](auto &choice) {
            if (e.mode && e.mode[c] == EXIT) {
                double best;
                total = w[best_exit(choice, g, slot, stride, e.nature_maximises, e.leader, e.leader[s], best)];
                return;
            }
            choice.distribution(m, c, e.nature_maximises);
            for (int j = 0; j < choice.k(); j++)
                if (choice.mass[j] > 0.0) total += choice.mass[j] * w[g.successor[slot + j * stride]];
        });
        double now = reference[s] + scale * total;
        out[s] = now;
        worst = greater_of(worst, relative_change(w[s], now, 1e-300));
    }
    raise(change, worst);
}

// Phi(values) of every active state into out, every error of rounding on the side of `upward`.
template <int K>
__global__ void safe_states(
    const Model m, const System e, const Segment g, const double *values, bool upward, double *out
) {
    for EACH(i, g.states) {
        int s = state_of(g, i);
        if (e.active && !e.active[s]) continue;
        Offset c0 = m.choice_start[s];
        double best = e.agent_maximises ? -INFINITE : INFINITE, value;
        int count = choices_of<K>(g, m, s);
        for (int a = 0; a < count; a++)
            if (choice_value<K>(g, m, e, i, s, c0, a, values, true, upward, value))
                best = e.agent_maximises ? greater_of(best, value) : lesser(best, value);
        out[s] = best;
    }
}

// Phi_c(values) of every choice, modes aside.
template <int K>
__global__ void safe_choices(
    const Model m, const System e, const Segment g, const double *values, bool upward, double *out
) {
    for EACH(i, g.states) {
        Offset s = state_of(g, i), c0 = m.choice_start[s];
        int count = choices_of<K>(g, m, s);
        for (int a = 0; a < count; a++)
            with_choice<K>(g, m, i, c0 + a, c0, a, values, [&](auto &choice) {
                double x = choice.safe_value(m, c0 + a, e.nature_maximises, upward);
                out[c0 + a] = safe_step(e, c0 + a, x, upward);
            });
    }
}

// Both bounds of the rows in `select`, whose successors are all done, and the choice that attains the agent's.
template <int K>
__global__ void backward(
    const Model m, const System e, const Segment g, const int *select, Offset count, double *low,
    double *high, Offset *policy
) {
    for EACH(at, count) {
        Offset i = select[at], s = state_of(g, i), c0 = m.choice_start[s];
        double nothing = e.agent_maximises ? -INFINITE : INFINITE, best_low = nothing, best_high = nothing, a_low, a_high;
        int choices = choices_of<K>(g, m, s), taken = -1;
        for (int a = 0; a < choices; a++) {
            if (!choice_value<K>(g, m, e, i, s, c0, a, low, true, false, a_low)) continue;
            choice_value<K>(g, m, e, i, s, c0, a, high, true, true, a_high);
            if (e.agent_maximises) {
                if (taken < 0 || a_low > best_low) best_low = a_low, taken = a;
                best_high = greater_of(best_high, a_high);
            } else {
                best_low = lesser(best_low, a_low);
                if (taken < 0 || a_high < best_high) best_high = a_high, taken = a;
            }
        }
        bool widen = e.slack > 0.0 && (!RECTANGULAR || best_low < best_high);
        if (widen && isfinite(best_low)) best_low = greater_of(best_low - e.slack * fabs(best_low), e.floor);
        if (widen && isfinite(best_high)) best_high = lesser(best_high + e.slack * fabs(best_high), e.ceiling);
        low[s] = best_low;
        high[s] = best_high;
        policy[s] = taken < 0 ? -1 : c0 + taken;
    }
}

// What a certificate needs of both bounds at once, over the enabled choices of every state: whether low <= Phi(low) and
// Phi(high) <= high, rounded against the claim; the agent's first best choice; and for every choice whether it attains
// the owners' bound, and whether it exceeds it.
template <int K>
__global__ void judge(
    const Model m, const System e, const Segment g, const double *low, const double *high, const Flag *enabled,
    bool owners_maximise, Flag *low_holds, Flag *high_holds, Offset *policy, Flag *good, Flag *slack
) {
    for EACH(i, g.states) {
        int s = state_of(g, i), taken = -1;
        Offset c0 = m.choice_start[s];
        double nothing = e.agent_maximises ? -INFINITE : INFINITE, best_low = nothing, best_high = nothing;
        double required = owners_maximise ? low[s] : high[s];
        int count = choices_of<K>(g, m, s);
        for (int a = 0; a < count; a++) {
            Offset c = c0 + a;
            bool open = !enabled || enabled[c];
            double a_low = 0.0, a_high = 0.0;
            if (open) {
                with_choice<K>(g, m, i, c, c0, a, low, [&](auto &choice) {
                    a_low = safe_step(e, c, choice.safe_value(m, c, e.nature_maximises, false), false);
                });
                with_choice<K>(g, m, i, c, c0, a, high, [&](auto &choice) {
                    a_high = safe_step(e, c, choice.safe_value(m, c, e.nature_maximises, true), true);
                });
                if (e.agent_maximises) {
                    if (taken < 0 || a_low > best_low) best_low = a_low, taken = a;
                    best_high = greater_of(best_high, a_high);
                } else {
                    best_low = lesser(best_low, a_low);
                    if (taken < 0 || a_high < best_high) best_high = a_high, taken = a;
                }
            }
            double each = owners_maximise ? a_low : a_high;
            good[c] = open && (owners_maximise ? each >= required : each <= required);
            slack[c] = open && (owners_maximise ? each > required : each < required);
        }
        low_holds[s] = best_low >= low[s];
        high_holds[s] = best_high <= high[s];
        policy[s] = c0 + taken;
    }
}

// Nature's optimal distribution at every choice.
template <int K>
__global__ void answers(
    const Model m, const Segment g, const double *values, bool maximise, double *out
) {
    for EACH(i, g.states) {
        Offset s = state_of(g, i), c0 = m.choice_start[s];
        int count = choices_of<K>(g, m, s);
        for (int a = 0; a < count; a++)
            with_choice<K>(g, m, i, c0 + a, c0, a, values, [&](auto &choice) {
                choice.distribution(m, c0 + a, maximise);
                for (int j = 0; j < choice.k(); j++) out[m.transition_start[c0 + a] + j] = choice.mass[j];
            });
    }
}

// Transitions of some optimal answer: those with mass, and over intervals those that tie with the pivot. At choices with
// `slack`, if given, any answer will do.
template <int K>
__global__ void optimal(
    const Model m, const Segment g, const double *values, bool maximise, const Flag *slack, Flag *out
) {
    for EACH(i, g.states) {
        Offset s = state_of(g, i), c0 = m.choice_start[s];
        int count = choices_of<K>(g, m, s);
        for (int a = 0; a < count; a++)
            with_choice<K>(g, m, i, c0 + a, c0, a, values, [&](auto &choice) {
                bool joint = RECTANGULAR && (!m.joint || m.joint[c0 + a]);
                int pivot = -1;
                double tie = 0.0;
                if (joint) choice.distribution(m, c0 + a, maximise);
                else pivot = choice.spread_exactly(maximise);
                bool leaves = choice.leaves(0);
                for (int j = 0; j < choice.k(); j++)
                    if (j == pivot) tie = choice.x[j];
                for (int j = 0; j < choice.k(); j++) {
                    bool best = choice.mass[j] > 0.0 || (pivot >= 0 && choice.x[j] == tie) || (slack && slack[c0 + a]);
                    out[m.transition_start[c0 + a] + j] = best && choice.possible(j, leaves, 0);
                }
            });
    }
}

// ------------------------------------------------------------------------------------------------ groups and vectors

// Members of a group get its best value; `keep`, if given, is -1 for all but the member it came from. With `by_keep`
// the value is that of the member kept before.
__global__ void join(
    Offset groups, const Offset *group_start, const int *member, double *values, int *keep, bool maximise, bool by_keep
) {
    for EACH(h, groups) {
        Offset first = group_start[h], best = first;
        for (Offset i = first; i < group_start[h + 1]; i++) {
            double x = values[member[i]], y = values[member[best]];
            if (by_keep ? keep[member[i]] >= 0 : (maximise ? x > y : x < y)) best = i;
        }
        double x = values[member[best]];
        for (Offset i = first; i < group_start[h + 1]; i++) {
            values[member[i]] = x;
            if (keep && i != best) keep[member[i]] = -1;
        }
    }
}

__global__ void largest_change(
    Offset states, const Flag *active, const double *x, const double *y, double unit, unsigned long long *change
) {
    double worst = 0.0;
    for EACH(s, states)
        if (!active || active[s]) worst = greater_of(worst, relative_change(x[s], y[s], unit));
    raise(change, worst);
}

// ------------------------------------------------------------------------------------------------ the graph

// Whether nature lets, or has to let, a choice enter / keep to a set; tightrope.model.graph.support says why.
template <class C, class In>
__device__ inline bool must_enter(C &choice, const Flag *kept, In inside) {
    bool leaves = choice.leaves(kept), enters = false, sure = false;
    for (int j = 0; j < choice.k(); j++)
        if (choice.possible(j, leaves, kept) && inside(j)) enters = true, sure = sure || choice.low[j] > 0.0;
    if (sure || !enters) return sure;
    return !choice.reaches_one(
        [&](int j) { return choice.possible(j, leaves, kept) && !inside(j) ? choice.high[j] : 0.0; }
    );
}
template <class C, class In>
__device__ inline bool can_stay(C &choice, const Flag *kept, In inside) {
    bool leaves = choice.leaves(kept), leaks = false, forced = false;
    for (int j = 0; j < choice.k(); j++)
        if (choice.possible(j, leaves, kept) && !inside(j)) leaks = true, forced = forced || choice.low[j] > 0.0;
    if (forced || !leaks) return !forced;
    return choice.reaches_one(
        [&](int j) { return choice.possible(j, leaves, kept) && inside(j) ? choice.high[j] : 0.0; }
    );
}
template <class C, class In>
__device__ inline bool some_in(C &choice, const Flag *kept, In inside) {
    bool leaves = choice.leaves(kept), found = false;
    for (int j = 0; j < choice.k(); j++) found = found || (choice.possible(j, leaves, kept) && inside(j));
    return found;
}

// Round `round` of an attraction: level[s] is the round in which s was drawn, -1 before. changed is set where one was.
template <int K>
__global__ void attract(
    const Model m, const Segment g, const Flag *kept, const Flag *within_set, const Flag *open,
    bool agent_joins, bool nature_joins, int round, int *level, Offset *witness, int *changed
) {
    for EACH(i, g.states) {
        int s = state_of(g, i);
        if (level[s] >= 0 || !within_set[s]) continue;
        Offset c0 = m.choice_start[s], through = -1;
        int count = choices_of<K>(g, m, s);
        bool all = true;
        for (int a = 0; a < count && !(agent_joins && through >= 0) && all; a++) {
            Offset c = c0 + a, stride;
            if (!open[c]) continue;
            Offset slot = slots_of<K>(g, m, i, c, c0, a, stride);
            const Flag *mask = kept ? kept + m.transition_start[c] : 0;
            bool enters = false;
            with_choice<K>(g, m, i, c, c0, a, 0, [&](auto &choice) {
                auto inside = [&](int j) {
                    int before = level[g.successor[slot + j * stride]];
                    return before >= 0 && before < round;
                };
                enters = nature_joins ? some_in(choice, mask, inside) : must_enter(choice, mask, inside);
            });
            if (enters) through = c;
            else if (!agent_joins) all = false;
        }
        if (through >= 0 && all) {
            level[s] = round;
            witness[s] = through;
            *changed = 1;
        }
    }
}

// One round of the greatest set in which a play can be kept: closes choices, removes states. Any order ends the same.
template <int K>
__global__ void settle(
    const Model m, const Segment g, const Flag *kept, const Flag *exempt, bool agent_joins,
    bool nature_joins, Flag *within_set, Flag *open, int *changed
) {
    for EACH(i, g.states) {
        int s = state_of(g, i);
        if (!within_set[s] || exempt[s]) continue;
        Offset c0 = m.choice_start[s];
        int count = choices_of<K>(g, m, s), left = 0;
        bool closed = false;
        for (int a = 0; a < count; a++) {
            Offset c = c0 + a, stride;
            if (!open[c]) continue;
            Offset slot = slots_of<K>(g, m, i, c, c0, a, stride);
            const Flag *mask = kept ? kept + m.transition_start[c] : 0;
            bool keeps = false;
            with_choice<K>(g, m, i, c, c0, a, 0, [&](auto &choice) {
                auto inside = [&](int j) { return within_set[g.successor[slot + j * stride]] != 0; };
                auto outside = [&](int j) { return !inside(j); };
                keeps = nature_joins ? can_stay(choice, mask, inside) : !some_in(choice, mask, outside);
            });
            if (keeps) left++;
            else open[c] = 0, closed = true;
        }
        if (left == 0 || (!agent_joins && closed)) {
            within_set[s] = 0;
            *changed = 1;
        }
    }
}

// One round of the greatest subset of `inside` where those who avoid enter `found` or stay inside surely.
template <int K>
__global__ void keep_or_sink(
    const Model m, const Segment g, const Flag *kept, const Flag *open, bool agent_avoids,
    bool nature_avoids, const Flag *found, Flag *inside_set, Offset *witness, int *changed
) {
    for EACH(i, g.states) {
        int s = state_of(g, i);
        if (!inside_set[s] || found[s]) continue;
        Offset c0 = m.choice_start[s];
        int count = choices_of<K>(g, m, s);
        bool all = true, some = false;
        for (int a = 0; a < count; a++) {
            Offset c = c0 + a, stride;
            if (!open[c]) continue;
            Offset slot = slots_of<K>(g, m, i, c, c0, a, stride);
            const Flag *mask = kept ? kept + m.transition_start[c] : 0;
            bool good = false;
            with_choice<K>(g, m, i, c, c0, a, 0, [&](auto &choice) {
                auto in = [&](int j) { return inside_set[g.successor[slot + j * stride]] != 0; };
                auto out = [&](int j) { return !in(j); };
                auto sunk = [&](int j) { return found[g.successor[slot + j * stride]] != 0; };
                good = nature_avoids ? can_stay(choice, mask, in) || some_in(choice, mask, sunk)
                                     : must_enter(choice, mask, sunk) || !some_in(choice, mask, out);
            });
            if (good && agent_avoids && !some) witness[s] = c;
            some = some || good;
            all = all && good;
        }
        if (agent_avoids ? !some : !all) {
            inside_set[s] = 0;
            *changed = 1;
        }
    }
}

// States whose open choices lead nowhere else.
template <int K>
__global__ void only_loops(const Model m, const Segment g, const Flag *open, Flag *out) {
    for EACH(i, g.states) {
        Offset s = state_of(g, i), c0 = m.choice_start[s];
        int count = choices_of<K>(g, m, s);
        bool leaves = false;
        for (int a = 0; a < count && !leaves; a++) {
            Offset c = c0 + a, stride;
            if (!open[c]) continue;
            Offset slot = slots_of<K>(g, m, i, c, c0, a, stride);
            with_choice<K>(g, m, i, c, c0, a, 0, [&](auto &choice) {
                leaves = some_in(choice, 0, [&](int j) { return (Offset)g.successor[slot + j * stride] != s; });
            });
        }
        out[s] = !leaves;
    }
}

// Round `round` of finding the acyclic part: a state is done once all it can move to were done before.
template <int K>
__global__ void peel(
    const Model m, const Segment g, const Flag *open, int round, int *level, int *changed
) {
    for EACH(i, g.states) {
        int s = state_of(g, i);
        if (level[s] >= 0) continue;
        Offset c0 = m.choice_start[s];
        int count = choices_of<K>(g, m, s);
        bool waits = false;
        for (int a = 0; a < count && !waits; a++) {
            Offset c = c0 + a, stride;
            if (!open[c]) continue;
            Offset slot = slots_of<K>(g, m, i, c, c0, a, stride);
            with_choice<K>(g, m, i, c, c0, a, 0, [&](auto &choice) {
                waits = some_in(choice, 0, [&](int j) {
                    int before = level[g.successor[slot + j * stride]];
                    return before < 0 || before >= round;
                });
            });
        }
        if (!waits) {
            level[s] = round;
            *changed = 1;
        }
    }
}
