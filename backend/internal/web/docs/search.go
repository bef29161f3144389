package docs

import (
	"strings"

	"github.com/service-dev/service/docs/search"
)

// Results holds the results of a search.
type Results struct {
	Query string
	Found []Result
}

// Result is one result, with the part of the page that fits best.
type Result struct {
	Link
	Topic   string
	Excerpt []search.Fragment
}

const (
	maxResults    = 20
	excerptLength = 220 // bytes
)

// Query normalises a query: it truncates it to the maximum length and removes superfluous spaces.
func Query(text string) string {
	query := strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if cut := []rune(query); len(cut) > search.MaxQuery {
		query = string(cut[:search.MaxQuery])
	}
	return query
}

// Search returns the page of results. The tool searchDocs uses the same index.
func Search(query string) Page {
	found := &Results{Query: query}
	for _, p := range (search.Bundled{}).Search(query, "", maxResults) {
		found.Found = append(found.Found, Result{Link: Link{Title: p.Title, URL: "/docs/" + p.ID},
			Topic: topicTitles[p.Topic], Excerpt: search.Excerpt(p.Passage, query, excerptLength)})
	}
	return Page{Title: "Search", Summary: "Search results in the documentation.", Search: found}
}
