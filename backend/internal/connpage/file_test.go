package connpage

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/guide"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// chef returns a page that uses every setting.
func chef() Page {
	p := defaults("com.example.chef", "Chef")
	p.PageID, p.Version, p.Title, p.Accent = "cp_abcdefghij234567abcd", 3, "Sous-chef", "#b3541e"
	p.Description = "Reads recipes to you, step by step, while your hands are busy."
	p.Capabilities = []string{guide.Display, guide.Camera, guide.Transcription, guide.Speech, guide.State}
	p.Phrases = []Phrase{{"Next step", "Reads the next step of the recipe"}, {"Start the timer", ""}}
	p.Toggles = []Toggle{{"captions", "Show captions in the glasses", true}, {"chime", "Chime when a timer ends", false}}
	p.SupportURL, p.PrivacyURL = "https://chef.example.org/help", "https://chef.example.org/privacy"
	return p
}

func TestGoldenFile(t *testing.T) {
	name, html, err := (&Service{}).File(chef())
	if err != nil || name != FileName {
		t.Fatalf("%s (%v)", name, err)
	}
	const golden = "testdata/chef.html"
	if *update {
		if err := os.WriteFile(golden, html, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != string(html) {
		t.Errorf("%s has changed (error %v); if that is intended, run with -update", golden, err)
	}
	if len(html) > 40<<10 {
		t.Errorf("%d bytes", len(html))
	}
}

// Even the largest page is small, loads nothing from other sites, and cannot navigate the page that frames it.
func TestLargestFile(t *testing.T) {
	const nasty = `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'`
	fill := func(n int) string { return nasty + strings.Repeat("é", n-len(nasty)) }
	p := chef()
	p.Title, p.Description = fill(maxTitle), fill(maxDescription)
	p.Capabilities = guide.CapabilityIDs()
	p.Phrases, p.Toggles = nil, nil
	for i := range maxPhrases {
		p.Phrases = append(p.Phrases, Phrase{fill(maxPhrase), fill(maxDoes)})
		p.Toggles = append(p.Toggles, Toggle{"toggle-" + string(rune('a'+i)), fill(maxLabel), true})
	}
	d, err := Render(p, Live)
	if err != nil {
		t.Fatal(err)
	}
	text := string(d.HTML)
	if len(text) > 40<<10 || strings.Contains(text, "<img") || strings.Count(text, "<script") != 1 {
		t.Errorf("got %d bytes and %d scripts, want at most 40 KB, one script and no image", len(text), strings.Count(text,
			"<script"))
	}
	if m := regexp.MustCompile(`(src=|url\(|@import|<link|style="|\son[a-z]+=")`).FindString(regexp.MustCompile(`&#34;|&lt;.*?&gt;`).ReplaceAllString(text, "")); m != "" {
		t.Errorf("the page contains %q", m)
	}
	if len(words) != len(guide.CapabilityIDs()) || strings.Count(text, `<li><strong>`) != len(words) {
		t.Error("a capability has no description")
	}
}

func TestSampleRunsNoScript(t *testing.T) {
	for state, says := range map[State]string{Disconnected: "Not connected", Connected: "82%"} {
		d, err := Render(chef(), state)
		if text := string(d.HTML); err != nil || strings.Contains(text, "<script") || strings.Contains(d.Policy,
			"script-src") || !strings.Contains(text, says) {
			t.Errorf("state %d: got policy %s, error %v, want the sample text and no script", state, d.Policy, err)
		}
	}
	p := chef()
	p.Theme = "dark"
	if d, err := Render(p, Live); err != nil || !strings.Contains(string(d.HTML),
		`<meta name="color-scheme" content="dark">`) {
		t.Errorf("dark theme: want a dark color-scheme (error %v)", err)
	}
}
