#!/bin/bash
# What a model does not know or use is said, and tables show what there is.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70

section "names of many bytes, and of many lines"
{
    echo student,item,correct,skill
    for s in $(seq 30); do
        for i in 1 2 3; do
            printf 's%d,Gr\xc3\xb6\xc3\x9fe%d,%d,\xe5\x8a\xa0\xe6\xb3\x95%d~~sum\n' "$s" $i $((s * i * 7 / 3 % 2)) $((i % 2))
            printf 's%d,"two\nlines",%d,sum\n' "$s" $(((s + i) % 2))
        done
    done
} >names.csv
expect_status 0 "$COHORT" import csv names.csv --split by-student=60/20/20 -o names.h5
expect_status 0 "$COHORT" inspect names.h5 --items
# Numbers end in one column: names are padded by what a terminal shows.
expect_match '^two\\nlines {24}90 {5}50.00%'
expect_match '^Größe1 {28}30 {5}'
expect_status 0 "$COHORT" train data=names.h5 run=bkt model.kind=bkt model.items=yes
expect_status 0 "$COHORT" inspect bkt
expect_match '^two\\nlines +0\.'
ends=$(output | sed -n '/^skills$/,/^$/p' | grep -E '^(sum|加法)' | sed 's/加法/abcd/' | awk '{print length}' | sort -u | wc -l)
expect_equal 1 "$ends" 'rows of one width'

section "bkt: items of several skills have no rates of their own"
expect_match '^Größe1 *$'
expect_status 0 "$COHORT" export bkt -o bkt-tables
expect_match '^Größe2,,$' bkt-tables/table_items.csv
expect_match 'lines",0\.|^lines",0\.' bkt-tables/table_items.csv

section "skills that the model does not know"
printf 'student,item,correct,skill\nz,Gr\xc3\xb6\xc3\x9fe1,1,\xe5\x8a\xa0\xe6\xb3\x951~~sum\nz,q9,0,new\n' >new.csv
expect_status 0 "$COHORT" import csv new.csv --split none -o new.h5
expect_status 0 "$COHORT" predict bkt --data new.h5 --mastery -o -
expect_match "^note: 1 skill of new.h5 is not in the model's training data, so it has no rows"
expect_match '^note: 1 attempt at 1 item that the model was not trained on is predicted'
expect_status 0 "$COHORT" predict bkt --mastery -o -
expect_no_match 'so it has no rows'

section "standard errors of lme are in its tables"
expect_status 0 "$COHORT" train data=names.h5 run=lme model.kind=lme
expect_status 0 "$COHORT" inspect lme --errors
expect_match '^item .*item_error'
expect_status 1 "$COHORT" inspect bkt --errors
expect_match 'bkt models have no standard errors'

section "ktm: one name per column"
expect_status 0 "$COHORT" train data=names.h5 run=ktm model.kind=ktm model.features='item skill wins'
expect_status 0 "$COHORT" export ktm -o ktm-tables
for table in ktm-tables/table_*.csv; do
    expect_equal '' "$(head -1 "$table" | tr , '\n' | sort | uniq -d)" "columns of $table"
done
expect_match '^item,weight' ktm-tables/table_items.csv
printf 'student,item,correct\na,q,1\na,r,0\nb,q,1\nb,r,0\n' >plain.csv
expect_status 0 "$COHORT" import csv plain.csv --split none -o plain.h5
expect_status 0 "$COHORT" train data=plain.h5 run=plain model.kind=ktm --explain
expect_match '^The data have no skills, so every item counts as a skill'
expect_status 0 "$COHORT" train data=names.h5 run=plain model.kind=ktm --explain
expect_no_match 'The data have no skills'

section "outcomes that are all equal"
printf 'student,item,correct,part\na,q,1,train\na,r,1,train\nb,q,0,valid\nb,r,0,test\n' >split.csv
expect_status 0 "$COHORT" import csv split.csv --split-column part -o split.h5
expect_status 1 ranks 2 "$COHORT" train data=split.h5 run=none model.kind=rbm
expect_match 'all 2 training outcomes are correct.*check the split, since other attempts have other outcomes'
printf 'student,item,correct\na,q,1\na,r,1\n' >equal.csv
expect_status 0 "$COHORT" import csv equal.csv --split none -o equal.h5
expect_status 1 "$COHORT" train data=equal.h5 run=none model.kind=rbm
expect_match 'check the outcome column'
printf 'student,item,correct,part\na,q,1,train\na,r,0,train\nb,q,0,valid\nb,r,0,test\n' >auc.csv
expect_status 0 "$COHORT" import csv auc.csv --split-column part -o auc.h5
expect_status 1 ranks 2 "$COHORT" train data=auc.h5 run=none model.kind=rbm train.monitor=auc
expect_match 'train.monitor = auc: no validation outcome is correct \(outcomes: 1\), so their AUC is undefined'
check 'nothing is written' test ! -e none
expect_status 0 "$COHORT" train data=auc.h5 run=some model.kind=rbm
