/* The prior of abilities, N(0, Sigma): Sigma = C C^T by Cholesky, W = C^-1, so that
 *
 *     log p(theta) = -1/2 |W theta|^2 + sum_k log W_kk + const
 *     KL(N(m, L L^T) | prior) = 1/2 (|W L|^2 + |W m|^2 - K) - sum_k log W_kk - sum_k log L_kk
 *
 * and for importance sampling log p(theta) - log q(theta) at theta = m + L epsilon, and weights
 * that add up to one. A file of correlations is read when a run starts, and its numbers become
 * part of the settings: neither the run nor a checkpoint needs the file again. */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "models/vae/vae_internal.h"
#include <ctype.h>
#include <math.h>
#include <sleef.h>
#include <stdlib.h>
#include <string.h>

/* Rows end at / or a line's end, numbers at blanks, commas or semicolons. False if the text is
 * something else than numbers. */
static bool next_number(const char **at, double *value, bool *ends_row)
{
    char *end = NULL;
    while (**at != '\0' && strchr(" \t\r,;", **at) != NULL)
        (*at)++;
    *value = strtod(*at, &end);
    if (end == *at || !isfinite(*value))
        return false;
    while (*end != '\0' && strchr(" \t\r,;", *end) != NULL)
        end++;
    *ends_row = *end == '/' || *end == '\n' || *end == '\0';
    while (*end != '\0' && strchr(" \t\r,;/\n", *end) != NULL)
        end++;
    *at = end;
    return true;
}

/* A square matrix of K columns; `values` has room for K x K. */
static enum status read_matrix(const char *text, size_t n_dims, double *values)
{
    size_t n = 0, n_rows = 0, n_columns = 0, in_row = 0;
    bool even = true;
    for (const char *at = text; *at != '\0';) {
        double value = 0;
        bool ends_row = false;
        if (!next_number(&at, &value, &ends_row))
            return fail(BAD_USER,
                        "model.prior_correlation: '%.40s' is not a number; expected a CSV file "
                        "of numbers, or rows as in 1 0.5 / 0.5 1",
                        at);
        if (n < n_dims * n_dims)
            values[n] = value;
        n++;
        in_row++;
        if (ends_row) {
            even &= n_rows == 0 || in_row == n_columns;
            n_columns = in_row;
            in_row = 0;
            n_rows++;
        }
    }
    if (!even || n_rows != n_dims || n_columns != n_dims)
        return fail(BAD_USER,
                    "model.prior_correlation has %zu rows and %zu numbers; the model has %zu "
                    "abilities; expected %zu rows of %zu numbers",
                    n_rows, n, n_dims, n_dims, n_dims);
    return OK;
}

static enum status check_matrix(const double *sigma, size_t n_dims)
{
    for (size_t k = 0; k < n_dims; k++)
        for (size_t j = 0; j <= k; j++) {
            const double here = sigma[k * n_dims + j], there = sigma[j * n_dims + k];
            if (fabs(here - there) > 1e-9)
                return fail(BAD_USER,
                            "model.prior_correlation is not symmetric: %g in row %zu, column "
                            "%zu, but %g in row %zu, column %zu",
                            here, k + 1, j + 1, there, j + 1, k + 1);
            if (j == k && fabs(here - 1) > 1e-9)
                return fail(BAD_USER,
                            "model.prior_correlation has %g in row %zu of its diagonal; "
                            "expected 1, since abilities have unit variance",
                            here, k + 1);
        }
    return OK;
}

/* c, the lower triangular root of sigma; false if there is none. */
static bool find_root(const double *sigma, size_t n, double *c)
{
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j <= k; j++) {
            double rest = sigma[k * n + j];
            for (size_t i = 0; i < j; i++)
                rest -= c[k * n + i] * c[j * n + i];
            if (j < k)
                c[k * n + j] = rest / c[j * n + j];
            else if (rest > 1e-9)
                c[k * n + k] = sqrt(rest);
            else
                return false;
        }
    return true;
}

static void invert(const double *c, size_t n, double *w)
{
    for (size_t j = 0; j < n; j++)
        for (size_t k = j; k < n; k++) {
            double rest = k == j;
            for (size_t i = j; i < k; i++)
                rest -= c[k * n + i] * w[i * n + j];
            w[k * n + j] = rest / c[k * n + k];
        }
}

