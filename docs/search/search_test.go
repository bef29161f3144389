package search

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

type question struct {
	Question string
	Answers  []string
}

func readQuestions(t *testing.T) []question {
	t.Helper()
	data, err := os.ReadFile("testdata/questions.json")
	if err != nil {
		t.Fatal(err)
	}
	var questions []question
	if err := json.Unmarshal(data, &questions); err != nil {
		t.Fatal(err)
	}
	return questions
}

// TestQuestions asks typical questions and expects the passage that answers each among the first three results.
func TestQuestions(t *testing.T) {
	questions := readQuestions(t)
	known := map[string]bool{}
	for _, p := range docs.Pages() {
		for _, s := range p.Sections {
			known[s.ID] = true
		}
	}
	found := 0
	for _, q := range questions {
		var got []string
		for _, p := range bundled().Search(q.Question, "", 3) {
			got = append(got, p.ID)
		}
		if slices.ContainsFunc(q.Answers, func(a string) bool { return slices.Contains(got, a) }) {
			found++
		} else {
			t.Logf("%q: want one of %v, found %v", q.Question, q.Answers, got)
		}
		for _, a := range q.Answers {
			if !known[a] {
				t.Errorf("%q: the documentation has no passage %s", q.Question, a)
			}
		}
	}
	t.Logf("%d of %d questions are answered by the first three passages", found, len(questions))
	if len(questions) < 50 || found*10 < len(questions)*9 {
		t.Errorf("%d of %d questions are answered; want at least 50 questions and 90 %%", found, len(questions))
	}
}

// If both a guide and a reference answer a question, the guide comes first.
func TestGuidesComeBeforeReferences(t *testing.T) {
	reference := map[string]bool{}
	var guides []docs.Page
	for _, p := range docs.Pages() {
		if reference[p.ID] = p.Reference; !p.Reference {
			guides = append(guides, p)
		}
	}
	alone := build(guides)
	for _, q := range readQuestions(t) {
		page, _, _ := strings.Cut(q.Answers[0], "#")
		if reference[page] {
			continue
		}
		var among []string
		for _, p := range bundled().Search(q.Question, "", MaxLimit) {
			if !reference[p.Page] {
				among = append(among, p.ID)
			}
		}
		var want []string
		for _, p := range alone.Search(q.Question, "", len(among)) {
			want = append(want, p.ID)
		}
		if !slices.Equal(among, want) {
			t.Errorf("%q: with references the guides are %v, without them %v", q.Question, among, want)
		}
		if first := bundled().Search(q.Question, "", 1); reference[first[0].Page] {
			t.Errorf("%q: the first result is %s, want a guide", q.Question, first[0].ID)
		}
	}
}

func TestSearchOfATopicStaysThere(t *testing.T) {
	for _, topic := range docs.Topics() {
		got := bundled().Search("what can the glasses do for an app", topic, 100)
		if len(got) == 0 || len(got) > MaxLimit {
			t.Errorf("%s: %d passages, want 1 to MaxLimit", topic, len(got))
		}
		for _, p := range got {
			if p.Topic != topic || p.Passage == "" || p.Title == "" || len(p.Next) == 0 {
				t.Errorf("%s: %+v", topic, p)
			}
		}
	}
}

func TestAnIDFindsItsPassage(t *testing.T) {
	for _, p := range docs.Pages() {
		for _, s := range p.Sections {
			if s.Markdown == "" {
				continue
			}
			if got := bundled().Search(s.ID, "", 1); len(got) != 1 || got[0].ID != s.ID {
				t.Errorf("the id %s finds %v, want only itself", s.ID, got)
			}
		}
	}
}

