package search

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/service-dev/service/docs"
)

// marked writes matches in angle brackets.
func marked(list []Fragment) string {
	var out strings.Builder
	for _, f := range list {
		if f.Match {
			out.WriteString("<" + f.Text + ">")
		} else {
			out.WriteString(f.Text)
		}
	}
	return out.String()
}

func TestExcerpt_ShowsWhereTheWordsAre(t *testing.T) {
	for _, c := range []struct{ passage, query, want string }{
		{"A **list** of [pages](pages) with `display.show`.", "lists display", "A <list> of pages with <display.show>."},
		{"one two three four five six seven eight nine ten button twelve thirteen", "button",
			"… eight nine ten <button> twelve thirteen"},
		{"one two three four five six seven eight nine ten", "nothing", "one two three four five six seven eight …"},
		{"Scrolling\n\n```sh\nservicectl run\n```\n\n| a | b |\n|---|---|\n| c | d |", "scroll",
			"<Scrolling> servicectl run a b c d"},
		{"- `\"overflow\":\"scroll\"` turns", "scroll", `"overflow":"<scroll>" turns`},
		{"", "x", ""},
	} {
		if got := marked(Excerpt(c.passage, c.query, 42)); got != c.want {
			t.Errorf("Excerpt(%q, %q)\ngot  %q\nwant %q", c.passage, c.query, got, c.want)
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	for _, p := range docs.Pages() {
		f.Add(p.Markdown, p.Title, 200)
	}
	f.Fuzz(func(t *testing.T, passage, query string, length int) {
		length %= 1000
		list := Excerpt(passage, query, length)
		size, longest := 0, 0
		for _, part := range list {
			size += len(part.Text)
		}
		for _, word := range strings.Fields(passage) {
			longest = max(longest, len(word))
		}
		if most := max(length, longest) + len("…  …") + 1; size > most {
			t.Errorf("the excerpt has %d bytes, want at most %d", size, most)
		}
		if utf8.ValidString(passage) && !utf8.ValidString(marked(list)) {
			t.Error("the excerpt is not valid UTF-8")
		}
	})
}
