// Package docs searches the bundled documentation (proto/docs): BM25 over its sections, in memory, with a light stemmer
// and titles that weigh more. It answers with passages and what to read next; it must not know tools or sessions.
package docs

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/service-dev/service/proto/docs"
)

// Bounds of a search.
const (
	DefaultLimit = 5
	MaxLimit     = 20
	MaxQuery     = 500  // characters; callers refuse longer ones, Search reads no further
	maxPassage   = 1600 // bytes of a passage; the rest is on the page
)

// Passage is one section that answers.
type Passage struct {
	// ID is page or page#anchor.
	ID string `json:"id"`
	// Page and Title say where it stands: the page's id, and its title with the section's.
	Page  string `json:"page"`
	Title string `json:"title"`
	Topic string `json:"topic"`
	// Passage is Markdown; a long one is cut at a line.
	Passage string `json:"passage"`
	// Score is comparable within one answer only; thousandths.
	Score int `json:"score"`
	// Next are ids of what to read after it.
	Next []string `json:"next"`
}

// BM25's usual constants, and how much a word counts in a title.
const (
	k1          = 1.2
	b           = 0.75
	titleWeight = 3
)

// referenceWeight is what a passage of a reference page counts beside one that says how to do something. A reference
// names every word there is, and would otherwise stand before the answer.
const referenceWeight = 0.6

// Index is the corpus, ready to be searched. It does not change.
type Index struct {
	entries []entry

	// Of the pages that are no reference, so that a reference does not change what is found among them.
	guides int            // sections
	df     map[string]int // in how many sections a term is
	mean   float64        // length of a section in terms
}

type entry struct {
	page    docs.Page
	section docs.Section
	tf      map[string]float64
	length  float64
	title   map[string]bool // terms of the section's title
}

// New builds the index of the bundled corpus; a few milliseconds.
var New = sync.OnceValue(func() *Index { return build(docs.Pages()) })

func build(pages []docs.Page) *Index {
	x := &Index{df: map[string]int{}}
	total := 0.0
	for _, page := range pages {
		for _, section := range page.Sections {
			if section.Markdown == "" {
				continue // a heading over headings
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

// Search finds the best passages, best first. topic limits it to one subject, unless empty; limit is clamped. Words that
// stand nowhere are ignored; the answer is empty when none is left. A query that is the id of a passage finds that first.
func (x *Index) Search(query, topic string, limit int) []Passage {
	if limit <= 0 {
		limit = DefaultLimit
	}
	if cut := []rune(query); len(cut) > MaxQuery {
		query = string(cut[:MaxQuery])
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
		if strings.TrimSpace(query) == e.section.ID {
			hits = append(hits, hit{i, math.MaxInt32})
		} else if s := x.score(e, asked); s > 0 {
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
		found = append(found, x.entries[h.at].passage(h.score))
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
		if e.title[term] { // a title of one word is about that word, one of four is about four things
			sum += titleWeight * idf / float64(1+len(e.title))
		}
	}
	if e.page.Reference {
		sum *= referenceWeight
	}
	return sum
}

func (e entry) passage(score float64) Passage {
	p := Passage{ID: e.section.ID, Page: e.page.ID, Title: e.page.Title, Topic: e.page.Topic, Score: int(math.Round(score * 1000)),
		Passage: cut(e.section.Markdown), Next: append([]string{}, e.page.Next...)}
	if e.section.ID != e.page.ID {
		p.Title += ": " + e.section.Title
	}
	if after, ok := e.following(); ok {
		p.Next = append([]string{after}, p.Next...)
	}
	return p
}

// following is the section after this one on the page.
func (e entry) following() (string, bool) {
	for i, s := range e.page.Sections {
		if s.ID == e.section.ID && i+1 < len(e.page.Sections) {
			return e.page.Sections[i+1].ID, true
		}
	}
	return "", false
}

func cut(text string) string {
	if len(text) <= maxPassage {
		return text
	}
	short := text[:maxPassage]
	if i := strings.LastIndexByte(short, '\n'); i > 0 {
		short = short[:i]
	}
	if strings.Count(short, "\n```")%2 == 1 || strings.HasPrefix(short, "```") && strings.Count(short, "\n```")%2 == 0 {
		short += "\n```"
	}
	return strings.ToValidUTF8(short, "") + "\n…"
}
