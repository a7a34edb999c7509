#!/bin/bash
# evaluate, predict, inspect, export, verify, doctor and help: their output against independent computations, the same
# bytes at any number of ranks, and an error message for all wrong input.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70

quick=(model.kind=rbm model.preset=binomial model.hidden=4 train.epochs=3 train.seed=7 train.batch=60 train.block=6 optimizer.rate=0.003)

# on N COMMAND...: like ranks, but one rank runs without mpirun.
on() { if [ "$1" = 1 ]; then "${@:2}"; else ranks "$@"; fi; }

# near A B: whether two numbers agree to about seven digits.
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d * d <= 1e-12) }'; }

# parses FILE: whether it is exactly one JSON value.
parses() {
    if python3 -c '' 2>/dev/null; then
        python3 -m json.tool "$1" >/dev/null
    else
        [ "$(head -c1 "$1")" = "{" ] && [ "$(tail -c2 "$1")" = "}" ]
    fi
}

# damage FILE OFFSET COPY: a copy with one byte changed.
damage() {
    cp "$1" "$3"
    local old
    old=$(od -An -tu1 -j "$2" -N1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %x $((old ^ 16)))" | dd of="$3" bs=1 seek="$2" conv=notrunc status=none
}

# An answer log with difficult content: names with commas, quotes and blanks, groups, times, skills, unknown outcomes.
awk 'BEGIN {
    print "who;what;how;when;topic;needs"
    for (s = 1; s <= 120; s++)
        for (t = 1; t <= 12; t++) {
            i = (s * 7 + t * 5) % 16 + 1
            y = (s * 13 + t * 31 + i * i) % 17 % 3 > 0 ? 1 : 0
            if ((s + t) % 19 == 0) y = ""
            who = s == 3 ? "\"O\"\"Hara, Kim\"" : s == 4 ? "\"two  words\"" : "pupil " s
            what = i == 5 ? "\"5 \"\"five\"\"\"" : "q" i
            print who ";" what ";" y ";" 1000 * s + t ";" (i % 4 == 0 ? "" : "topic " i % 4) ";" "k" i % 3
        }
}' >log.csv
expect_status 0 "$COHORT" import csv log.csv --delimiter semicolon --student who --item what --outcome how \
    --time when --group topic --skills needs --split by-student=60/20/20 -o log.h5
expect_status 0 "$COHORT" simulate irt --students 240 --items 20 --skills 2 --seed 1 -o class.h5
expect_status 0 "$COHORT" train data=class.h5 run=irt "${quick[@]}"
expect_status 0 ranks 2 "$COHORT" train data=log.h5 run=log "${quick[@]}"

section "evaluate: the same JSON at 1, 2, 3 and 5 ranks"
for n in 1 2 3 5; do
    expect_status 0 on $n "$COHORT" evaluate irt --json --confidence 50 --calibration --groups
    output >"eval$n.json"
done
expect_same eval1.json eval2.json eval3.json eval5.json
check "one JSON object" parses eval1.json
for key in n cbd log_loss auc accuracy rmse calibration_error; do
    check "$key" test -n "$(json_of eval1.json $key)"
    check "skip_first $key" test -n "$(json_of eval1.json skip_first $key)"
    check "item_mean $key" test -n "$(json_of eval1.json item_mean $key)"
done
expect_status 0 "$COHORT" evaluate irt --json
expect_equal "" "$(errors)" "talk beside --json"
expect_number n == 480
expect_number "skip_first n" == 456
expect_number "skip_first students" == 24
expect_number auc ">" 0.55
for key in auc cbd calibration_error; do
    check "interval of $key" awk -v a="$(json_of eval1.json interval low $key)" -v b="$(json $key)" \
        -v c="$(json_of eval1.json interval high $key)" 'BEGIN { exit !(a < b && b < c) }'
done
expect_equal 480 "$(for b in $(seq 0 14); do json_of eval1.json calibration "$b" n; done | awk '{ n += $1 } END { print n }')" \
    "attempts in all bins"

section "evaluate: the scores printed by train"
for key in n auc cbd log_loss; do
    check "$key" near "$(json_of eval1.json $key)" "$(json_of irt/result.json test $key)"
done

