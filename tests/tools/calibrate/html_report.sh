# html_report.sh - the page of ft-calibrate --report FILE.html in a browser, headless.
#
# Chromium is driven over HTTP by chromedriver.  FT_SCREENSHOTS=FOLDER keeps the screenshots.
# SPDX-License-Identifier: Apache-2.0

dir=$(mktemp -d) || exit 99
driver_pid=
cleanup () {
    test -z "$session" || curl -s -X DELETE "$driver/session/$session" >/dev/null 2>&1
    test -z "$driver_pid" || kill "$driver_pid" 2>/dev/null
    rm -rf "$dir"
}
session=
trap cleanup EXIT
. "$FT_SRCDIR/tests/lib/tap.sh"
cd "$dir" || exit 99

# ---- Pages --------------------------------------------------------------------------------------

quietly "$FT_BUILDDIR/tests/programs/make-classifier" model 3
quietly "$FT_BUILDDIR/tests/programs/make-tensors" samples.safetensors \
    input_ids:I32:3,4=5,6,7,8,9,10,11,12,13,14,15,16
quietly "$FT_BUILDDIR/ft-convert" -q -i model -o m.ft
is 0 'ft-calibrate --report writes a page' "$FT_BUILDDIR/ft-calibrate" -q -n -i m.ft \
    -d samples.safetensors --report report.html
is 0 'ft-calibrate --report writes the same page again' "$FT_BUILDDIR/ft-calibrate" -q -n -f -i m.ft \
    -d samples.safetensors --report again.htm -t 2
same report.html again.htm 'the page does not depend on the number of threads'
is 0 'other names get JSON' "$FT_BUILDDIR/ft-calibrate" -q -n -i m.ft \
    -d samples.safetensors --report report.json
head -c 1 report.json | grep -qF '{'
check $? 'a report whose name does not end in .html or .htm is JSON'
"$FT_BUILDDIR/tests/programs/make-report" 12 >sample.html || exit 99
quietly "$FT_BUILDDIR/ft-calibrate" -q -i m.ft -o q.ft -d samples.safetensors
is 1 'ft-inspect --diff --html writes a page' "$FT_BUILDDIR/ft-inspect" --diff m.ft q.ft \
    -d samples.safetensors --html comparison.html

# ---- Browser ------------------------------------------------------------------------------------

why=
for program in chromium chromedriver curl; do
    command -v $program >/dev/null || why="no $program"
done
if test -n "$why"; then
    skip "$why to open the page with"
    echo "1..$count"
    exit 0
fi

# chromedriver says which port it got.
HOME=$dir chromedriver --port=0 >driver.log 2>&1 &
driver_pid=$!
for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    port=$(sed -n 's/.*started successfully on port \([0-9]*\).*/\1/p' driver.log)
    test -z "$port" || break
    sleep 0.5
done
driver=http://127.0.0.1:$port

# post PATH JSON: a command of the session; its answer goes to $dir/answer.
post () {
    curl -s -m 60 -H 'Content-Type: application/json' -d "$2" "$driver/session/$session/$1" >answer
}

# devtools COMMAND PARAMETERS: a command of the DevTools protocol.
devtools () { post goog/cdp/execute "{\"cmd\": \"$1\", \"params\": $2}"; }

# value EXPRESSION: prints what JavaScript computes, a string without quotes in it or a number.
value () {
    post execute/sync "{\"script\": \"return ($1)\", \"args\": []}"
    sed -n 's/^{"value":"\{0,1\}\([^"}]*\)"\{0,1\}}$/\1/p' answer
}

# equals EXPRESSION VALUE SENTENCE
equals () {
    found=$(value "$1")
    test "$found" = "$2"
    check $? "$3"
    test "$found" = "$2" || { echo "# found $found, expected $2"; show answer; echo '#'; }
}

