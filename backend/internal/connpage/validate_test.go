package connpage

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func ptr[T any](v T) *T { return &v }

func TestClean(t *testing.T) {
	c, err := clean(Change{Title: ptr(" Sous-chef "), Description: ptr(""), Accent: ptr("#AABBCC"),
		Capabilities: &[]string{"speech", "display", "speech"},
		Phrases:      &[]Phrase{{" Next step ", " "}}, Toggles: &[]Toggle{{"captions", " Captions ", true}},
		SupportURL: ptr(" https://example.org/help "), PrivacyURL: ptr("")})
	if err != nil || *c.Title != "Sous-chef" || *c.Accent != "#aabbcc" || !slices.Equal(*c.Capabilities,
		[]string{"display", "speech"}) ||
		(*c.Phrases)[0] != (Phrase{"Next step", ""}) || (*c.Toggles)[0] != (Toggle{"captions", "Captions", true}) ||
		*c.SupportURL != "https://example.org/help" || c.Theme != nil {
		t.Errorf("%+v (%v)", c, err)
	}
	long := func(n int) string { return strings.Repeat("é", n) }
	for field, bad := range map[string][]Change{
		"title": {{Title: ptr(" ")}, {Title: ptr(long(81))}, {Title: ptr("a\nb")}, {Title: ptr("a\u202eb")},
			{Title: ptr("\xff")}},
		"description": {{Description: ptr(long(401))}, {Description: ptr("a\x00")}},
		"theme":       {{Theme: ptr("blue")}, {Theme: ptr("")}},
		"accent": {{Accent: ptr("red")}, {Accent: ptr("#fff")}, {Accent: ptr("#12345g")},
			{Accent: ptr("#000000;}")}},
		"capabilities":      {{Capabilities: &[]string{"telepathy"}}},
		"phrases":           {{Phrases: ptr(make([]Phrase, 21))}},
		"phrases[0].phrase": {{Phrases: &[]Phrase{{"", "x"}}}, {Phrases: &[]Phrase{{long(81), ""}}}},
		"phrases[1].does":   {{Phrases: &[]Phrase{{"Go", "x"}, {"Stop", long(121)}}}},
		"toggles":           {{Toggles: ptr(make([]Toggle, 21))}},
		"toggles[0].id":     {{Toggles: &[]Toggle{{"Captions", "x", true}}}, {Toggles: &[]Toggle{{`a"><b`, "x", true}}}},
		"toggles[1].id":     {{Toggles: &[]Toggle{{"a", "x", true}, {"a", "y", true}}}},
		"toggles[0].label":  {{Toggles: &[]Toggle{{"a", "", true}}}, {Toggles: &[]Toggle{{"a", long(81), true}}}},
		"supportUrl": {{SupportURL: ptr("http://example.org")}, {SupportURL: ptr("javascript:alert(1)")},
			{SupportURL: ptr("https://a:b@example.org")}, {SupportURL: ptr("https://")}},
		"privacyUrl": {{PrivacyURL: ptr("mailto:a@example.org")}, {PrivacyURL: ptr("https://example.org/" +
			long(500))}},
	} {
		for i, c := range bad {
			_, err := clean(c)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Field != field || !strings.HasPrefix(invalid.Message, field) {
				t.Errorf("%s, case %d: got %v, want an InvalidError for the field", field, i, err)
			}
		}
	}
}

// One attempt names every invalid field, in the order of the form.
func TestClean_NamesEveryInvalidField(t *testing.T) {
	_, err := clean(Change{Title: ptr(""), Accent: ptr("red"), Theme: ptr("blue"), Description: ptr("fine"),
		Phrases: &[]Phrase{{"Go", ""}, {"", "x"}}, Toggles: &[]Toggle{{"No", "", true}, {"a", "A", true}, {"a", "B", true}},
		PrivacyURL: ptr("ftp://example.org")})
	var fields []string
	for _, invalid := range InvalidFields(err) {
		fields = append(fields, invalid.Field)
	}
	want := []string{"title", "accent", "theme", "phrases[1].phrase", "toggles[0].id", "toggles[0].label", "toggles[2].id",
		"privacyUrl"}
	if !slices.Equal(fields, want) {
		t.Errorf("got the fields %v, want %v", fields, want)
	}
	if got := InvalidFields(ErrConflict); got != nil {
		t.Errorf("got the fields %v of another error, want none", got)
	}
}

// Every allowed accent is readable in both themes, and so is text on the accent.
func TestColours_EveryAccentIsReadable(t *testing.T) {
	for n := uint32(0); n <= 0xffffff; n += 0x010307 {
		for _, theme := range []struct{ surface, towards rgb }{{lightSurface, 0}, {darkSurface, 0xffffff}} {
			accent := readable(rgb(n), theme.surface, theme.towards)
			if contrast(accent, theme.surface) < 4.5 || contrast(textOn(accent), accent) < 4.5 {
				t.Fatalf("accent %s becomes %s with text %s: contrast %.2f to the surface, %.2f to the text, want 4.5 or more",
					rgb(n), accent, textOn(accent),
					contrast(accent, theme.surface), contrast(textOn(accent), accent))
			}
		}
	}
	for _, accent := range []string{"red", "#0b6", "", "#"} {
		if colours(accent) != colours(defaultAccent) {
			t.Errorf("accent %q, which is no colour, is drawn as %s, want the default", accent, colours(accent))
		}
	}
	if colours("#AABBCC") != colours("#aabbcc") {
		t.Error("capital letters make another colour")
	}
	if readable(0x0b6b68, lightSurface, 0) != 0x0b6b68 {
		t.Error("a readable accent was changed")
	}
}

func TestDefaultTitle(t *testing.T) {
	for id, want := range map[string]string{"Sous-chef": "Sous-chef", strings.Repeat("ü", 100): strings.Repeat("ü", 80)} {
		if got := defaultTitle(id); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
}

// FuzzClean checks that no accepted change can add an element to the rendered page.
func FuzzClean(f *testing.F) {
	f.Add("Sous-chef", "Cooks with you", "#0b6b68", "captions", "Captions", "https://example.org")
	f.Add("</title><script>", "{{.}}", "#ffffff", "a", "<!-- -->", "https://example.org/\"><x>")
	f.Fuzz(func(t *testing.T, title, about, accent, id, label, address string) {
		c, err := clean(Change{Title: &title, Description: &about, Accent: &accent, Phrases: &[]Phrase{{label, about}},
			Toggles: &[]Toggle{{id, label, true}}, SupportURL: &address})
		if err != nil {
			return
		}
		p := defaults("com.example.app", "App")
		c.apply(&p)
		d, err := Render(p, Live)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(d.HTML); strings.Count(text, "<script") != 1 || strings.Count(text, "<style") != 1 ||
			strings.Count(text, "<title>") != 1 {
			t.Fatalf("want no element that the template does not contain, got:\n%s", text)
		}
	})
}
