package search

import (
	"regexp"
	"slices"
	"strings"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses/guide"
)

// page returns the complete passages of a page in order, as many as fit in an answer. Next of the last passage lists
// the rest. A limit of 0 or less means no limit. If there is no page with the id, the result is empty.
func (x *Index) page(id string, limit int) []Passage {
	if limit <= 0 {
		limit = len(x.entries)
	}
	found := []Passage{}
	var rest []string
	size := 0
	for _, e := range x.entries {
		if e.page.ID != id {
			continue
		}
		p := e.passage(0, maxAsked)
		size += len(p.Passage)
		if len(rest) > 0 || len(found) == limit || len(found) > 0 && size > maxAsked {
			rest = append(rest, p.ID)
			continue
		}
		p.Next = []string{}
		found = append(found, p)
	}
	if len(found) > 0 {
		last := &found[len(found)-1]
		page, _ := docs.Find(id)
		last.Next = append(append(last.Next, rest...), page.Next...)
	}
	return found
}

// entryOf returns the section with the given id. A heading that is directly followed by another heading has no text,
// so entryOf returns the first section below it.
func (x *Index) entryOf(id string) (entry, bool) {
	name, _, _ := strings.Cut(id, "#")
	page, _ := docs.Find(name)
	from := slices.IndexFunc(page.Sections, func(s docs.Section) bool { return s.ID == id })
	if from < 0 {
		return entry{}, false
	}
	for _, s := range page.Sections[from:] {
		if i := slices.IndexFunc(x.entries, func(e entry) bool { return e.section.ID == s.ID }); i >= 0 {
			return x.entries[i], true
		}
	}
	return entry{}, false
}

// idForm matches a query that looks like an id: no spaces, and a dash or an anchor.
var idForm = regexp.MustCompile(`^[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(#[A-Za-z0-9-]+|-[A-Za-z0-9]+)$`)

// Nearest returns the known id that is most similar to a query that looks like an id but matches none. It prefers ids
// on the page that the query names, and pages over sections. For any other query it returns "".
func (x *Index) Nearest(query string) string {
	query = strings.TrimSpace(query)
	if _, known := x.entryOf(query); known || len(query) > MaxQuery || !idForm.MatchString(query) {
		return ""
	}
	query = strings.ToLower(query)
	name, _, _ := strings.Cut(query, "#")
	_, onPage := docs.Find(name)
	nearest, least := "", 0
	for _, e := range x.entries {
		id := e.section.ID
		if onPage && e.page.ID != name {
			continue
		}
		d := 2 * guide.EditDistance([]rune(query), []rune(id))
		if id != e.page.ID {
			d++
		}
		if nearest == "" || d < least {
			nearest, least = id, d
		}
	}
	return nearest
}
