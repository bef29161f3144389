package search

import (
	"strings"
	"unicode"
)

// stop is the set of words that searches ignore.
var stop = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a an and are as at be been but by can could did do does for from had has have how i if in into is it its just like
		make many may me might my no not of on or our should so some than that the their them then there these they this those to too try up use used
		was we what when where which while who why will with would you your`) {
		m[w] = true
	}
	return m
}()

// synonyms maps the stem of each synonym to a common stem.
var synonyms = func() map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(`show display screen panel
picture photo image
user wearer person
remove delete uninstall
test prove
fail error refuse refuse
telemetry usage
server backend
speak say said
store keep kept save
folder directory`, "\n") {
		words := strings.Fields(line)
		for _, w := range words {
			m[stem(w)] = stem(words[0])
		}
	}
	return m
}()

// terms splits text into stems. For a name such as display.show or injectInput, it returns the name and its parts.
func terms(text string) []string {
	var list []string
	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '.' }) {
		word = strings.Trim(word, "._")
		parts := split(word)
		if len(parts) > 1 {
			list = append(list, strings.ToLower(word))
		}
		for _, part := range parts {
			if len(part) > 1 && !stop[part] {
				list = append(list, canonical(stem(part)))
			}
		}
	}
	return list
}

func canonical(term string) string {
	if s, ok := synonyms[term]; ok {
		return s
	}
	return term
}

// split splits a name at dots, underscores and capitals. For setTimeout it returns set and timeout.
func split(word string) []string {
	var parts []string
	start := 0
	runes := []rune(word)
	for i, r := range runes {
		if r == '.' || r == '_' {
			parts = append(parts, strings.ToLower(string(runes[start:i])))
			start = i + 1
		} else if i > start && unicode.IsUpper(r) && unicode.IsLower(runes[i-1]) {
			parts = append(parts, strings.ToLower(string(runes[start:i])))
			start = i
		}
	}
	return append(parts, strings.ToLower(string(runes[start:])))
}

// stem removes the most common endings of an English word, so that scrolls, scrolled and scrolling have one stem.
func stem(w string) string {
	for _, end := range []struct{ suffix, put string }{{"ies", "y"}, {"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"},
		{"xes", "x"}} {
		if strings.HasSuffix(w, end.suffix) && len(w) > len(end.suffix)+1 {
			return strings.TrimSuffix(w, end.suffix) + end.put
		}
	}
	if strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && len(w) > 3 {
		w = strings.TrimSuffix(w, "s")
	}
	for _, suffix := range []string{"ing", "ed"} {
		if rest := strings.TrimSuffix(w, suffix); rest != w && len(rest) > 2 {
			w = rest
			if n := len(w); w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
				w = w[:n-1] // remove doubled consonants, as in running and stopped
			}
			break
		}
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}
