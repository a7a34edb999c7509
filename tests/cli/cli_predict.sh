#!/usr/bin/env bash
# cohort predict in production: formats, standard output, rows of the source, new students and new items.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70

on() { if [ "$1" -eq 1 ]; then "${@:2}"; else ranks "$@"; fi; }

# 60 students answer 12 items of 3 skills and 2 groups, some of them twice, at dates; 8 more students come later.
awk 'BEGIN {
    srand(5)
    print "student,item,skill,unit,time,correct"
    for (s = 1; s <= 60; s++)
        for (t = 0; t < 14; t++) {
            i = int(rand() * 12)
            printf "s%d,q%d,k%d,u%d,2024-03-%02d %02d:05:%02d,%d\n", s, i, i % 3, i % 2, 1 + s % 28, 8 + t % 12, s % 60,
                rand() < 0.25 + i / 20
        }
}' >old.csv
awk -F, 'BEGIN { OFS = "," } NR == 1 || $1 <= "s15" && $2 < "q6" { if (NR > 1) $1 = "new " $1; print }' old.csv >known.csv
import() { expect_status 0 "$COHORT" import csv "$@" --skills skill --group unit --time time; }
import old.csv --split by-student -o old.h5
import known.csv --split none -o known.h5
quick=(train.epochs=3 data=old.h5)
expect_status 0 "$COHORT" train run=ktm model.kind=ktm "${quick[@]}"
expect_status 0 "$COHORT" train run=bkt model.kind=bkt model.items=no "${quick[@]}"

section "formats by ending"
for ending in csv csv.gz json json.gz jsonl jsonl.gz h5; do
    expect_status 0 "$COHORT" predict ktm -o "p1.$ending"
    expect_status 0 on 3 "$COHORT" predict ktm -o "p3.$ending"
    expect_same "p1.$ending" "p3.$ending"
done
for ending in csv json jsonl; do
    check "gzip -t p1.$ending.gz" gzip -t "p1.$ending.gz"
    gunzip -c "p1.$ending.gz" >unzipped
    expect_same "p1.$ending" unzipped
done
expect_equal "student,item,time,outcome,probability,split,basis,row" "$(head -1 p1.csv)" "columns"
if python3 -c '' 2>/dev/null; then
    check "JSON, lines of JSON and CSV are the same table" python3 - <<'EOP'
import csv, json
rows = list(csv.DictReader(open("p1.csv")))
array = json.load(open("p1.json"))
lines = [json.loads(line) for line in open("p1.jsonl")]
assert array == lines and len(rows) == len(array) > 500
for a, b in zip(rows, array):
    assert list(a) == list(b)
    assert a["student"] == b["student"] and float(a["probability"]) == b["probability"] and int(a["row"]) == b["row"]
EOP
fi
(
    /usr/bin/python3 -c 'import h5py' 2>/dev/null || skip "there is no python3-h5py to compare with"
    check "h5py reads the same table" /usr/bin/python3 - <<'EOP'
import csv, h5py
rows = list(csv.DictReader(open("p1.csv")))
f = h5py.File("p1.h5")
students, items = f["students/names"].asstr()[:], f["items/names"].asstr()[:]
for n, row in enumerate(rows):
    assert row["student"] == students[f["student"][n]] and row["item"] == items[f["item"][n]]
    assert abs(float(row["probability"]) - f["probability"][n]) < 1e-8 and int(row["row"]) == f["row"][n]
EOP
)
expect_status 1 "$COHORT" predict ktm -o p.txt
expect_match '^cohort: -o p.txt: the ending names no known format; expected .csv, .csv.gz, .*.h5, or - for standard output'
check "nothing written" test ! -e p.txt

section "a file of something else is not replaced"
printf 'student,item,outcome,skill\nann,q1,1,probability\n' >source.csv
gzip <source.csv >source.csv.gz
echo '{"student": "ann", "item": "q1", "outcome": 1}' | tee source.jsonl >source.json
cp source.csv source.h5
mkdir sources
expect_status 0 "$COHORT" train run=vae model.kind=vae model.dimensions=1 "${quick[@]}"
cp source.* sources
for ending in csv csv.gz jsonl json h5; do
    expect_status 1 ranks 2 "$COHORT" predict bkt -o "source.$ending"
    expect_match "source.$ending: this file exists and is not (a file of predictions|an HDF5 file); choose another file name"
    expect_same "sources/source.$ending" "source.$ending"
done
expect_status 1 ranks 2 "$COHORT" export vae --hidden -o source.csv
expect_match 'source.csv: this file exists and is not an export of this table; choose another file name'
expect_same sources/source.csv source.csv
: >empty.csv
for file in empty.csv again.csv.gz again.json again.jsonl again.h5; do
    for kind in '' --next=items --next=skills --mastery --mastery=each; do
        # shellcheck disable=SC2086 # none or one
        expect_status 0 "$COHORT" predict bkt $kind -o "$file"
    done
    expect_status 0 "$COHORT" predict bkt -o "$file"
done
for n in 1 2; do
    expect_status 0 "$COHORT" export vae --hidden -o hidden.csv
    expect_status 0 "$COHORT" export bkt -o tables
done

