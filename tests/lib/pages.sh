# shellcheck shell=bash
# For tests of report pages: whether a page is sound HTML, and training in a directory of the test. Sourced after lib.sh.

# Whether the tags of a page are balanced, and the page fetches nothing, runs nothing and names nothing of this
# machine.
sound() {
    python3 - "$@" <<'END'
import html.parser, sys

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "img", "iframe", "object", "base"), "a %s" % tag
        for name, value in attributes:
            assert name not in ("src", "xlink:href", "srcset") and not name.startswith("on"), name
            assert name != "href" or value.startswith("#"), value
        if tag != "meta":
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        assert tag in ("path", "rect", "circle"), tag
    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, "</%s> at %s" % (tag, self.getpos())

for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    page = Page()
    page.feed(text)
    assert not page.open, page.open
    for word in ("://", "url(", "@import", "/tmp/", "NaN", ">nan", "(null)"):
        assert word not in text, "%s: %s" % (path, word)
END
}
# check_sound FILE...: counted as one test.
check_sound() {
    if command -v python3 >/dev/null; then
        check "sound HTML" sound "$@" 2>"$LIB_ERR"
    else
        (skip "there is no python3 to read HTML with")
    fi
}

train() {
    local run=$1
    shift
    run "$COHORT" train "run=$TMP/$run" "$@" || fail "training $run"
}
