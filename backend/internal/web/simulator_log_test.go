package web

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/service-dev/service/glasses"
)

// rowText is JavaScript that returns the sentence of a row.
func rowText(seq int) string {
	return fmt.Sprintf(`document.querySelector('#log > li[data-seq="%d"] .said')?.textContent`, seq)
}

func TestSimulatorLog_SaysRowsInWords(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.show(menu)
	s.see(rowText(1) + ` === 'display.show: 8 nodes, "Trails near you"'`)
	s.see(`/^result: ok in \d+ ms, display\.show$/.test(` + rowText(2) + `)`)
	s.do(chromedp.Click("#panel"))
	s.next(glasses.TypeInput, "")
	s.see(`/^input: tap at \d+, \d+/.test(` + rowText(3) + `)`)
	s.choose("#battery", "20")
	s.see(rowText(4) + ` === "battery: 20 %"`)
	s.fold()
	s.result(s.command(glasses.TypeDisplayShow, json.RawMessage(menu)))
	s.see(rowText(5) + ` === "hinge: folded"`)
	s.see(`/^result: hinge_closed in \d+ ms, display\.show: /.test(` + rowText(7) + `)`)
	s.see(`(() => { const code = document.querySelector('#log > li[data-seq="7"] .code'); return code.textContent === "hinge_closed" && getComputedStyle(code).fontWeight >= 600; })()`)
	s.command("com.example.note", map[string]string{"text": hostile})
	s.see(`(` + rowText(8) + ` ?? "").startsWith('com.example.note: {"text":"</script><img src=x')`)
	// An app may use one of the service's types with its own payload.
	s.row(glasses.Event{Kind: glasses.KindEvent, Chip: glasses.ChipCustom, Type: "phrases.announce", ID: "odd",
		Sender: glasses.SenderApp, Payload: json.RawMessage(`{"phrases":7}`)})
	s.see(rowText(9) + ` === 'phrases.announce: {"phrases":7}'`)
	s.clickRow(8)
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#log > li[data-seq="8"] summary').click()`))
	s.see(`document.querySelector('#log > li[data-seq="8"] pre').textContent.includes('</script><img src=x')`)
	s.see(`JSON.parse(document.querySelector('#log > li[data-seq="8"] pre').textContent).seq === 8`)
	if eval[bool](s, `Boolean(window.isHacked) || Boolean(document.querySelector('#log img[src="x"]'))`) {
		t.Error("text of the app became markup")
	}
	// The search finds words that are not in the JSON.
	s.do(chromedp.Evaluate[chromedp.Void](`{ const e = document.querySelector("#search"); e.value = "20 %"; e.dispatchEvent(new Event("input")); }`))
	s.see(`document.querySelector("#log-count").textContent === "1 of 9 events" && document.querySelectorAll("#log > li:not(:has([aria-current]))").length === 1`)
}

