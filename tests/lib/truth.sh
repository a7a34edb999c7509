# shellcheck shell=bash
# Classes simulated by awk, with known truth, and awk's comparison with it: for tests of `cohort inspect --truth`, after
# lib.sh.

# rasch_class STUDENTS ITEMS SEED: writes $TMP/rasch.csv, a matrix of answers with logit P = theta - b, a fifth of them
# missing, and the truth in $TMP/rasch_theta.csv and $TMP/rasch_b.csv, one line per student and per item.
rasch_class() {
    awk -v n="$1" -v m="$2" -v seed="$3" -v to="$TMP/rasch" '
        function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand()) }
        BEGIN {
            srand(seed)
            for (i = 1; i <= m; i++) { b[i] = normal(); printf "%.9f\n", b[i] >(to "_b.csv") }
            for (s = 1; s <= n; s++) {
                theta = normal()
                printf "%.9f\n", theta >(to "_theta.csv")
                for (i = 1; i <= m; i++) {
                    right = rand() < 1 / (1 + exp(b[i] - theta))
                    printf "%s%s", rand() < 0.2 ? "" : right, i < m ? "," : "\n" >(to ".csv")
                }
            }
        }'
}

# expect_beside ENTRY TRUTH ESTIMATES: tests that n, correlation, RMSE and bias of `truth ENTRY` in the last command's
# JSON are those that awk computes. TRUTH has one number per line; ESTIMATES has lines LINE,NUMBER.
expect_beside() {
    local entry=$1 n r rmse bias
    read -r n r rmse bias < <(awk -F, 'NR == FNR { truth[FNR] = $1; next }
        { n++; x[n] = truth[$1]; y[n] = $2; mx += x[n]; my += $2 }
        END { mx /= n; my /= n
            for (k = 1; k <= n; k++) { xy += (x[k] - mx) * (y[k] - my); xx += (x[k] - mx) ^ 2; yy += (y[k] - my) ^ 2
                squares += (y[k] - x[k]) ^ 2 }
            printf "%d %.9f %.9f %.9f\n", n, xy / sqrt(xx * yy), sqrt(squares / n), my - mx }' "$2" "$3")
    expect_number "truth $entry n" "==" "$n"
    local key expected
    for key in correlation rmse bias; do
        case $key in correlation) expected=$r ;; rmse) expected=$rmse ;; bias) expected=$bias ;; esac
        check "$(json truth "$entry" name) of $(json truth "$entry" of): $key $(json truth "$entry" $key), awk has $expected" \
            awk -v a="$(json truth "$entry" $key)" -v b="$expected" 'BEGIN { exit !(a != "" && (a - b) ^ 2 < 1e-10) }'
    done
}