func TestNothingIsFoundForNothing(t *testing.T) {
	for _, query := range []string{"", "the of and", "xyzzyquux"} {
		if got := bundled().Search(query, "", 5); len(got) != 0 {
			t.Errorf("%q finds %v, want nothing", query, got)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("How do I show a list?", "display")
	f.Add("\xff_._.A", "")
	f.Add(strings.Repeat("scroll ", 300), "nosuch")
	f.Add("", "display")
	f.Add("display#scroll", "testing")
	f.Fuzz(func(t *testing.T, query, topic string) {
		found := bundled().Search(query, topic, 3)
		asked := strings.TrimSpace(query)
		if _, known := bundled().entryOf(asked); known {
			if len(found) == 0 || len(found) > 1 && found[0].Page != asked {
				t.Errorf("the id %s finds %d passages, want only those of its page", asked, len(found))
			}
			return
		}
		for _, p := range found {
			if topic != "" && p.Topic != topic {
				t.Errorf("found %s of topic %s, want only topic %s", p.ID, p.Topic, topic)
			}
			if ranked := asked != ""; ranked != (p.Score > 0) {
				t.Errorf("%q finds %s with score %d; want a positive score only for a query", asked, p.ID, p.Score)
			}
		}
	})
}

// TestSearch_FollowsEveryNext follows every id in the next lists of an answer, including answers restricted to a
// topic.
func TestSearch_FollowsEveryNext(t *testing.T) {
	followed := 0
	for _, topic := range docs.Topics() {
		for _, p := range bundled().Search("", topic, MaxLimit) {
			if p.Topic != topic {
				t.Errorf("the overview of topic %s contains %s, which has topic %s", topic, p.ID, p.Topic)
			}
			for _, next := range p.Next {
				got := bundled().Search(next, topic, DefaultLimit)
				page, anchor, _ := strings.Cut(next, "#")
				if len(got) == 0 || anchor != "" && len(got) != 1 || got[0].Page != page || got[0].Passage == "" {
					t.Errorf("following %s from %s returns %+v; want its passage", next, p.ID, got)
				}
				followed++
			}
		}
	}
	if followed < 20 {
		t.Errorf("only %d ids were followed, want at least 20", followed)
	}
}

// TestSearch_ReturnsAPassageWhole checks that a passage that is cut in a list of results is complete when it is the
// only result.
func TestSearch_ReturnsAPassageWhole(t *testing.T) {
	for _, p := range docs.Pages() {
		for _, s := range p.Sections {
			if got := bundled().Search(s.ID, "", 1); s.Markdown != "" && (len(got) != 1 || got[0].Passage != s.Markdown) {
				t.Errorf("the passage %s is cut, want it whole", s.ID)
			}
		}
	}
}

// TestSearch_ReadsAPage reads each page by its id and continues with the ids listed by its last passage.
func TestSearch_ReadsAPage(t *testing.T) {
	for _, p := range docs.Pages() {
		var want []string
		for _, s := range p.Sections {
			if s.Markdown != "" {
				want = append(want, s.ID)
			}
		}
		for _, limit := range []int{0, 2} {
			var got []string
			size := 0
			found := bundled().Search(p.ID, "", limit)
			for _, passage := range found {
				got = append(got, passage.ID)
				size += len(passage.Passage)
			}
			if limit > 0 && len(found) > limit || len(found) > 1 && size > maxAsked {
				t.Errorf("%s: %d passages with %d bytes exceed the limits", p.ID, len(found), size)
			}
			got = append(got, found[len(found)-1].Next...)
			if want := append(slices.Clone(want), p.Next...); !slices.Equal(got, want) {
				t.Errorf("%s: passages and next are %v, want %v", p.ID, got, want)
			}
		}
	}
	if found := bundled().Search("scenario-steps", "", 0); len(found) < 5 {
		t.Errorf("scenario-steps has %d passages, want at least 5", len(found))
	}
}

func TestNearest_NamesAnIDForOneThatIsUnknown(t *testing.T) {
	for query, want := range map[string]string{
		"display#list":      "display#lists",
		"Display#Lists":     "display#lists",
		"display-lists":     "display#lists",
		"camera#":           "",
		"scenarios-steps":   "scenario-steps",
		"record_replay":     "", // no id contains an underscore, so this is a name to search for
		"display#lists":     "",
		"record-replay":     "",
		"how to show lists": "",
		"lists":             "",
		"":                  "",
	} {
		if got := bundled().Nearest(query); got != want {
			t.Errorf("%q: nearest is %q, want %q", query, got, want)
		}
	}
}