section "evaluate: output formats"
expect_status 0 "$COHORT" evaluate irt
expect_match '^rbm, all +480 +24 +0\.'
expect_match '^rbm, excluding first attempts +456 +24 '
expect_match '^item mean, all +480 '
expect_status 0 "$COHORT" evaluate irt --skip-first --json
expect_number n == 456
expect_equal "$(json_of eval1.json skip_first auc)" "$(json auc)" "AUC without first attempts"
expect_status 0 "$COHORT" evaluate irt/last.h5 --split all --json
expect_number n == 4800
expect_status 0 "$COHORT" evaluate irt/best.h5 --split valid --json
expect_number n == 480
expect_equal valid "$(json split)" "split"
expect_status 0 "$COHORT" evaluate log --groups --json
expect_equal "$(json n)" "$(for g in 0 1 2 3; do json groups $g n; done | awk '{ n += $1 } END { print n }')" \
    "attempts in all groups"
expect_equal "null topic 1 topic 2 topic 3" "$(for g in 0 1 2 3; do json groups $g group; done | xargs)" "groups"
expect_status 0 "$COHORT" evaluate log --groups
expect_match '^topic 1 +[0-9]+ '
expect_match '^\(no group\) '
expect_status 0 "$COHORT" evaluate irt --groups
expect_match 'have no groups'
expect_status 2 "$COHORT" evaluate
expect_match 'usage: cohort evaluate'
expect_status 2 "$COHORT" evaluate irt --splitt test
expect_match 'did you mean --split'
expect_status 1 "$COHORT" evaluate irt --split tset
expect_match "did you mean 'test'"
expect_status 1 ranks 2 "$COHORT" evaluate nowhere
expect_match 'nowhere: No such file'
mkdir empty
expect_status 1 "$COHORT" evaluate empty
expect_match 'no checkpoint in this directory'
expect_status 3 ranks 2 "$COHORT" evaluate class.h5
expect_match 'class.h5: not a checkpoint but some other HDF5 file, such as a data set'

section "predict: the same bytes at 1 and 3 ranks"
for n in 1 3; do
    expect_status 0 on $n "$COHORT" predict irt -o "irt$n.csv"
    expect_status 0 on $n "$COHORT" predict irt -o "irt$n.h5" --split test
    expect_status 0 on $n "$COHORT" predict log -o "log$n.csv"
    expect_status 0 on $n "$COHORT" predict log -o "log$n.h5"
done
expect_same irt1.csv irt3.csv
expect_same irt1.h5 irt3.h5
expect_same log1.csv log3.csv
expect_same log1.h5 log3.h5
expect_equal "student,item,time,outcome,probability,split,basis,row" "$(head -1 log1.csv)" "first line"
expect_equal 4801 "$(wc -l <irt1.csv)" "lines"
expect_equal 1441 "$(wc -l <log1.csv)" "lines"
expect_match '^"O""Hara, Kim",(q|"5)' log1.csv
expect_match '^[^,"]+,"5 ""five""",[0-9]+,[01]?,0\.' log1.csv
expect_match '^pupil 7,q[0-9]+,70[0-9][0-9],,0\.' log1.csv
expect_match '^student-[0-9]+,item-[0-9]+,,[01],0\.' irt1.csv
expect_equal 12 "$(grep -c '^two  words,' log1.csv)" "attempts of a student with blanks in the name"

section "predict and evaluate agree"
expect_status 0 "$COHORT" predict irt --split test -o test.csv
check "log-loss worked out from the probabilities" near "$(json_of eval1.json log_loss)" "$(awk -F, 'NR > 1 {
    sum -= log($4 == 1 ? $5 : 1 - $5); n++ } END { printf "%.9f", sum / n }' test.csv)"
expect_status 0 "$COHORT" predict irt --split train -o train.csv
check "item mean worked out from the answers" near "$(json_of eval1.json item_mean log_loss)" "$(awk -F, '
    FNR == 1 { next }
    NR == FNR { n[$2]++; right[$2] += $4; next }
    { p = (right[$2] + 1) / (n[$2] + 2); sum -= log($4 == 1 ? p : 1 - p); m++ }
    END { printf "%.9f", sum / m }' train.csv test.csv)"
check "area under the curve worked out from the probabilities" near "$(json_of eval1.json auc)" "$(
    tail -n +2 test.csv | sort -t, -k5,5g | awk -F, '
        function close_tie() { pairs += c * (below + w / 2); below += w; c = w = 0 }
        $5 != last { close_tie(); last = $5 }
        $4 == 1 { c++; n1++ } $4 == 0 { w++; n0++ }
        END { close_tie(); printf "%.9f", pairs / (n1 * n0) }')"

