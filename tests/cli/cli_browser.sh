#!/bin/bash
# Report pages in a real browser (chromium without a screen), as wide as a phone and as a desk screen, light and dark: no
# message on the console, no request besides the page itself, every chart there, no text cut, hidden, too small or over
# other text; names of any characters stay text.
. "$(dirname "$0")/../lib/lib.sh"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    skip "there is no chromium to open pages with"
[ -n "$(command -v python3)" ] || skip "there is no python3 to add the measuring script to a page"

# measure DIRECTORY PAGE...: opens copies of the pages at both widths, each in a frame (windows are at least 500 pixels
# wide), all in one browser, and one browser for each colour scheme. DIRECTORY/PAGE.WIDTH.SCHEME has what
# tests/lib/measure_page.js says, and the lines of the console that name the page.
measure() {
    local to=$1 scheme page width
    shift
    rm -rf "$to"
    mkdir -p "$to"
    python3 - "$to" "$@" <<'END'
import os, sys
to, pages = sys.argv[1], sys.argv[2:]
script = open("tests/lib/measure_page.js", encoding="utf-8").read()
policy = "style-src 'unsafe-inline'"
frames = ""
for page in pages:
    name = os.path.basename(page)
    text = open(page, encoding="utf-8").read()
    assert text.count(policy) == 1 and text.count("</body>") == 1, page
    text = text.replace(policy, policy + "; script-src 'unsafe-inline'")
    text = text.replace("</body>", "<script>" + script + "</script></body>")
    kind = "other" if name.startswith(("student", "live")) else "report"
    for width in 390, 1400:
        copy = f"{name}.{width}.html"
        open(f"{to}/{copy}", "w", encoding="utf-8").write(text)
        frames += f'<iframe name="{kind} {name}.{width}" src="{copy}" style="border:0;width:{width}px;height:900px"></iframe>\n'
open(f"{to}/frames.html", "w").write("""<!DOCTYPE html><meta charset="utf-8"><body><script>addEventListener("message", function (e) {
    var pre = document.createElement("pre"), all = document.querySelectorAll("iframe"), i;
    for (i = 0; all[i].contentWindow !== e.source;) i++;
    pre.textContent = "\\nmeasured " + all[i].name.split(" ")[1] + "\\n" + e.data + "\\nend\\n";
    document.body.appendChild(pre); });</script>""" + frames)
END
    for scheme in light dark; do
        HOME=$to timeout 200 "$browser" --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
            --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$to/$scheme" \
            --enable-logging=stderr --window-size=1600,1000 --virtual-time-budget=3000 \
            --blink-settings=preferredColorScheme="$([ $scheme = light ]; echo $((1 - $?)))" \
            --dump-dom "file://$to/frames.html" >"$to/dom.$scheme" 2>"$to/console.$scheme" &
    done
    wait
    for scheme in light dark; do
        for page; do
            page=$(basename "$page")
            for width in 390 1400; do
                {
                    sed -n "/^measured $page\\.$width\$/,/^end\$/p" "$to/dom.$scheme" | sed '1d;$d'
                    grep CONSOLE "$to/console.$scheme" | grep -F "$page.$width.html" | sed 's/^/console: /'
                } >"$to/$page.$width.$scheme"
            done
        done
    done
}

# expect_sound DIRECTORY PAGE CHARTS: tests a measured page; it has at least that many charts.
expect_sound() {
    local scheme width got n
    for scheme in light dark; do
        for width in 390 1400; do
            got=$(cat "$1/$2.$width.$scheme")
            n=$(sed -n 's/^charts //p' <<<"$got")
            expect_equal $'sound\nwidth '$width "$(grep -v '^charts' <<<"$got")" "$2 at $width px, $scheme"
            check "$2 has ${n:-no} charts, of at least $3" test "${n:-0}" -ge "$3"
        done
    done
}

train() {
    local run=$1
    shift
    run "$COHORT" train "run=$TMP/$run" "$@" || fail "training $run"
}
report() { run "$COHORT" report "$@" || fail "report $*"; }

