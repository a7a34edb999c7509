#!/bin/bash
# Commands with a user's path, on pages, in results and in errors, work when they are pasted into a shell, whatever
# characters the path has.
. "$(dirname "$0")/../lib/lib.sh"
cd "$TMP" || exit 70
mkdir program && ln -s "$COHORT" program/cohort
# paste_command COMMAND: runs it as a shell would.
paste_command() { PATH=$TMP/program:$PATH sh -c "$1"; }
# on_page FILE: the commands on a page; settings_on FILE: its settings.
plain() { sed "s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&#39;/'/g; s/&amp;/\&/g"; }
on_page() { sed -n 's|^<pre>\(.*cohort .*\)</pre>$|\1|p' "$1" | plain; }
settings_on() { sed -n '/^<pre>\[/,/^<\/pre>/p' "$1" | sed 's|</*pre>||' | plain; }
# said PATTERN: the first text in the last command's errors that matches, without what stands around it.
said() { errors | grep -Eo -e "$1" | head -1; }

odd="it's \$HOME \"& co\" #1"
data="$odd.h5" run="$odd run"
run "$COHORT" simulate irt --students 100 --items 6 --skills 1 --seed 1 -o "$data" || fail "simulate"
average=(model.kind=average train.epochs=1)

section "pages"
expect_status 0 "$COHORT" train data="$data" run="$run" "${average[@]}"
expect_status 0 "$COHORT" report "$run" -o page.html
settings_on page.html >settings.ini
expect_status 0 paste_command "$(on_page page.html)"
expect_same "$run/last.h5" runs/again/last.h5
rm -r runs/again

expect_status 0 "$COHORT" train refit="$run" run="$run all"
expect_status 0 "$COHORT" report "$run all" -o page.html
expect_status 0 paste_command "$(on_page page.html)"
expect_same "$run all/last.h5" runs/again/last.h5
rm -r runs/again

expect_status 0 "$COHORT" update "$run" --data "$data" run="$run more"
expect_status 0 "$COHORT" report "$run more" -o page.html
expect_status 0 paste_command "$(on_page page.html)"
expect_same "$run more/last.h5" runs/again/last.h5

expect_status 0 "$COHORT" sweep data="$data" run="$odd sweep" 'model.kind={average, bkt}' train.epochs=1
expect_status 0 "$COHORT" report "$odd sweep" -o page.html
expect_status 0 paste_command "$(on_page page.html | head -1)"
check "the page of the best trial" test -s best.html

section "errors"
expect_status 1 "$COHORT" predict "$odd sweep" -o never.csv
expect_status 0 paste_command "$(said 'cohort train [^`]*best.ini[^`]*') run=best"
expect_status 1 "$COHORT" train "$run"
expect_status 0 paste_command "cohort train $(said "'?run=.*")"
expect_status 1 "$COHORT" train "$data" run=new "${average[@]}"
expect_status 0 paste_command "cohort train $(said "'?data=.*") run=new ${average[*]}"
"$COHORT" predict "$run" -o "$odd.csv" 2>/dev/null
expect_status 3 "$COHORT" inspect "$odd.csv"
expect_status 0 paste_command "$(said 'cohort import csv [^`]*' | sed 's/ -o DATA.h5/ --student student --item item --outcome outcome&/')"
expect_status 2 "$COHORT" predict "$run" "$data"
expect_status 0 paste_command "cohort predict runs/again --data $(said "--data '.*, or" | sed 's/^--data //; s/, or$//') -o all.csv"
run "$COHORT" train data="$data" run="$odd folds" "${average[@]}" train.folds=3 || fail "folds"
expect_status 1 "$COHORT" train run="$odd folds" train.fold=2 train.epochs=2
expect_status 0 paste_command "cohort train $(said "'run=.*fold-2'") train.epochs=2"
mv "$run more/config.ini" kept.ini
expect_status 1 "$COHORT" train run="$run more"
expect_status 0 paste_command "$(said 'cohort inspect [^`]*')"