section "predict: wrong input"
expect_status 2 "$COHORT" predict irt
expect_match 'no output; name the '
expect_status 2 "$COHORT" predict -o x.csv
expect_status 1 ranks 2 "$COHORT" predict irt -o missing/p.csv
expect_match 'predict: -o missing/p.csv: there is no directory missing; create it first'
expect_status 1 ranks 2 "$COHORT" predict irt -o missing/p.h5
expect_match 'missing/p.h5'

section "another data set: items are matched by name"
expect_status 0 "$COHORT" simulate irt --students 50 --items 20 --skills 2 --seed 2 -o new.h5
for n in 1 3; do
    expect_status 0 on $n "$COHORT" evaluate irt --data new.h5 --split all --json
    expect_match 'note: new.h5 is not the data set'
    output >"new$n.json"
    expect_status 0 on $n "$COHORT" predict irt --data new.h5 -o "new$n.csv"
done
expect_same new1.json new3.json
expect_same new1.csv new3.csv
expect_equal 1000 "$(json_of new1.json n)" "attempts"
check "item means of the training data" test -n "$(json_of new1.json item_mean auc)"
# Fewer items, in another order: the same students' first answers must have the same predictions.
awk -F, 'NR == 1 || $2 != "item-3"' irt1.csv | cut -d, -f1,2,4 >fewer.csv
expect_status 0 "$COHORT" import csv fewer.csv --student student --item item --outcome outcome --split none \
    -o fewer.h5
expect_status 0 "$COHORT" predict irt --data fewer.h5 -o fewer-p.csv
first() { awk -F, '!($1 in seen) { seen[$1] = 1; if (NR > 1) print $1, $2, $5 }' "$1" | sort; }
first irt1.csv | grep -v ' item-3 ' >first-all
first fewer-p.csv | grep -Ff <(cut -d' ' -f1,2 first-all | sed 's/$/ /') >first-fewer
expect_same first-all first-fewer
check "some of them" test "$(wc -l <first-all)" -gt 200

section "an item never seen in training"
expect_status 0 "$COHORT" simulate irt --students 50 --items 21 --skills 2 --seed 2 -o more.h5
for n in 1 3; do
    expect_status 1 on $n "$COHORT" evaluate irt --data more.h5 --strict
    expect_equal 1 "$(errors | grep -c "item-21' was never seen in training")" "sentences"
    expect_status 1 on $n "$COHORT" predict irt --data more.h5 --strict -o more.csv
    expect_equal 1 "$(errors | grep -c "item-21' was never seen in training")" "sentences"
done
check "nothing written" test ! -e more.csv

section "the data have changed"
mv class.h5 kept.h5
expect_status 1 ranks 2 "$COHORT" evaluate irt
expect_match 'trained on class.h5, which does not exist.*--data'
expect_status 0 "$COHORT" evaluate irt --data kept.h5 --json
expect_equal "$(json_of eval1.json auc)" "$(json auc)" "AUC on the moved file"
expect_status 0 "$COHORT" evaluate irt --data new.h5 --split all --json
expect_equal null "$(json item_mean)" "item mean without the training data"
cp new.h5 class.h5
for n in 1 3; do
    expect_status 1 on $n "$COHORT" evaluate irt
    expect_match 'does not match the checkpoint'
    expect_status 1 on $n "$COHORT" predict irt -o x.csv
    expect_match 'does not match the checkpoint'
done
expect_status 0 "$COHORT" evaluate irt --data class.h5 --split all
mv kept.h5 class.h5
mkdir alone
cp irt/best.h5 alone/best.h5
expect_status 1 "$COHORT" evaluate alone/best.h5
expect_match 'no config.ini next to it.*--data'
expect_status 0 "$COHORT" evaluate alone --data class.h5

