package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/driver"
)

// The page about real glasses explains every problem that can prevent a connection.
func TestPage_ExplainsProblemsOfRealGlasses(t *testing.T) {
	page, ok := docs.Find("real-glasses")
	if !ok {
		t.Fatal("the documentation has no page real-glasses")
	}
	for _, code := range driver.Problems() {
		if !strings.Contains(page.Markdown, "`"+code+"`") {
			t.Errorf("the page real-glasses does not explain %s", code)
		}
	}
}

// The page about errors documents how long sessions wait before they answer for silent glasses.
func TestTimeoutIsDocumented(t *testing.T) {
	want := fmt.Sprintf("%v seconds", broker.CommandWait.Seconds())
	for _, p := range docs.Pages() {
		if _, after, ok := strings.Cut(p.Markdown, "\n## timeout\n"); ok {
			if section, _, _ := strings.Cut(after, "\n## "); !strings.Contains(section, want) {
				t.Errorf("the section on timeout of page %s does not contain %q: %s", p.ID, want, section)
			}
			return
		}
	}
	t.Error("no page has a section on timeout")
}

func TestEveryTopicHasPages(t *testing.T) {
	topics := map[string]int{}
	for _, p := range docs.Pages() {
		topics[p.Topic]++
	}
	for _, topic := range docs.Topics() {
		if topics[topic] == 0 {
			t.Errorf("topic %s has no page", topic)
		}
	}
}

// TestLinksLead checks the links in texts and in the lists of further reading.
func TestLinksLead(t *testing.T) {
	ids := map[string]bool{}
	for _, p := range docs.Pages() {
		for _, s := range p.Sections {
			if ids[s.ID] {
				t.Errorf("section id %s occurs twice", s.ID)
			}
			ids[s.ID] = true
		}
	}
	for _, p := range docs.Pages() {
		if len(p.Next) == 0 {
			t.Errorf("%s lists nothing to read next", p.ID)
		}
		for _, next := range p.Next {
			if !ids[next] {
				t.Errorf("%s: the next page %s does not exist", p.ID, next)
			}
		}
		for _, part := range strings.Split(p.Markdown, "](")[1:] {
			to, _, _ := strings.Cut(part, ")")
			if strings.HasPrefix(to, "#") {
				to = p.ID + to
			}
			if !ids[to] && !strings.HasPrefix(to, "https://") {
				t.Errorf("%s: the link target %s does not exist", p.ID, to)
			}
		}
	}
}