run "$COHORT" simulate irt --students 300 --items 20 --skills 3 --seed 1 -o "$TMP/class.h5" || fail "simulate"
adam="optimizer.method=adam optimizer.rate=0.01 train.batch=50 train.epochs=3"
class="data=$TMP/class.h5"
# shellcheck disable=SC2086
{
    train rbm $class model.kind=rbm model.hidden=5 train.epochs=4 run.snapshots='0 2'
    train rtrbm $class model.kind=rtrbm model.structure=skills model.hidden=4 model.skill_units=1 $adam
    train dkt $class model.kind=dkt model.hidden=8 $adam
    train vae $class model.kind=vae $adam
    train lme $class model.kind=lme train.epochs=10
    train bkt $class model.kind=bkt train.epochs=10
    train ktm $class model.kind=ktm train.epochs=5
}
run "$COHORT" blend "$TMP/rbm" "$TMP/lme" -o "$TMP/blend" || fail "blend"

section "the measure itself"
# Pages with every fault: each is found.
head='<!DOCTYPE html><html><head><meta http-equiv="Content-Security-Policy"
content="default-src '"'none'; style-src 'unsafe-inline'"'"><style>body{color:#000;background:#fff}</style></head><body>'
chart='<svg viewBox="0 0 400 300" aria-label="a" style="display:block;width:380px">'
bad() {
    echo "$head$3</body></html>" >"$TMP/bad-$1.html"
    FAULTS+=("$1" "$2")
}
FAULTS=()
bad wide 'wider than the window' '<div style="width:3000px">wide</div>'
bad request 'console: .*Content Security Policy' '<p style="background:url(http://localhost/x.png)">x</p>'
bad image 'request: http://localhost/x.png' '<img src="http://localhost/x.png">'
bad tag 'an element called img' '<table><tr><td><img alt="x"></td></tr></table>'
bad script 'an element called script' '<p><script>1</script></p>'
bad event 'an attribute onclick' '<p onclick="1">x</p>'
bad console 'console: .*message 7' '<p>x</p><script>console.log("message", 7)</script>'
bad small 'text of [0-9.]+ px: small' "$chart<path d=\"M0 0h9\"/><text x=\"9\" y=\"90\" style=\"font-size:9px\">small</text></svg>"
bad over "text over 'over': one" "$chart<path d=\"M0 0\"/><text x=\"9\" y=\"90\">one</text><text x=\"12\" y=\"92\">over</text></svg>"
bad outside 'outside its chart: outside' "$chart<path d=\"M0 0\"/><text x=\"-30\" y=\"90\">outside</text></svg>"
bad empty 'an empty chart' "$chart<text x=\"9\" y=\"90\">none</text></svg>"
bad figure 'figure without a chart' '<figure>none</figure>'
bad first 'scores are not the first' '<h2>Other</h2>'
bad scroll 'cut or to be scrolled: hidden' '<div style="overflow-x:auto;width:90px"><div style="width:200px">hidden</div></div>'
bad label 'cut or to be scrolled: a label' '<p style="overflow:hidden;width:40px;white-space:nowrap">a label that is cut</p>'
bad bottom 'cut at the bottom: line' '<p style="overflow:hidden;height:9px">line</p>'
bad column 'hidden: column' '<table><tr><td>1</td><td style="display:none">column</td></tr></table>'
bad lines "text over '(above|below)'" '<p style="margin:0">above</p><p style="margin:-20px 0 0">below</p>'
bad pale 'hardly visible: pale' '<p style="color:#eee">pale</p>'
bad dark 'hardly visible: dark' "$chart<path d=\"M0 0\"/><text x=\"9\" y=\"90\" fill=\"#ddd\">dark</text></svg>"
bad card 'a cell without a head: 12' '<table><thead style="display:none"><tr><th>a</th><th>b</th></tr></thead><tbody><tr><th>x</th><td>12</td></tr></tbody></table>'
bad night 'sound' '<style>@media (prefers-color-scheme:dark){p{color:#fff}}</style><h2>Scores</h2><p>night</p>'
measure "$TMP/.bad" "$TMP"/bad-*.html
for ((i = 0; i < ${#FAULTS[@]}; i += 2)); do
    expect_match "${FAULTS[i + 1]}" "$TMP/.bad/bad-${FAULTS[i]}.html.390.light"
done
expect_match 'hardly visible: night' "$TMP/.bad/bad-night.html.390.dark"

# The pages: their names, and the fewest charts.
pages=() charts=()
add() {
    pages+=("$TMP/$1")
    charts+=("$2")
}
for kind in rbm rtrbm dkt vae lme bkt ktm blend; do
    report "$TMP/$kind" -o "$TMP/$kind.html"
    add $kind.html 7
done
report "$TMP"/{rbm,rtrbm,dkt,vae,lme,bkt,ktm,blend} --top 5 -o "$TMP/several.html"
add several.html 20
report "$TMP/bkt" --student student-7 -o "$TMP/student.html"
add student.html 1

# Pages of training that was stopped, and of a sweep.
cp -r "$TMP/rbm" "$TMP/stopped"
rm "$TMP/stopped/result.json"
run "$COHORT" report --watch "$TMP/stopped" --wait 0 --every 1 -o "$TMP/live.html"
add live.html 2
printf '[model]\nkind = rbm\nhidden = {2, 3}\n[optimizer]\nrate = {0.01, 1e6}\n' >"$TMP/sweep.ini"
run "$COHORT" sweep "$TMP/sweep.ini" $class train.epochs=2 run="$TMP/sweep" --pack 1/2 || fail "sweep"
run "$COHORT" report --watch "$TMP/sweep" --wait 0 --every 1 -o "$TMP/live-sweep.html"
add live-sweep.html 0

# Many runs, a cross-validation, a sweep.
ln -s rbm "$TMP/a run with quite a long name, as users give them"
report "$TMP"/{rbm,rtrbm,dkt,vae,lme,bkt,ktm,blend,rbm,dkt,lme} "$TMP/a run with quite a long name, as users give them" \
    --metric auc -o "$TMP/many.html"
add many.html 40
# shellcheck disable=SC2086
train cv $class model.kind=ktm train.folds=9 train.epochs=2
report "$TMP/cv" -o "$TMP/cv.html"
add cv.html 20
# shellcheck disable=SC2086
run "$COHORT" sweep "run=$TMP/swept" $class model.kind=dkt 'model.hidden={4,8}' 'optimizer.method={sgd,adam}' train.batch=50 \
    'optimizer.rate=log(0.0001, 1000)' train.epochs=4 sweep.design=halton sweep.trials=12 sweep.rungs=2 || fail "sweep"
report "$TMP/swept" -o "$TMP/swept.html"
add swept.html 6

# Seven settings; a cell of the leaderboard is never hidden.
# shellcheck disable=SC2086
run "$COHORT" sweep "run=$TMP/seven" $class model.kind=dkt 'model.hidden={4,8}' 'optimizer.method={sgd,adam}' 'train.batch={25,50}' \
    'optimizer.rate=log(0.0001, 0.1)' 'optimizer.momentum={0.1,0.9}' 'optimizer.decay=log(1e-7, 1e-3)' 'model.dropout={0,0.5}' \
    train.epochs=1 sweep.design=halton sweep.trials=4 || fail "sweep"
report "$TMP/seven" -o "$TMP/seven.html"
expect_match 'class="board"' "$TMP/seven.html"
add seven.html 1

# Long names that begin alike, in capitals, without a space.
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 60; i++) long = long "MW"
    print "student,item,skill,outcome"
    for (s = 0; s < 60; s++)
        for (i = 0; i < 24; i++)
            printf "student %d,%s item %d,%s skill %d,%d\n", s, long, i, i % 2 ? long : "Number and operations in base ten: skill", i % 6, \
                rand() < (i % 6 + s % 5) / 10
}' >"$TMP/long.csv"
run "$COHORT" import csv "$TMP/long.csv" --split by-student=60/20/20 -o "$TMP/long.h5" || fail "import"
for kind in bkt rbm; do
    train "long-$kind" "data=$TMP/long.h5" model.kind=$kind train.epochs=3
    report "$TMP/long-$kind" -o "$TMP/long-$kind.html"
    add long-$kind.html 7
done

# Names with any characters, of students, items, skills, groups, runs and titles.
awk 'BEGIN {
    srand(3)
    name[0] = "<script>alert(1)</script>"; name[1] = "a \"\"quoted\"\" & '"'"'other'"'"'"; name[2] = "</style></title></text></svg>"
    name[3] = "\347\254\254\344\270\200\351\241\214"; name[4] = "\377\376 no UTF-8"; name[5] = "&lt;b&gt; %s %n --><!--"
    name[6] = "a very long name that goes on and on and on and on and on and on and on and on and on and on"
    name[7] = "\331\205\330\261\330\255\330\250\330\247 \330\250\331\203"; name[8] = "\342\200\256turned\342\200\254 \342\201\247ro\nund"
    print "student,item,skill,outcome,group"
    for (s = 0; s < 60; s++)
        for (i = 0; i < 18; i++)
            printf "\"<img src=x onerror=alert(1)>%s %d\",\"%s\",\"%s\",%d,\"%s\"\n", name[s % 9], s, name[i % 9], name[(i + 2) % 9], \
                rand() < (i % 9 + s % 5) / 12, name[(i + 4) % 9]
}' >"$TMP/nasty.csv"
run "$COHORT" import csv "$TMP/nasty.csv" --group group --split by-student=60/20/20 -o "$TMP/nasty.h5" || fail "import"
title=$'</title><b>\u05d0\u05d1\u05d2 "x" \'y\'\nline'
for kind in lme bkt vae ktm rbm; do
    train "nasty $kind'\"<b>" "data=$TMP/nasty.h5" model.kind=$kind train.epochs=3
    report "$TMP/nasty $kind'\"<b>" --title "$title" --figures "$TMP/figures-$kind" -o "$TMP/nasty-$kind.html"
    add nasty-$kind.html 7
done
report "$TMP/nasty bkt'\"<b>" --names --title "$title" --figures "$TMP/figures-names" -o "$TMP/nasty-names.html"
add nasty-names.html 7
report "$TMP/nasty bkt'\"<b>" --figures "$TMP/figures-student" --student $'<img src=x onerror=alert(1)>\u0645\u0631\u062d\u0628\u0627 \u0628\u0643 7' -o "$TMP/student-nasty.html"
add student-nasty.html 1
# shellcheck disable=SC2086
train graph "data=$TMP/nasty.h5" model.kind=rtrbm model.structure=items model.hidden=2 model.skill_units=1 $adam
report "$TMP/graph" "$TMP/nasty lme'\"<b>" -o "$TMP/nasty-several.html"
add nasty-several.html 8
rm "$TMP/nasty rbm'\"<b>/result.json"
run "$COHORT" report --watch "$TMP/nasty rbm'\"<b>" --wait 0 --every 1 --title "$title" -o "$TMP/live-nasty.html"
add live-nasty.html 2

measure "$TMP/.pages" "${pages[@]}"
for i in "${!pages[@]}"; do
    section "$(basename "${pages[i]}" .html)"
    expect_sound "$TMP/.pages" "$(basename "${pages[i]}")" "${charts[i]}"
done

section "figures of names with any characters"
# Well-formed XML, with no element but those of a picture, and a size.
expect_equal "" "$(
    python3 - "$TMP"/figures-*/*.svg <<'END'
import sys, xml.etree.ElementTree as tree
known = {"svg", "style", "g", "path", "rect", "circle", "line", "text", "tspan", "title", "desc"}
for path in sys.argv[1:]:
    for e in tree.parse(path).iter():
        tag = e.tag.replace("{http://www.w3.org/2000/svg}", "")
        if tag not in known or any(a.lower().startswith("on") or a.endswith("href") for a in e.attrib):
            print(path, e.tag, e.attrib)
END
)" "every element of every figure"
check "there are figures" test "$(find "$TMP"/figures-* -name '*.svg' | wc -l)" -ge 40

# A long name does not take the names from the others.
check "the Wright map has a name that is cut" grep -q '<tspan><title>a very long name' "$TMP"/figures-lme/*wright*.svg

section "names of students"
# Every student is called "<img ...": without --names no page, figure or table has a part of that.
for kind in lme bkt vae ktm rbm; do
    expect_equal "" "$(grep -l onerror "$TMP/nasty-$kind.html" "$TMP/figures-$kind"/*)" "no name leaks from the pages of $kind"
done
expect_no_match onerror "$TMP/nasty-several.html" "$TMP/live-nasty.html"
expect_match onerror "$TMP/nasty-names.html"
check "with --names the figures have them" grep -q onerror "$TMP"/figures-names/*.svg "$TMP"/figures-names/*.csv
