package tools

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/daemon/internal/docs"
	corpus "github.com/service-dev/service/proto/docs"
)

const searchDocsText = `Searches the documentation that comes with this build and returns the passages that answer, as Markdown, with ids and what to read next. ` +
	`Ask in plain words, e.g. "list that scrolls" or "what does busy mean". To read on, pass an id of next (e.g. "display#lists") as query. ` +
	`Use it for questions that the guides leave open: scenarios, recording, CI, settings, accounts, what is not built yet. ` +
	`It needs no account and no network. ` +
	`For one capability with every field and error call getCapabilityGuide, which is complete and exact; for the way as a whole getPlatformInfo.`

// Docs is the bundled documentation.
type Docs interface {
	// Search finds passages, best first; topic limits them to one subject unless it is empty.
	Search(query, topic string, limit int) []docs.Passage
}

type searchDocs struct{ docs Docs }

type searchDocsArgs struct {
	Query string   `json:"query"`
	Topic string   `json:"topic"`
	Limit *integer `json:"limit"`
}

type searchDocsAnswer struct {
	Passages []docs.Passage `json:"passages"`
	Topics   []string       `json:"topics,omitempty"`
	Summary  string         `json:"summary"`
}

func (t searchDocs) definition() definition {
	if t.docs == nil {
		t.docs = docs.New() // the corpus of this build
	}
	return definition{run: t.run, Tool: Tool{
		Name: "searchDocs", Title: "Search the documentation", Description: searchDocsText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(`
			"query":{"type":"string","minLength":1,"maxLength":`+strconv.Itoa(docs.MaxQuery)+`,"description":"A question or some words, or the id of a passage."},
			"topic":{"type":"string","enum":[`+quoted(corpus.Topics())+`],"description":"Only this subject. Left out: all."},
			"limit":{"type":"integer","default":5,"description":"How many passages at most, 1 to 20; other values are clamped."}`, `"query"`),
		OutputSchema: outputSchema(`
			"passages":{"type":"array","items":{"type":"object","properties":{
				"id":{"type":"string"},"page":{"type":"string"},"title":{"type":"string"},"topic":{"type":"string"},
				"passage":{"type":"string","description":"Markdown."},
				"score":{"type":"integer","description":"Comparable within this answer only."},
				"next":{"type":"array","items":{"type":"string"},"description":"Ids of what to read after it; pass one as query."}}}},
			"topics":{"type":"array","items":{"type":"string"},"description":"When nothing was found: what there is."},`+summaryProperty, `"passages","summary"`, false),
	}}
}

func (t searchDocs) run(_ context.Context, c call) (any, error) {
	var args searchDocsArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if strings.TrimSpace(args.Query) == "" {
		return nil, &Error{Code: CodeInvalidArguments, Message: "query is empty", FixHint: "ask a question, e.g. \"how do I show a list\""}
	}
	if n := utf8.RuneCountInString(args.Query); n > docs.MaxQuery {
		return nil, &Error{
			Code: CodeInvalidArguments, Message: fmt.Sprintf("query has %d characters, the most are %d", n, docs.MaxQuery),
			FixHint: "ask one thing in a few words; several questions are several calls",
		}
	}
	if args.Topic != "" && !slices.Contains(corpus.Topics(), args.Topic) {
		return nil, notOneOf("topic", corpus.Topics())
	}
	found := t.docs.Search(args.Query, args.Topic, int(clamp(args.Limit, docs.DefaultLimit, 1, docs.MaxLimit)))
	if len(found) == 0 {
		return searchDocsAnswer{Passages: []docs.Passage{}, Topics: corpus.Topics(),
			Summary: "Nothing was found. Ask in other words, or leave topic out."}, nil
	}
	return searchDocsAnswer{Passages: found, Summary: fmt.Sprintf("%d passages; the best is %q (%s).", len(found), found[0].Title, found[0].ID)}, nil
}