# press CSS-SELECTOR KEY-CODE: focuses an element and presses a key.
press () {
    value "document.querySelector('$1').focus()" >/dev/null
    post actions "{\"actions\": [{\"type\": \"key\", \"id\": \"keyboard\", \"actions\": [
        {\"type\": \"keyDown\", \"value\": \"$2\"}, {\"type\": \"keyUp\", \"value\": \"$2\"}]}]}"
}

session=
curl -s -m 60 -H 'Content-Type: application/json' -d '{"capabilities": {"alwaysMatch": {
    "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": ["--headless=new",
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir='"$dir"'/profile"]}}}}' \
    "$driver/session" >answer
session=$(sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p' answer)
if test -z "$session"; then
    show answer
    skip 'chromium does not start here'
    echo "1..$count"
    exit 0
fi

# shot NAME: keeps a screenshot if someone wants it.
shot () {
    test -n "$FT_SCREENSHOTS" || return 0
    devtools Page.captureScreenshot "{\"captureBeyondViewport\": true, \"clip\": {\"x\": 0, \"y\": 0,
        \"width\": $width, \"height\": ${shot_height:-2400}, \"scale\": 1}}"
    sed -n 's/.*"data":"\([^"]*\)".*/\1/p' answer | base64 -d >"$FT_SCREENSHOTS/$1.png"
}

first='document.querySelector(`tbody th`).textContent'
column='document.querySelectorAll(`th[aria-sort]`)'
for page in report sample comparison; do
    post url "{\"url\": \"file://$dir/$page.html\"}"
    equals 'document.querySelector(`h1`).textContent === document.title' true \
        "$page: the browser opens the page from disk"

    # Each width in light and dark: only parts with a container of their own scroll sideways.
    for width in 320 768 1920; do
        devtools Emulation.setDeviceMetricsOverride \
            "{\"width\": $width, \"height\": 900, \"deviceScaleFactor\": 1, \"mobile\": false}"
        for scheme in light dark; do
            devtools Emulation.setEmulatedMedia \
                "{\"features\": [{\"name\": \"prefers-color-scheme\", \"value\": \"$scheme\"}]}"
            equals 'document.documentElement.scrollWidth <= innerWidth && innerWidth == '$width true \
                "$page: the $scheme page does not scroll sideways at $width pixels"
            equals 'getComputedStyle(document.body).backgroundColor' \
                "$(test $scheme = dark && echo 'rgb(21, 22, 26)' || echo 'rgb(255, 255, 255)')" \
                "$page: the page follows the $scheme scheme at $width pixels"
            shot $page-$width-$scheme
        done
    done

    # Contrast: every text against the background behind it, in both schemes.
    for scheme in light dark; do
        devtools Emulation.setEmulatedMedia \
            "{\"features\": [{\"name\": \"prefers-color-scheme\", \"value\": \"$scheme\"}]}"
        equals '(() => {
            const light = (c) => { const [r, g, b] = c.match(/[0-9.]+/g).slice(0, 3).map((v) => {
                v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
                return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const ground = (e) => { for (; e; e = e.parentElement) {
                const c = getComputedStyle(e).backgroundColor; if (!c.endsWith(`, 0)`)) return c; } };
            let worst = 21;
            for (const e of document.querySelectorAll(`main *`)) {
                if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
                if (e.tagName === `title`) continue;
                const style = getComputedStyle(e);
                const [a, b] = [light(e.ownerSVGElement ? style.fill : style.color), light(ground(e))];
                worst = Math.min(worst, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)); }
            return worst >= 4.5 || worst; })()' true "$page: all text has a contrast of 4.5 in the $scheme scheme"
    done

    post se/log '{"type": "browser"}'
    grep -qF '{"value":[]}' answer
    check $? "$page: the browser logs no error and no warning"
    grep -qF '{"value":[]}' answer || show answer
    test $page != comparison || continue

    # Sorting by pointer and by keyboard.
    equals "${column}[4].getAttribute(\`aria-sort\`)" ascending "$page: the table is sorted by SQNR"
    sorted=$(value "$first")
    post element '{"using": "css selector", "value": "th:nth-child(5) > button"}'
    element=$(sed -n 's/.*:"\([^"]*\)"}}$/\1/p' answer)
    post "element/$element/click" '{}'
    equals "${column}[4].getAttribute(\`aria-sort\`)" descending "$page: a click on the header reverses the order"
    test "$(value "$first")" != "$sorted"
    check $? "$page: after the click another row is the first"
    press 'th:nth-child(1) > button' '\uE007'
    equals "${column}[0].getAttribute(\`aria-sort\`)" ascending "$page: Enter on a header sorts by its column"
    equals "${column}[4].getAttribute(\`aria-sort\`)" none "$page: only one header says that it is sorted"
    equals '(() => { const names = [...document.querySelectorAll(`tbody`)[0].rows].map((r) =>
        r.cells[0].textContent); return names.every((n, i) => i === 0 ||
        names[i - 1].localeCompare(n, `en`, { numeric: true }) <= 0); })()' true \
        "$page: the names are in order"
    press 'th:nth-child(1) > button' ' '
    equals "${column}[0].getAttribute(\`aria-sort\`)" descending "$page: Space on a header sorts as well"
    equals '[...document.querySelectorAll(`.scroll`)].every((e) => e.tabIndex === 0)' true \
        "$page: the keyboard reaches all parts that scroll"
    post se/log '{"type": "browser"}'
    grep -qF '{"value":[]}' answer
    check $? "$page: sorting logs no error and no warning"
    grep -qF '{"value":[]}' answer || show answer
done
echo "1..$count"