section "nothing to score"
expect_status 1 "$COHORT" evaluate irt --data fewer.h5
expect_match 'no attempt with a known outcome is for test; there are [0-9]+ for train: choose with --split'
awk -F, 'NR == 1 { print "student,item,outcome" } NR > 1 { print $1 "," $2 "," }' new1.csv >unknown.csv
expect_status 0 "$COHORT" import csv unknown.csv --student student --item item --outcome outcome -o unknown.h5
expect_status 1 ranks 2 "$COHORT" evaluate irt --data unknown.h5
expect_match 'no attempt has a known outcome'
expect_status 0 ranks 2 "$COHORT" predict irt --data unknown.h5 -o unknown-p.csv
expect_equal 1001 "$(grep -c ',,,0\.\|^student,' unknown-p.csv)" "lines without outcome"
head -1 unknown.csv >one.csv
echo 'nobody,item-1,' >>one.csv
expect_status 0 "$COHORT" import csv one.csv --student student --item item --outcome outcome --split none -o one.h5
expect_status 0 ranks 3 "$COHORT" predict irt --data one.h5 -o one-p.csv
expect_match '^nobody,item-1,,,0\.' one-p.csv
expect_status 1 ranks 3 "$COHORT" predict irt --data one.h5 --split test -o none.csv
expect_match 'no attempts for test'

section "export: the same bytes at 1 and 3 ranks"
for n in 1 3; do
    expect_status 0 on $n "$COHORT" export irt --hidden -o "tensors$n.h5"
    expect_status 0 on $n "$COHORT" export irt --tensor weights -o "weights$n.csv"
    expect_status 0 on $n "$COHORT" export irt --hidden -o "hidden$n.csv"
    expect_status 0 on $n "$COHORT" export log --hidden --data log.h5 -o "tables$n"
done
expect_same tensors1.h5 tensors3.h5
expect_same weights1.csv weights3.csv
expect_same hidden1.csv hidden3.csv
expect_equal "" "$(diff -r tables1 tables3)" "directories of tables"
expect_equal "item,weights_1_1,weights_1_2,weights_1_3,weights_1_4,weights_2_1,weights_2_2,weights_2_3,weights_2_4" \
    "$(head -1 weights1.csv)" "columns"
expect_equal "item-1 item-20 21" "$(awk -F, 'NR == 2 { a = $1 } END { print a, $1, NR }' weights1.csv)" "rows"
expect_equal "student,h1,h2,h3,h4" "$(head -1 hidden1.csv)" "columns of hidden units"
expect_equal 241 "$(wc -l <hidden1.csv)" "students"
check "probabilities" awk -F, 'NR > 1 { for (j = 2; j <= NF; j++) if ($j < 0 || $j > 1) exit 1 }' hidden1.csv
expect_match '^"5 ""five""",' tables1/weights.csv
expect_match '^4,' tables1/hidden_bias.csv
expect_status 0 "$COHORT" export irt -o plain.h5
expect_status 2 "$COHORT" export irt -o one.csv
expect_match 'choose it with --tensor NAME .*or --hidden'
expect_status 2 "$COHORT" export irt
expect_status 1 ranks 2 "$COHORT" export irt --tensor wieghts -o w.csv
expect_match "unknown tensor 'wieghts'; expected one of weights, visible_bias, hidden_bias"
expect_status 74 ranks 2 "$COHORT" export irt -o missing/t.h5

section "inspect: a data set"
expect_status 0 "$COHORT" inspect log.h5 --json
output >inspect.json
check "one JSON object" parses inspect.json
expect_equal "" "$(errors)" "talk beside --json"
expect_number students == 120
expect_number attempts == 1440
expect_number items == 16
expect_number skills == 3
expect_number groups == 3
expect_number unknown == "$(awk -F';' '$3 == ""' log.csv | wc -l)"
check "share correct" near "$(json correct)" \
    "$(awk -F';' 'NR > 1 && $3 != "" { n++; y += $3 } END { print y / n }' log.csv)"
expect_number "time from" == 1001
expect_number "time to" == 120012
expect_number "attempts_per_student median" == 12
expect_equal 1440 $(($(json splits train attempts) + $(json splits valid attempts) + $(json splits test attempts))) \
    "attempts in all splits"
digest=$(json digest)
expect_equal 32 "${#digest}" "length of the digest"
cp log.h5 copy.h5
expect_status 0 ranks 2 "$COHORT" inspect copy.h5 --json
expect_equal "$digest" "$(json digest)" "digest of a copy"
expect_status 0 "$COHORT" inspect log.h5 --items --students 5
expect_match 'a data set'
expect_match '^5 "five" +[0-9]+ +[0-9.]+%  topic 1; k2'
expect_equal 5 "$(output | sed -n '/^student  /,$p' | tail -n +2 | wc -l)" "students listed"
expect_status 0 "$COHORT" inspect class.h5
expect_match 'truth +a \[20, 2\], b \[20\], q \[20, 2\], theta \[240, 2\]'

