package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/docs/search"
)

type searchDocs struct{}

type searchDocsArgs struct {
	Query string   `json:"query" jsonschema:"A question, or the id of a passage or page."`
	Topic string   `json:"topic" jsonschema:"Without query: its overview."`
	Limit *integer `json:"limit" jsonschema:"1 to 20."`
}

type searchDocsAnswer struct {
	Passages []search.Passage `json:"passages"`
	Topics   []string         `json:"topics,omitempty" jsonschema:"If nothing was found: the known topics."`
	Summary  string           `json:"summary"`
}

func (t searchDocs) definition() definition {
	return define(readOnly("searchDocs", "Search the documentation",
		answersOf[searchDocsAnswer](required("passages", "summary"),
			on("passages.passage", says("Markdown.")),
			on("passages.score", says("Comparable only within this result.")),
			on("passages.next", says("Ids for further reading; pass one as query.")),
		),
	), t.run,
		on("query", upTo(search.MaxQuery)),
		on("topic", oneOf(docs.Topics()...)),
		on("limit", byDefault(search.DefaultLimit)),
	)
}

func (t searchDocs) run(_ context.Context, c call, args searchDocsArgs) (any, error) {
	if strings.TrimSpace(args.Query) == "" && args.Topic == "" {
		return nil, invalid("query is empty", "Ask a question, e.g. \"how do I show a list\", or pass a topic: "+
			strings.Join(docs.Topics(), ", ")+".")
	}
	if n := utf8.RuneCountInString(args.Query); n > search.MaxQuery {
		return nil, invalid(fmt.Sprintf("query has %d characters, which is more than %d", n, search.MaxQuery),
			"Ask one thing in a few words; several questions are several calls.")
	}
	if args.Topic != "" && !slices.Contains(docs.Topics(), args.Topic) {
		return nil, notOneOf("topic", docs.Topics())
	}
	nearest := search.Bundled{}.Nearest(args.Query)
	if nearest != "" && strings.Contains(args.Query, "#") {
		return nil, invalid(fmt.Sprintf("no passage has the id %q", args.Query),
			fmt.Sprintf("Pass the nearest id, %q; to search, ask in words.", nearest))
	}
	limit := 0 // for a page, as many passages as fit; for a search, DefaultLimit
	if args.Limit != nil {
		limit = int(clamp(args.Limit, search.DefaultLimit, 1, search.MaxLimit))
	}
	found := search.Bundled{}.Search(args.Query, args.Topic, limit)
	if len(found) == 0 {
		summary := "Nothing was found. Ask in other words, or omit topic."
		if nearest != "" {
			summary = fmt.Sprintf("No page has the id %q; the nearest id is %q.", args.Query, nearest)
		}
		return searchDocsAnswer{Passages: []search.Passage{}, Topics: docs.Topics(), Summary: summary}, nil
	}
	summary := fmt.Sprintf("%d passages; the best is %q (%s).", len(found), found[0].Title, found[0].ID)
	if found[0].ID == strings.TrimSpace(args.Query) { // requested by its id
		summary = fmt.Sprintf("%d passages of %s in order; next of the last names what follows.", len(found), found[0].Page)
	}
	if nearest != "" {
		summary = fmt.Sprintf("No page has the id %q; the nearest id is %q. Results for its words: %s", args.Query, nearest,
			summary)
	}
	return searchDocsAnswer{Passages: found, Summary: summary}, nil
}
