// Package search searches the bundled documentation (docs). It ranks sections with BM25, in memory, with a light
// stemmer and extra weight for titles. It returns passages and suggestions for further reading, and is independent of
// tools and sessions.
package search

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/service-dev/service/docs"
)

// Limits of a search.
const (
	DefaultLimit = 5
	MaxLimit     = 20
	MaxQuery     = 500   // characters; callers reject longer queries, Search ignores the rest
	maxPassage   = 1600  // bytes of a passage in a list of results; a search for its id returns the complete passage
	maxAsked     = 16000 // bytes of a passage, or of a page's passages together, requested by id
)

// Passage is a section that matches the query.
type Passage struct {
	// ID is page or page#anchor.
	ID string `json:"id"`
	// Page and Title locate the passage: the page's id, and the titles of page and section.
	Page  string `json:"page"`
	Title string `json:"title"`
	Topic string `json:"topic"`
	// Passage is Markdown; a long one is cut at the end of a line.
	Passage string `json:"passage"`
	// Score is in thousandths and comparable within one answer only.
	Score int `json:"score"`
	// Next lists ids for further reading.
	Next []string `json:"next"`
}

// These are BM25's usual constants and the weight of a word in a title.
const (
	k1          = 1.2
	b           = 0.75
	titleWeight = 3
)

// referenceWeight is the weight of a passage on a reference page. References mention almost every word, and would
// otherwise rank above pages that explain how to do something.
const referenceWeight = 0.6

// Index is the searchable corpus. It is immutable.
type Index struct {
	entries []entry

	// These are counted only over pages that are not references, so that references do not change the ranking of the
	// others.
	guides int            // number of sections
	df     map[string]int // term to the number of sections that contain it
	mean   float64        // mean length of a section, in terms
}

type entry struct {
	page    docs.Page
	section docs.Section
	tf      map[string]float64
	length  float64
	title   map[string]bool // terms of the section's title
}

// Bundled searches the bundled corpus. The first search builds its index, which takes a few milliseconds. It is not
// built earlier, because most daemons never search, and the index is larger than everything else in the memory of an
// idle daemon.
type Bundled struct{}

var bundled = sync.OnceValue(func() *Index { return build(docs.Pages()) })

// Search is like Index.Search.
func (Bundled) Search(query, topic string, limit int) []Passage {
	return bundled().Search(query, topic, limit)
}

// Nearest is like Index.Nearest.
func (Bundled) Nearest(query string) string { return bundled().Nearest(query) }

func build(pages []docs.Page) *Index {
	x := &Index{df: map[string]int{}}
	total := 0.0
	for _, page := range pages {
		for _, section := range page.Sections {
			if section.Markdown == "" {
				continue // skip a heading without text
			}
			e := entry{page: page, section: section, tf: map[string]float64{}, title: map[string]bool{}}
			for _, term := range terms(section.Title) {
				e.title[term] = true
			}
			e.count(section.Markdown)
			e.count(section.Title)
			if section.ID != page.ID {
				e.count(page.Title)
			} else {
				e.count(page.Summary)
			}
			x.entries = append(x.entries, e)
			if page.Reference {
				continue
			}
			for term := range e.tf {
				x.df[term]++
			}
			total += e.length
			x.guides++
		}
	}
	x.mean = total / float64(max(1, x.guides))
	return x
}

func (e *entry) count(text string) {
	for _, term := range terms(text) {
		e.tf[term]++
		e.length++
	}
}

// Search returns the best passages, best first. topic, unless empty, limits it to one subject; limit is clamped.
// Words that do not occur in any page are ignored; if no words are left, the result is empty. A query that is the id
// of a passage returns only that passage, complete and regardless of topic. The id of a page returns as many of its
// passages as fit, in order, or at most limit if that is positive. A topic without a query returns the beginning of
// each of its pages.
func (x *Index) Search(query, topic string, limit int) []Passage {
	if cut := []rune(query); len(cut) > MaxQuery {
		query = string(cut[:MaxQuery])
	}
	query = strings.TrimSpace(query)
	if found := x.page(query, limit); len(found) > 0 {
		return found
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	if query == "" && topic != "" {
		return x.overview(topic, min(limit, MaxLimit))
	}
	if e, ok := x.entryOf(query); ok {
		return []Passage{e.passage(0, maxAsked)}
	}
	asked := terms(query)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	type hit struct {
		at    int
		score float64
	}
	var hits []hit
	for i, e := range x.entries {
		if topic != "" && e.page.Topic != topic {
			continue
		}
		if s := x.score(e, asked); s > 0 {
			hits = append(hits, hit{i, s})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	found := []Passage{}
	for _, h := range hits[:min(len(hits), limit, MaxLimit)] {
		found = append(found, x.entries[h.at].passage(h.score, maxPassage))
	}
	return found
}

// overview returns the beginning of each page of a topic, in reading order.
func (x *Index) overview(topic string, limit int) []Passage {
	found := []Passage{}
	page := ""
	for _, e := range x.entries {
		if e.page.Topic != topic || e.page.ID == page || len(found) == limit {
			continue
		}
		page = e.page.ID
		found = append(found, e.passage(0, maxPassage))
	}
	return found
}

func (x *Index) score(e entry, asked []string) float64 {
	sum := 0.0
	for _, term := range asked {
		tf := e.tf[term]
		if tf == 0 {
			continue
		}
		n := float64(x.df[term])
		idf := math.Log(1 + (float64(x.guides)-n+0.5)/(n+0.5))
		sum += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*e.length/x.mean))
		if e.title[term] { // in a short title, each word counts more
			sum += titleWeight * idf / float64(1+len(e.title))
		}
	}
	if e.page.Reference {
		sum *= referenceWeight
	}
	return sum
}

func (e entry) passage(score float64, most int) Passage {
	p := Passage{ID: e.section.ID, Page: e.page.ID, Title: e.page.Title, Topic: e.page.Topic,
		Score:   int(math.Round(score * 1000)),
		Passage: cut(e.section.Markdown, most), Next: append([]string{}, e.page.Next...)}
	if e.section.ID != e.page.ID {
		p.Title += ": " + e.section.Title
	}
	if after, ok := e.following(); ok {
		p.Next = append([]string{after}, p.Next...)
	}
	return p
}

// following returns the next section of the same page.
func (e entry) following() (string, bool) {
	for i, s := range e.page.Sections {
		if s.ID == e.section.ID && i+1 < len(e.page.Sections) {
			return e.page.Sections[i+1].ID, true
		}
	}
	return "", false
}

// cut shortens a text to most bytes, at the end of a line and outside code blocks.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	short := text[:most]
	if i := strings.LastIndexByte(short, '\n'); i > 0 {
		short = short[:i]
	}
	if strings.Count(short, "\n```")%2 == 1 || strings.HasPrefix(short, "```") && strings.Count(short, "\n```")%2 == 0 {
		short += "\n```"
	}
	return strings.ToValidUTF8(short, "") + "\n…"
}
