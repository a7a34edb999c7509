/* Hierarchical clustering by Ward's method. Every row begins as a cluster of its own. In
 * each step, the two clusters are joined whose union increases the sum of squares within clusters
 * least. For clusters of a and b rows whose means are x and y, the increase is
 *
 *     d(a, b) = a b / (a + b) |x - y|^2
 *
 * and after joining a and b, for any other cluster c (Lance and Williams, 1967),
 *
 *     d(ab, c) = ((a + c) d(a, c) + (b + c) d(b, c) - c d(a, b)) / (a + b + c)
 *
 * The cluster with the higher mean comes first, so the order runs from high to low as far as
 * neighbours stay similar. The clusters that are left when n_groups remain are the groups. The
 * cost is n^3: for the rows of a picture. */
#include "plot/row_groups.h"
#include "base/memory.h"
#include <math.h>

struct cluster {
    size_t first, last, n; /* rows, linked by `next` */
    double mean;
    bool joined; /* to another */
};

struct clusters {
    struct cluster *list;
    size_t *next, n;
    double *d; /* n x n */
};

static void start(struct clusters *clusters, const double *rows, size_t n_columns)
{
    const size_t n = clusters->n;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t c = 0; c < n_columns; c++)
            sum += rows[i * n_columns + c];
        clusters->list[i] = (struct cluster){i, i, 1, sum / (double)n_columns, false};
        for (size_t j = 0; j < n; j++) {
            double square = 0;
            for (size_t c = 0; c < n_columns; c++) {
                const double apart = rows[i * n_columns + c] - rows[j * n_columns + c];
                square += apart * apart;
            }
            clusters->d[i * n + j] = square / 2;
        }
    }
}

static void join(struct clusters *clusters, size_t a, size_t b)
{
    const size_t n = clusters->n;
    double *d = clusters->d;
    struct cluster *x = &clusters->list[a], *y = &clusters->list[b];
    const double na = (double)x->n, nb = (double)y->n;
    for (size_t c = 0; c < n; c++) {
        const double nc = (double)clusters->list[c].n;
        if (c == a || c == b || clusters->list[c].joined)
            continue;
        d[a * n + c] = d[c * n + a] =
            ((na + nc) * d[a * n + c] + (nb + nc) * d[b * n + c] - nc * d[a * n + b]) /
            (na + nb + nc);
    }
    const bool x_first = x->mean >= y->mean;
    const struct cluster high = x_first ? *x : *y, low = x_first ? *y : *x;
    clusters->next[high.last] = low.first;
    *x = (struct cluster){high.first, low.last, x->n + y->n,
                          (na * x->mean + nb * y->mean) / (na + nb), false};
    y->joined = true;
}

static void join_nearest(struct clusters *clusters)
{
    double least = INFINITY;
    size_t a = 0, b = 0;
    for (size_t i = 0; i < clusters->n; i++)
        for (size_t j = i + 1; j < clusters->n && !clusters->list[i].joined; j++)
            if (!clusters->list[j].joined && clusters->d[i * clusters->n + j] < least) {
                least = clusters->d[i * clusters->n + j];
                a = i;
                b = j;
            }
    join(clusters, a, b);
}

void row_groups_order(const double *rows, size_t n, size_t n_columns, size_t n_groups,
                      size_t *order, bool *begins)
{
    struct clusters clusters = {.list = NEW(struct cluster, n),
                                .next = NEW(size_t, n),
                                .n = n,
                                .d = NEW_SCRATCH(double, n *n)};
    bool *leads = NEW(bool, n); /* by row */
    start(&clusters, rows, n_columns);
    for (size_t left = n; left > 0; left--) {
        for (size_t i = 0; i < n && left == size_min(n, n_groups); i++)
            leads[clusters.list[i].first] |= !clusters.list[i].joined;
        if (left > 1)
            join_nearest(&clusters);
    }
    size_t row = n > 0 ? clusters.list[0].first : 0;
    for (size_t i = 0; i < n; i++, row = clusters.next[row]) {
        order[i] = row;
        begins[i] = leads[row];
    }
    memory_free(leads);
    memory_free(clusters.list);
    memory_free(clusters.next);
    memory_free(clusters.d);
}
