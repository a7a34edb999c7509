/* Element-wise kernels of recurrent cells. */
#ifndef COHORT_RNN_CELLS_H
#define COHORT_RNN_CELLS_H

#include "base/base.h"

/* For n students at once. Rows have `width` numbers (a multiple of WIDTH), or `width` per gate
 * in z, whose gates are side by side. c' and h' are those of the previous step, *_before in the
 * code.
 *
 *     rnn     h = tanh(z)
 *
 *     lstm    z = (i, f, o, g)
 *             c = sigma(f) c' + sigma(i) tanh(g)
 *             h = sigma(o) tanh(c)
 *
 *     gru     z = (r, u, n), where n contains W (sigma(r) h')
 *             h = sigma(u) h' + (1 - sigma(u)) tanh(n)
 *
 * Forward functions replace the gates' inputs in z by their values. Backward functions replace
 * these by the derivatives of the loss with respect to the inputs; dh is the full derivative
 * with respect to h.
 *
 * The gru has two halves, since n depends on r:
 *
 *     forward     gru_gates        gated = sigma(r) h'
 *                 the caller       n += W gated
 *                 gru_forward      h
 *     backward    gru_candidate    derivatives of u and n, first part of dh'
 *                 the caller       d_gated from the derivative of n
 *                 gru_reset        derivative of r, rest of dh' */
struct rnn_cells_table {
    void (*rnn_forward)(size_t n, size_t width, real *z, real *h);
    void (*rnn_backward)(size_t n, size_t width, const real *dh, real *z);
    void (*lstm_forward)(size_t n, size_t width, real *z, const real *c_before, real *c,
                         real *h);
    void (*lstm_backward)(size_t n, size_t width, const real *dh, const real *c_before,
                          const real *c, real *z, real *dc);
    void (*gru_gates)(size_t n, size_t width, real *z, const real *h_before, real *gated);
    void (*gru_forward)(size_t n, size_t width, real *z, const real *h_before, real *h);
    void (*gru_candidate)(size_t n, size_t width, const real *dh, const real *h_before, real *z,
                          real *dh_before);
    void (*gru_reset)(size_t n, size_t width, const real *d_gated, const real *h_before,
                      real *z, real *dh_before);

    /* z += h W for one row: h has n numbers, rows of W are `stride` apart and are added one by
     * one. */
    void (*combine)(const real *h, size_t n, const real *w, size_t stride, real *z,
                    size_t n_columns);
    /* a . b, and b += scale a; n is a multiple of WIDTH. */
    real (*dot)(const real *a, const real *b, size_t n);
    void (*add)(real scale, const real *a, real *b, size_t n);
};
extern const struct rnn_cells_table *rnn_cells;

#endif
