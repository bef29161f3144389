package search

import (
	"regexp"
	"slices"
	"strings"
)

// Fragment is a part of an excerpt. Match is set if it is a word of the query.
type Fragment struct {
	Text  string
	Match bool
}

var (
	fenceLine  = regexp.MustCompile("(?m)^ *```.*$")
	tableRule  = regexp.MustCompile(`(?m)^\|[-:| ]+$`)
	listMark   = regexp.MustCompile(`(?m)^ *([-*]|[0-9]+\.) `)
	wordRun    = regexp.MustCompile(`[\pL\pN_]+(\.[\pL\pN_]+)*`)
	linkTarget = regexp.MustCompile(`\]\([^()\s]+\)`)
	marks      = strings.NewReplacer("**", "", "`", "", "|", " ", "[", "", "\\", "")
)

// Excerpt returns the part of a Markdown passage with the most words of the query, as plain text of at most length
// bytes. It never cuts a word, so it returns a single longer word whole. If the passage contains no word of the
// query, it returns the beginning. An ellipsis marks omitted text.
func Excerpt(passage, query string, length int) []Fragment {
	for _, mark := range []*regexp.Regexp{fenceLine, tableRule, listMark} {
		passage = mark.ReplaceAllString(passage, "")
	}
	words := strings.Fields(marks.Replace(linkTarget.ReplaceAllString(passage, "")))
	asked := map[string]bool{}
	for _, term := range terms(query) {
		asked[term] = true
	}
	found := make([]string, len(words)) // the query term that each word contains
	for i, word := range words {
		for _, term := range terms(word) {
			if asked[term] {
				found[i] = term
			}
		}
	}
	from, to := best(words, found, length)
	var out []Fragment
	add := func(text string, match bool) {
		if n := len(out); text != "" && n > 0 && out[n-1].Match == match {
			out[n-1].Text += text
		} else if text != "" {
			out = append(out, Fragment{text, match})
		}
	}
	if from > 0 {
		add("… ", false)
	}
	for i, word := range words[from:to] {
		if i > 0 {
			add(" ", false)
		}
		at := 0
		for _, run := range wordRun.FindAllStringIndex(word, -1) {
			add(word[at:run[0]], false)
			at = run[1]
			add(word[run[0]:at], slices.ContainsFunc(terms(word[run[0]:at]), func(t string) bool { return asked[t] }))
		}
		add(word[at:], false)
	}
	if to < len(words) {
		add(" …", false)
	}
	return out
}

// best returns the run of words of at most length bytes that contains the most different terms, or the first such
// run. The run begins a few words before its first term, to show the context.
func best(words, found []string, length int) (from, to int) {
	most := -1
	for start := range words {
		if start > 0 && found[min(start+3, len(words)-1)] == "" {
			continue
		}
		seen, size, end := map[string]bool{}, 0, start
		for ; end < len(words) && (end == start || size+len(words[end]) <= length); end++ {
			size += len(words[end]) + 1
			if found[end] != "" {
				seen[found[end]] = true
			}
		}
		if len(seen) > most {
			most, from, to = len(seen), start, end
		}
		if end == len(words) {
			break // no later run contains more terms
		}
	}
	return from, to
}
