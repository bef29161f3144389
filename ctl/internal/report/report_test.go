package report_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"github.com/service-dev/service/ctl/internal/report"
)

// panel returns a PNG picture of a single colour.
func panel(tb testing.TB, c color.Color) report.Picture {
	tb.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 8, 4), color.Palette{c})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// elements returns the number of occurrences of each element, and all text of the page except style and script.
func elements(tb testing.TB, page []byte) (map[string]int, string) {
	tb.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		tb.Fatal(err)
	}
	counts := map[string]int{}
	var text strings.Builder
	for n := range root.Descendants() {
		switch {
		case n.Type == html.ElementNode:
			counts[n.Data]++
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					tb.Errorf("<%s> has the inline attribute %s=%q", n.Data, a.Key, a.Val)
				}
				if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "data:image/png;base64,") &&
					!strings.HasPrefix(a.Val, "#run-") {
					tb.Errorf("<%s> refers to the external %q", n.Data, a.Val)
				}
			}
		case n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "style":
			text.WriteString(n.Data + "\n")
		}
	}
	return counts, text.String()
}

func results(tb testing.TB, text string) report.Page {
	tb.Helper()
	black, red := panel(tb, color.Black), panel(tb, color.RGBA{255, 0, 0, 255})
	return report.Page{
		Verdict: "1 of 4 failed, 1 could not be run, 1 not run",
		Command: "servicectl session run " + text, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: time.Second,
		Interrupted: true,
		Runs: []report.Run{
			{Name: text + " one", Title: text, DeviceModel: text, State: report.Failed, Duration: time.Minute,
				Steps: []report.Step{
					{Number: 1, Name: text, Verdict: "pass"},
					{Number: 2, Name: text, Verdict: "fail", Expected: text, Seen: text, Panel: black},
					{Number: 3, Name: text, Verdict: "skipped"},
				},
				Diffs: []report.Diff{{Name: text, Message: text, WantPanel: black, GotPanel: red, Marked: red},
					{Name: text, Message: text, Want: text, Got: text}},
				Film:  []report.Frame{{Caption: text, Panel: black}, {Caption: text, Panel: red, Failed: true}},
				Notes: []string{text}, Output: text, LeftOut: 3},
			{Name: text + " two", State: report.Broken, Problem: text, Hint: text},
			{Name: text + " three", State: report.NotRun, Problem: text},
			{Name: text + " four", State: report.Passed},
		},
	}
}

func TestEncode_SaysWhatFailed(t *testing.T) {
	page, err := report.Encode(results(t, "cart"))
	if err != nil {
		t.Fatal(err)
	}
	counts, text := elements(t, page)
	for _, want := range []string{"FAIL", "1 of 4 failed, 1 could not be run, 1 not run", "This report was interrupted",
		"3 pictures left out", "Step 2 failed at 0.000 s: cart", "Not as recorded: cart", "What differs, in red",
		"cart four", "60.000 s", "2 January 2026"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if counts["script"] != 1 || counts["style"] != 1 || counts["img"] != 8 || counts["input"] != 1 ||
		counts["details"] != 1 || counts["link"] != 0 {
		t.Errorf("unexpected elements: %v", counts)
	}
	passed, err := report.Encode(report.Page{Verdict: "1 of 1 passed", Runs: []report.Run{{Name: "a", State: report.Passed}}})
	if _, text := elements(t, passed); err != nil || !strings.Contains(text, "PASS") ||
		!strings.Contains(text, "1 of 1 passed") || strings.Contains(text, "interrupted") {
		t.Errorf("a passed report: got error %v and unexpected text\n%s", err, text)
	}
}

// The page's policy allows only its own style and script, by their hashes.
func TestEncode_PolicyFitsThePage(t *testing.T) {
	page, err := report.Encode(results(t, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, []byte(`content="default-src 'none'; img-src data:; style-src 'sha256-`)) {
		t.Error("the page has no content security policy")
	}
	if bytes.Contains(page, []byte("ZgotmplZ")) || bytes.Contains(page, []byte("POLICY")) {
		t.Error("the template rejected one of its own values")
	}
}

func TestEncode_ShowsNoBrokenPicture(t *testing.T) {
	page, err := report.Encode(report.Page{Runs: []report.Run{{State: report.Failed,
		Film: []report.Frame{{Panel: report.Picture("GIF89a")}}}}})
	if counts, text := elements(t, page); err != nil || counts["img"] != 0 || !strings.Contains(text, "no picture") {
		t.Errorf("a picture that is not a PNG: %v, elements %v", err, counts)
	}
}

// The name of an app or a file is always rendered as text.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{"plain", "<script>alert(1)</script>", "]]>", "\x1b[2J\x00\x7f", "\u202egnp.exe",
		`"><img src=x onerror=alert(1)>`, "</style><script>", "{{.}}", "\xff\xfe", "javascript:alert(1)", "<!--", "a\nb\tc"} {
		f.Add(text)
	}
	shape, _ := elements(f, encoded(f, "x"))
	f.Fuzz(func(t *testing.T, text string) {
		page := encoded(t, text)
		counts, shown := elements(t, page)
		// Optional parts are omitted if their text is empty.
		if text != "" {
			for name, n := range shape {
				if counts[name] != n {
					t.Errorf("got %d <%s>, want %d", counts[name], name, n)
				}
			}
		}
		if len(counts) > len(shape) {
			t.Errorf("got elements %v, want %v", counts, shape)
		}
		for _, r := range shown {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Fatalf("the page contains the unprintable character %q", r)
			}
		}
	})
}

func encoded(tb testing.TB, text string) []byte {
	tb.Helper()
	page, err := report.Encode(results(tb, text))
	if err != nil {
		tb.Fatal(err)
	}
	return page
}
