// Runs in a copy of a report page, in a frame (tests/cli/cli_browser.sh). Sends to the page around it what is wrong, one
// line per fault, or "sound"; then the number of charts and the width of the window. The name of the frame begins with
// "report" for pages that must begin with scores.
(function () {
    var wrong = [], root = document.documentElement, wide = root.clientWidth;
    function words(text) { return text.trim().replace(/\s+/g, " ").slice(0, 70); }
    function say(what, element) { wrong.push(what + ": " + words(element.textContent || element.tagName)); }
    function box(element) { return element.getBoundingClientRect(); }
    function all(selector, from) { return Array.prototype.slice.call((from || document).querySelectorAll(selector)); }
    function over(a, b, x, y) {
        return Math.min(a.right, b.right) - Math.max(a.left, b.left) > x && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > y;
    }

    // What is folded is measured too.
    all("details").forEach(function (e) { e.open = true; });

    // A name that became markup would be an element, an attribute or an address that no page has.
    var tags = (" html head meta title style body h1 h2 h3 h4 p b i em small span bdi ul ol li dl dt dd div table thead tbody tr th td " +
        "figure figcaption svg g path rect circle line text tspan title desc pre code details summary progress br a ").split(" ");
    all("*").forEach(function (e) {
        if (e === document.currentScript) return;
        if (tags.indexOf(e.localName) < 0) say("an element called " + e.localName, e);
        Array.prototype.forEach.call(e.attributes, function (a) {
            if (/^on/i.test(a.name)) say("an attribute " + a.name, e);
            if (/^(src|srcset|href|xlink:href|data|action|poster|background)$/i.test(a.name) && !/^#/.test(a.value))
                wrong.push("request: " + a.value);
            if (a.name === "style" && /url\(|@import/i.test(a.value)) wrong.push("request: " + a.value);
        });
    });
    all("style").forEach(function (e) { if (/url\(|@import/i.test(e.textContent)) wrong.push("request: in the style sheet"); });
    performance.getEntriesByType("resource").forEach(function (e) { wrong.push("request: " + e.name); });

    // Nothing is outside the window, cut off, or to be scrolled.
    if (root.scrollWidth > wide) say("the page is wider than the window, by " + (root.scrollWidth - wide), document.body);
    all("body *").forEach(function (e) {
        if (e.closest("svg") && e.tagName !== "svg") return;
        var b = box(e), style = getComputedStyle(e);
        if (b.width > 0 && (b.right > wide + 1 || b.left < -1)) say("outside the window", e);
        if (style.overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1) say("cut or to be scrolled", e);
        if (style.overflowY !== "visible" && e.scrollHeight > e.clientHeight + 1) say("cut at the bottom", e);
    });

    // Every text is shown, can be read, and lies over no other. Heads of cards are shown before their cells instead.
    function number(colour) { return (colour.match(/[\d.]+/g) || []).map(Number); }
    function light(c) {
        var v = c.slice(0, 3).map(function (x) { x /= 255; return x <= 0.03928 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4); });
        return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
    }
    function behind(e) {
        for (; e; e = e.parentElement) {
            var c = number(getComputedStyle(e).backgroundColor);
            if (c.length === 3 || c[3] > 0) return c;
        }
        return matchMedia("(prefers-color-scheme:dark)").matches ? [0, 0, 0] : [255, 255, 255];
    }
    var lines = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (var node; (node = walk.nextNode());) {
        var e = node.parentElement;
        if (!node.data.trim() || e.closest("svg,script,style") || e.closest("details:not([open])")) continue;
        var range = document.createRange(), style = getComputedStyle(e);
        range.selectNodeContents(node);
        var rects = Array.prototype.filter.call(range.getClientRects(), function (r) { return r.width > 0.5 && r.height > 0.5; });
        if (!rects.length && e.closest("thead") && getComputedStyle(e.closest("thead")).display === "none") continue;
        if (!rects.length || style.visibility !== "visible" || Number(style.opacity) < 0.3) say("hidden", e);
        var a = light(number(style.color)), z = light(behind(e));
        if ((Math.max(a, z) + 0.05) / (Math.min(a, z) + 0.05) < 3) say("hardly visible", e);
        rects.forEach(function (r) {
            lines.push({ left: r.left, right: r.right, top: r.top + r.height / 4, bottom: r.bottom - r.height / 4, node: node, e: e });
        });
    }
    lines.sort(function (a, b) { return a.top - b.top; });
    lines.forEach(function (a, i) {
        for (var k = i + 1; k < lines.length && lines[k].top < a.bottom; k++)
            if (lines[k].node !== a.node && over(a, lines[k], 1.5, 1)) say("text over '" + words(lines[k].node.data) + "'", a.e);
    });
    all("table").forEach(function (t) {
        var heads = all("thead th", t);
        if (!heads.length || box(heads[0]).height > 0) return;
        all("tbody tr", t).forEach(function (row) {
            Array.prototype.slice.call(row.children, 1).forEach(function (cell) {
                if (cell.textContent && !/[^"'\s]/.test(getComputedStyle(cell, "::before").content.replace(/none|normal/, "")))
                    say("a cell without a head", cell);
            });
        });
    });

    all("svg").forEach(function (svg) {
        var b = box(svg), scale = b.width / svg.viewBox.baseVal.width, texts = all("text", svg), boxes = texts.map(box);
        if (b.width < 200 || b.height < 80) say("a chart of " + b.width + " x " + b.height, svg);
        if (!all("path,rect,circle", svg).length) say("an empty chart", svg);
        if (!(svg.getAttribute("aria-label") || "").trim()) say("a chart without a title", svg);
        texts.forEach(function (t, i) {
            var r = boxes[i], style = getComputedStyle(t), size = parseFloat(style.fontSize) * scale;
            if (size < 11) say("text of " + size.toFixed(1) + " px", t);
            if (r.left < b.left - 1 || r.right > b.right + 1 || r.top < b.top - 1 || r.bottom > b.bottom + 1)
                say("text outside its chart", t);
            if (t.textContent.trim() && (r.width < 1 || style.visibility !== "visible")) say("hidden", t);
            var a = light(number(style.fill)), z = light(behind(svg));
            if (!t.closest(".heat") && (Math.max(a, z) + 0.05) / (Math.min(a, z) + 0.05) < 3) say("hardly visible", t);
            for (var k = i + 1; k < texts.length; k++)
                if (over(r, boxes[k], 1.5, 5)) say("text over '" + texts[k].textContent + "'", t);
        });
    });
    all("figure").forEach(function (f) {
        if (!f.querySelector("svg,table")) say("a figure without a chart", f);
    });
    // The scores come first, and all of them can be read without scrolling sideways.
    var first = document.querySelector("h2");
    if (/^report/.test(window.name) && (!first || !/^Scores/.test(first.textContent)))
        say("the scores are not the first section", first || document.body);
    if (document.querySelector(".lead") && box(document.querySelector(".lead p")).top > 400)
        say("the main score is not at the top", document.querySelector(".lead"));
    parent.postMessage((wrong.length ? wrong.join("\n") : "sound") + "\ncharts " + all("svg").length + "\nwidth " +
        innerWidth, "*");
})();