section "inspect: a checkpoint and a run"
expect_status 0 "$COHORT" inspect irt/best.h5 --json
output >inspect.json
check "one JSON object" parses inspect.json
expect_equal rbm "$(json model)" model
expect_number epoch ">=" 1
expect_number step ">=" 1
expect_number parameters == 204
expect_equal 4 "$(json config model hidden)" "a setting"
expect_equal 7 "$(json config train seed)" "a setting"
expect_equal 32 "$(json digest | tr -d '\n' | wc -c)" "length of the digest"
expect_equal weights "$(json tensors 0 name)" "first tensor"
expect_equal "20 2 4" "$(json tensors 0 shape 0) $(json tensors 0 shape 1) $(json tensors 0 shape 2)" shape
mean=$(tail -n +2 weights1.csv | tr ',' '\n' | awk '/^-?[0-9.]/ { n++; s += $1 } END { print s / n }')
check "mean of the weights" near "$(json tensors 0 mean)" "$mean"
expect_status 0 "$COHORT" inspect irt --json
expect_number epoch == 3
expect_equal finished "$(json state)" state
expect_equal class.h5 "$(json data)" data
expect_equal 3 "$(json log 2 epoch)" "last record of the log"
expect_equal last.h5 "$(json checkpoints 0 file)" "newest checkpoint"
expect_status 0 "$COHORT" inspect irt
expect_match '^  state +finished'
expect_match '^weights +20 x 2 x 4 '
expect_match '^hidden = 4'

section "inspect: other files"
echo 'this is not HDF5' >garbage.h5
: >nothing.h5
for path in garbage.h5 nothing.h5 empty log.csv irt1.h5; do
    expect_status 3 ranks 2 "$COHORT" inspect $path
    expect_match "^cohort: $path: (this|not) "
done
expect_status 1 "$COHORT" inspect nowhere.h5
expect_match 'nowhere.h5: No such file'
expect_status 2 "$COHORT" inspect
expect_status 2 "$COHORT" inspect irt --items