// Every frame of the protocol has a sentence.
func TestSimulatorLog_KnowsTheProtocol(t *testing.T) {
	protocol, err := os.ReadFile("../../../glasses/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	type frame struct {
		Type    string          `json:"type"`
		Kind    string          `json:"kind"`
		Sender  string          `json:"sender"`
		Payload json.RawMessage `json:"payload"`
		Took    int             `json:"took"`
		Of      string          `json:"of"`
	}
	var frames []frame
	for line := range strings.Lines(string(protocol)) {
		var f frame
		if strings.HasPrefix(line, `{"v":1,`) && json.Unmarshal([]byte(line), &f) == nil && f.Type != "com.example.score" {
			frames = append(frames, f)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z.]+)`(?:, `([a-z.]+)`)? \\| `(\\{.*?\\})`").FindAllStringSubmatch(string(protocol), -1) {
		payload := strings.NewReplacer("{…}", `{"id":"x","type":"text"}`, `"bytes":…`, `"bytes":1`, "…", `"x"`, `"request"\|"result"\|"event"`, `"request"`).Replace(m[3])
		if !json.Valid([]byte(payload)) {
			payload = "{}"
		}
		for _, typ := range m[1:3] {
			if typ != "" {
				frames = append(frames, frame{Type: typ, Payload: json.RawMessage(payload)})
			}
		}
	}
	for _, typ := range glasses.CommandTypes() {
		frames = append(frames, frame{Type: typ, Payload: json.RawMessage(
			`{"tree":{"type":"text","text":"a"},"phrases":["a"],"text":"a","sound":"tick","id":"a","ms":1}`)})
	}
	if len(frames) < 60 {
		t.Fatalf("found %d frames in the protocol, want more", len(frames))
	}
	data, err := json.Marshal(frames)
	if err != nil {
		t.Fatal(err)
	}
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Evaluate[chromedp.Void](`import("/assets/words.js").then((m) => { window.said = ` + string(data) + `.map((f) => ({ type: f.type, ...m.words(f) })); })`))
	s.see("window.said")
	for _, bad := range eval[[]string](s, `window.said.filter((w) => !w.text || /[{}]|undefined|NaN|null/.test(w.text)).map((w) => w.type + ": " + w.text)`) {
		t.Errorf("no sentence for %s", bad)
	}
}

func TestSimulatorLog_DoesNotIndentWhatWouldBecomeHuge(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.do(chromedp.Evaluate[chromedp.Void](`import("/assets/words.js").then((m) => { window.words = m; })`))
	s.see("window.words")
	for _, row := range []string{`{"a":[{"b":"]}\\\"[{"},[],{}],"c":1}`, `{"seq":1,"payload":{}}`} {
		if !eval[bool](s, fmt.Sprintf(`words.indented(%q) === JSON.stringify(JSON.parse(%[1]q), null, 2)`, row)) {
			t.Errorf("%s is not indented", row)
		}
	}
	// A payload of 60 KB at the nesting limit would become 4 MB.
	wide := strings.Repeat("[", 60) + "1" + strings.Repeat(",1", 30_000) + strings.Repeat("]", 60)
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	for _, row := range []string{wide, deep} {
		if length := eval[int](s, fmt.Sprintf(`words.indented(%q).length`, row)); length > 8*len(row)+4000 {
			t.Errorf("%.70s… of %d bytes becomes %d characters", row, len(row), length)
		}
	}
}

func TestSimulatorLog_ShowsMedia(t *testing.T) {
	s := newPageTest(t, "rayban_display", withCamera)
	s.do(chromedp.Evaluate[chromedp.Void](`{ window.urls = new Set(); const make = URL.createObjectURL.bind(URL), free = URL.revokeObjectURL.bind(URL);
		URL.createObjectURL = (o) => { const u = make(o); window.urls.add(u); return u; }; URL.revokeObjectURL = (u) => { window.urls.delete(u); free(u); }; }`))
	s.result(s.command(glasses.TypeCameraPhoto, glasses.Photo{Width: 320})) // rows 1, 2
	s.see(`document.querySelector('#log > li[data-seq="2"] .thumb')?.naturalWidth === 320`)
	s.result(s.command(glasses.TypeCameraVideo, glasses.Video{DurationMs: 600, FPS: 10, Width: 160})) // 3, 4
	s.result(s.command(glasses.TypeAudioStart, glasses.AudioStart{SampleRate: 16000}))                // 5, 6
	for range 3 {
		s.next(glasses.TypeAudioChunk, "")
	}
	s.result(s.command(glasses.TypeAudioStop, struct{}{}))
	s.clickRow(2)
	s.see(`document.querySelector('#log > li[data-seq="2"] .medium img').naturalWidth === 320`)
	s.see(`document.querySelector("#past-medium img").naturalWidth === 320`)
	s.picture("log-photo")
	s.clickRow(4)
	s.see(`document.querySelector('#log > li[data-seq="4"] .medium output').textContent === "1 of 6"`)
	s.do(chromedp.Focus(`#log > li[data-seq="4"] .medium input`), chromedp.KeyEvent(kb.End))
	s.see(`document.querySelector('#log > li[data-seq="4"] .medium output').textContent === "6 of 6" && document.querySelector('#log > li[data-seq="4"] .medium img').naturalWidth === 160`)
	s.clickRow(5)
	s.see(`document.querySelector('#log > li[data-seq="5"] audio').duration >= 0.3 && document.querySelector("#past-medium audio")`)
	s.picture("log-sound")
	s.do(chromedp.Click("#past-live"), chromedp.Click(`.filter[data-chip="voice"]`))
	s.see(`document.querySelectorAll("#log .thumb, #log .medium").length === 0`)
	s.see(`window.urls.size === 0`)
}

// The page contains only the visible rows, in order, and announces the total number to assistive technology.
func TestSimulatorLog_IsVirtual(t *testing.T) {
	s := newPageTest(t, "rayban_display")
	s.fillLog(3000)
	const visible = `[...document.querySelectorAll("#log > li")].filter((e) => { const b = e.getBoundingClientRect(), l = document.querySelector("#log").getBoundingClientRect(); return b.top >= l.top - 1 && b.bottom <= l.bottom + 1; })`
	s.see(visible + `.at(-1)?.dataset.seq === "3000"`)
	s.see(`document.querySelectorAll("#log > li").length < 150`)
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#log").scrollTop = 0`))
	s.see(visible + `[0]?.dataset.seq === "1"`)
	s.see(`(() => { const l = document.querySelector("#log > li"); return l.getAttribute("aria-posinset") === "1" && l.getAttribute("aria-setsize") === "3000"; })()`)
	s.fillLog(3000) // the list does not move while the user reads
	s.see(`document.querySelector("#log-count").textContent === "6000 events" && document.querySelector("#log").scrollTop === 0`)
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#log").scrollTop = 1e9`))
	s.see(visible + `.at(-1)?.dataset.seq === "6000"`)
	s.fillLog(10) // at the end, it follows
	s.see(visible + `.at(-1)?.dataset.seq === "6010"`)
	s.see(`(() => { const seqs = [...document.querySelectorAll("#log > li")].map((e) => Number(e.dataset.seq)); return seqs.every((n, i) => i === 0 || n === seqs[i - 1] + 1); })()`)
	// The focus stays on its row while other rows arrive.
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#log > li[data-seq="6010"] button').focus()`), chromedp.KeyEvent(kb.Home))
	s.see(`document.activeElement.closest("li")?.dataset.seq === "1"`)
	s.do(chromedp.KeyEvent(kb.ArrowDown))
	s.see(`document.activeElement.closest("li")?.dataset.seq === "2"`)
	s.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#log").scrollTop = 1e9`))
	s.fillLog(10)
	s.see(visible + `.at(-1)?.dataset.seq === "6020" && document.activeElement.closest("li")?.dataset.seq === "2"`)
	s.do(chromedp.KeyEvent(kb.End))
	s.see(`document.activeElement.closest("li")?.dataset.seq === "6020"`)
	// The details of the chosen row push the rows below it down.
	s.clickRow(6018)
	s.see(`(() => { const of = (n) => document.querySelector('#log > li[data-seq="' + n + '"]').getBoundingClientRect(); return Math.abs(of(6019).top - of(6018).bottom) < 1.5 && of(6018).height > 1.5 * of(6019).height; })()`)
}