section "standard output"
for n in 1 3; do
    expect_status 0 on $n "$COHORT" predict ktm -o -
    output >standard.csv
    expect_same p1.csv standard.csv
done
"$COHORT" predict ktm -o - 2>errors >/dev/full
expect_equal 74 $? "exit code on a full disk"
expect_match '^cohort: standard output: cannot write: No space left on device; the output is incomplete' errors

section "rows and times of the source"
# Row r of the table is line r + 1 of the file.
check "rows carry the number, the date and the outcome of their row" awk -F, '
    NR == FNR { line[NR - 1] = $1 "," $2 "," $5 "," $6; next }
    FNR > 1 && line[$8] != $1 "," $2 "," $3 "," $4 { exit 1 }' old.csv p1.csv
expect_equal "test train valid" "$(cut -d, -f6 p1.csv | tail -n +2 | sort -u | xargs)" "splits"
import old.csv known.csv --split none -o both.h5
expect_status 0 "$COHORT" predict ktm --data both.h5 -o both.csv
check "the file, where there are several" awk -F, '
    FNR == 1 { file++ }
    file < 3 { line[FILENAME, FNR - 1] = $1 "," $2; next }
    FNR > 1 && line[$9, $8] != $1 "," $2 { exit 1 }' old.csv known.csv both.csv
expect_status 0 "$COHORT" simulate irt --students 20 --items 5 -o none.h5
expect_status 0 "$COHORT" predict ktm --data none.h5 -o none.csv
check "no rows in simulated data" awk -F, 'NR > 1 && $8 != "" { exit 1 }' none.csv

section "new items"
# Unseen: n1 with a known skill, n2 with a known group only, n3 with nothing known, k9 and u9 are new too.
{
    cat known.csv
    echo 'ann,n1,k1,u0,2024-04-01 10:00:00,1'
    echo 'ann,q1,k1,u1,2024-04-01 10:01:00,1'
    echo 'ann,n2,k9,u1,2024-04-01 10:02:00,0'
    echo 'ann,n3,,u9,2024-04-01 10:03:00,1'
    echo 'ann,q2,k2,u0,2024-04-01 10:04:00,'
} >later.csv
import later.csv --split none -o later.h5
for run in ktm bkt; do
    expect_status 0 "$COHORT" predict $run --data known.h5 -o known-p.csv
    expect_no_match 'was not trained'
    for n in 1 $([ $run = bkt ] && echo 3 || echo 2 5); do
        expect_status 0 on $n "$COHORT" predict $run --data later.h5 -o later$n.csv
        expect_match '^note: 3 attempts at 3 items that the model was not trained on are predicted from other items: 1 of their skills, 1 of their group, 1 of all items'
        expect_same later1.csv later$n.csv
    done
    expect_equal "n1 skill n2 group n3 mean" "$(awk -F, 'NR > 1 && $7 != "item" { print $2, $7 }' later1.csv | sort | xargs)" "bases"
    expect_equal "$(cut -d, -f1-7 known-p.csv | sort)" "$(grep -v '^ann,' later1.csv | cut -d, -f1-7 | sort)" \
        "students without new items are predicted as before"
    # The outcome of a later attempt changes nothing; that of the first, the later ones.
    sed 's/^\(ann,n3,.*\),1$/\1,0/' later.csv >flipped.csv
    import flipped.csv --split none -o flipped.h5
    expect_status 0 "$COHORT" predict $run --data flipped.h5 -o flipped-p.csv
    for item in n1 q1 n2 n3; do
        expect_equal "$(grep "^ann,$item," later1.csv | cut -d, -f5)" "$(grep "^ann,$item," flipped-p.csv | cut -d, -f5)" \
            "chance at $item before the flipped outcome"
    done
    sed 's/^\(ann,n1,.*\),1$/\1,0/' later.csv >flipped.csv
    import flipped.csv --split none -o flipped.h5
    expect_status 0 "$COHORT" predict $run --data flipped.h5 -o flipped-p.csv
    check "an answer to a new item of the skill counts" test "$(grep '^ann,q1,' later1.csv | cut -d, -f5)" != \
        "$(grep '^ann,q1,' flipped-p.csv | cut -d, -f5)"
done
# bkt knows skills only, so that a new item of a skill is predicted like any other item of it.
echo 'student,item,skill,unit,time,correct
a,q4,k1,u0,2024-04-01 10:00:00,1
b,n1,k1,u0,2024-04-01 10:00:00,1' >same.csv
import same.csv --split none -o same.h5
expect_status 0 "$COHORT" predict bkt --data same.h5 -o same-p.csv
expect_equal 1 "$(tail -n +2 same-p.csv | cut -d, -f5 | sort -u | wc -l)" "chances of a known and a new item of one skill"
expect_status 0 "$COHORT" evaluate ktm --data later.h5 --split all --json
expect_equal "1 1 1" "$(json basis skill) $(json basis group) $(json basis mean)" "scored attempts by basis"
expect_status 0 ranks 2 "$COHORT" evaluate ktm --data later.h5 --split all --groups
expect_match '^u9 +1 '
expect_status 1 "$COHORT" predict ktm --data later.h5 --strict -o never.csv
expect_match "item 'n1' was never seen in training"
check "nothing written" test ! -e never.csv