section "verify"
expect_status 0 ranks 2 "$COHORT" verify irt log.h5 class.h5 log/best.h5
irt_files=(irt/*.h5)
expect_equal $((3 + ${#irt_files[@]})) "$(output | grep -c ': ok')" "files in order"
size=$(stat -c %s irt/last.h5)
for k in $(seq 0 15); do damage irt/last.h5 $((size * k / 16 + 3)) "damaged-$k.h5"; done
expect_status 3 "$COHORT" verify damaged-*.h5
expect_equal 16 "$(output | grep -vc ': ok')" "damaged checkpoints found"
expect_match 'verify: 16 of 16 files are damaged'
head -c $((size / 2)) irt/last.h5 >short.h5
expect_status 3 "$COHORT" verify short.h5 irt
expect_match '^short.h5: '
expect_match '^irt/best.h5: ok'
size=$(stat -c %s class.h5)
damage class.h5 $((size / 3)) bad-data.h5
expect_status 3 "$COHORT" verify bad-data.h5
expect_match '^bad-data.h5: '
expect_status 3 "$COHORT" verify garbage.h5
expect_status 1 "$COHORT" verify nowhere.h5 class.h5
expect_match '^class.h5: ok'
expect_status 2 "$COHORT" verify

section "damaged files"
cp -r irt hurt
cp damaged-9.h5 hurt/best.h5
for n in 1 3; do
    expect_status 3 on $n "$COHORT" evaluate hurt --data class.h5
    expect_match 'hurt/best.h5: the checkpoint is damaged'
    expect_status 3 on $n "$COHORT" predict hurt -o x.csv
    expect_status 3 on $n "$COHORT" export hurt -o x.h5
    expect_status 3 on $n "$COHORT" evaluate irt --data bad-data.h5
    expect_match 'bad-data.h5: '
    expect_status 3 on $n "$COHORT" evaluate irt --data garbage.h5
done
check "nothing written" test ! -e x.csv -a ! -e x.h5
expect_status 3 "$COHORT" inspect hurt/best.h5
expect_status 0 "$COHORT" inspect hurt
expect_match '^  best.h5 +damaged: '
expect_status 3 "$COHORT" verify hurt
expect_match '^hurt/last.h5: ok'

section "cross-validation"
expect_status 0 "$COHORT" train data=class.h5 run=cv "${quick[@]}" train.folds=3 train.epochs=1
for n in 1 3; do
    expect_status 0 on $n "$COHORT" evaluate cv/fold-2 --json
    expect_number n == "$(json_of cv/fold-2/result.json test n)"
    check "AUC of a fold" near "$(json auc)" "$(json_of cv/fold-2/result.json test auc)"
done
expect_status 1 "$COHORT" evaluate cv
expect_match 'cross-validation.*cv/fold-1'
expect_status 0 "$COHORT" inspect cv --json
expect_equal cross-validation "$(json kind)" kind
expect_equal cv/fold-3 "$(json folds 2 path)" "third fold"
expect_status 0 "$COHORT" inspect cv
expect_match 'cv/fold-2: finished, 1 epoch'
expect_status 0 "$COHORT" verify cv
check "all folds" test "$(output | grep -c 'fold-[123]/last.h5: ok')" = 3

section "doctor"
mkdir spot
expect_status 0 ranks 2 "$COHORT" doctor --disk spot --json
output >doctor.json
check "one JSON object" parses doctor.json
expect_number ranks == 2
expect_number "hosts 0 ranks" == 2
expect_number "hosts 0 sgemm_gflops_most" ">" 0.1
expect_number "hosts 0 bandwidth_gb_per_second" ">" 0.1
expect_number "disk free_gb" ">" 0
expect_equal true "$(json ok)" ok
expect_equal true "$(json disk parallel_reads)" "reading together"
expect_equal true "$(json disk locks)" locks
expect_equal "" "$(ls -A spot)" "what is left behind"
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
expect_status 0 ranks 2 taskset -c "$cpu" "$COHORT" doctor --disk spot
expect_match '^advice'
expect_match "2 ranks share 1 CPU"
COHORT_ISA=plain expect_status 0 "$COHORT" doctor
expect_match 'vectors +plain'
expect_status 1 ranks 2 "$COHORT" doctor --disk nowhere
expect_match 'expected a directory'
expect_status 2 "$COHORT" doctor nowhere

section "help"
expect_status 0 ranks 3 "$COHORT" help
for command in import simulate train evaluate predict inspect export verify doctor help; do
    expect_equal 1 "$(output | grep -c "^    $command ")" "$command is listed once"
done
expect_status 0 "$COHORT"
expect_status 0 "$COHORT" --help
expect_match '^    evaluate '
some=(train evaluate)
[ -n "${COHORT_QUICK:-}" ] || some+=(import simulate predict inspect export verify doctor help)
for command in "${some[@]}"; do
    expect_status 0 "$COHORT" help $command
    output >"$command.txt"
    expect_status 0 "$COHORT" $command --help
    expect_same "$command.txt" "$LIB_OUT"
    expect_match "^    cohort $command"
done
expect_status 2 ranks 2 "$COHORT" help evalute
expect_match "did you mean 'evaluate'"

section "output that is a directory, or not given"
mkdir place
expect_status 1 "$COHORT" predict irt -o place
expect_match 'predict: -o place is a directory; expected the file to write'
expect_status 1 "$COHORT" report irt -o place
expect_match 'report: -o place is a directory'
expect_status 1 "$COHORT" sample irt -o place
expect_match 'sample: -o place is a directory'
expect_status 1 "$COHORT" simulate irt -o place
expect_match 'simulate: -o place is a directory; expected a file to write, such as place/data.h5'
expect_status 2 "$COHORT" sample irt
expect_match 'sample: no output; name the data set to write with -o'
expect_equal "" "$(ls -A place)" "what is in it"

section "a full disk"
mkdir disk
if mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
    echo student,probability >disk/p.csv
    for n in 1 3; do
        for file in p.csv p.h5; do
            expect_status 74 on $n "$COHORT" predict irt -o disk/$file
            expect_match "disk/$file"
        done
    done
    expect_equal student,probability "$(cat disk/p.csv)" "what was there before"
    expect_equal p.csv "$(ls -A disk)" "what is left"
    expect_status 74 ranks 2 "$COHORT" doctor --disk disk
    expect_match 'writing stopped'
    expect_equal p.csv "$(ls -A disk)" "what is left"
    umount disk
else
    (skip "no right to mount a small disk")
fi