enum status vae_prior_create(struct vae_prior *prior, const char *text, size_t n_dims)
{
    const size_t n = n_dims;
    *prior = (struct vae_prior){.n_dims = n};
    double *sigma = NEW(double, n *n), *root = NEW(double, n *n);
    for (size_t k = 0; k < n; k++)
        sigma[k * n + k] = 1;
    enum status status = text[0] == '\0' ? OK : read_matrix(text, n, sigma);
    if (status == OK)
        status = check_matrix(sigma, n);
    if (status == OK && !find_root(sigma, n, root))
        status =
            fail(BAD_USER, "model.prior_correlation is not positive definite: no abilities "
                           "can have these correlations; check the numbers");
    if (status == OK) {
        prior->whitening = NEW(double, n *n);
        prior->precision = NEW(double, n *n);
        invert(root, n, prior->whitening);
        const double *w = prior->whitening;
        for (size_t k = 0; k < n; k++) {
            prior->log_det += Sleef_cinz_logd1_u10purec(w[k * n + k]);
            for (size_t j = 0; j < n; j++)
                for (size_t i = 0; i < n; i++)
                    prior->precision[k * n + j] += w[i * n + k] * w[i * n + j];
        }
    }
    memory_free(sigma);
    memory_free(root);
    return status;
}

void vae_prior_free(struct vae_prior *prior)
{
    memory_free(prior->whitening);
    memory_free(prior->precision);
    *prior = (struct vae_prior){0};
}

double vae_prior_kl(const struct vae_prior *prior, const struct vae_posterior *posterior)
{
    const size_t n = prior->n_dims;
    double squares = 0;
    for (size_t k = 0; k < n; k++) {
        const double *w = prior->whitening + k * n;
        double mean = 0;
        for (size_t j = 0; j <= k; j++)
            mean += w[j] * (double)posterior->mean[j];
        squares += mean * mean;
        for (size_t column = 0; column <= k; column++) {
            double spread = 0;
            for (size_t j = column; j <= k; j++)
                spread += w[j] * (double)posterior->root[j * n + column];
            squares += spread * spread;
        }
    }
    return 0.5 * (squares - (double)n) - prior->log_det - posterior->log_det;
}

double vae_log_ratio(const struct vae_prior *prior, const struct vae_posterior *posterior,
                     const real *epsilon, const real *theta)
{
    const size_t n = prior->n_dims;
    double squares = 0;
    for (size_t k = 0; k < n; k++) {
        double white = 0;
        for (size_t j = 0; j <= k; j++)
            white += prior->whitening[k * n + j] * (double)theta[j];
        squares += white * white - (double)epsilon[k] * (double)epsilon[k];
    }
    return -0.5 * squares + prior->log_det + posterior->log_det;
}

double vae_normalize(double *log_weight, size_t n)
{
    double most = log_weight[0], sum = 0;
    for (size_t s = 1; s < n; s++)
        most = fmax(most, log_weight[s]);
    for (size_t s = 0; s < n; s++)
        sum += log_weight[s] = Sleef_cinz_expd1_u10purec(log_weight[s] - most);
    for (size_t s = 0; s < n; s++)
        log_weight[s] /= sum;
    return most + Sleef_cinz_logd1_u10purec(sum / (double)n);
}

static bool is_numbers(const char *text)
{
    double value = 0;
    bool ends_row = false;
    return next_number(&text, &value, &ends_row) &&
           (ends_row || next_number(&text, &value, &ends_row));
}

enum status vae_prior_prepare(struct config *config)
{
    const char *given = config_get(config, "model", "prior_correlation");
    if (given == NULL || given[0] == '\0' || is_numbers(given))
        return OK;
    char *text = NULL;
    size_t n_bytes = 0;
    enum status status = file_read(given, &text, &n_bytes);
    if (status != OK)
        return fail_context(status, "model.prior_correlation");
    while (n_bytes > 0 && isspace((unsigned char)text[n_bytes - 1]))
        text[--n_bytes] = '\0';
    char *setting = NULL;
    FILE *out = memory_stream(&setting, &n_bytes);
    fputs("model.prior_correlation=", out);
    for (const char *at = text; *at != '\0'; at++)
        if (*at == '\n')
            fputs(" / ", out);
        else if (*at != '\r')
            fputc(*at == ',' || *at == ';' || *at == '\t' ? ' ' : *at, out);
    fclose(out);
    status = config_set(config, setting, given);
    free(setting);
    memory_free(text);
    return status;
}
