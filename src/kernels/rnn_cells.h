/* The element-by-element part of recurrent cells. */
#ifndef COHORT_RNN_CELLS_H
#define COHORT_RNN_CELLS_H

#include "base/base.h"

/* For n students at once; rows of `width` numbers (a multiple of WIDTH), gates side by side in
 * z. Forward functions replace the gates' inputs in z by their values, backward functions
 * replace those by the derivatives of the loss by the inputs; dh is the derivative by h, all of
 * it.
 *
 *     rnn   h = tanh(z)
 *     lstm  z = (i, f, o, g):  c = sigma(f) c' + sigma(i) tanh(g),  h = sigma(o) tanh(c)
 *     gru   z = (r, u, n):     h = sigma(u) h' + (1 - sigma(u)) tanh(n), n with W (sigma(r) h')
 * in it
 *
 * The gru comes in two halves, since n is known only after r: gru_gates makes gated = sigma(r)
 * h', the caller adds W gated to n, gru_forward does the rest. Backward, gru_candidate gives
 * the derivatives by u and n and begins that by h'; the caller makes d_gated from n's,
 * gru_reset does the rest. */
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

    /* z += h W for one row: h has n numbers, W rows of `stride`; one row of W after the other.
     */
    void (*combine)(const real *h, size_t n, const real *w, size_t stride, real *z,
                    size_t n_columns);
    /* a . b, and b += scale a; n is a multiple of WIDTH. */
    real (*dot)(const real *a, const real *b, size_t n);
    void (*add)(real scale, const real *a, real *b, size_t n);
};
extern const struct rnn_cells_table *rnn_cells;

#endif
