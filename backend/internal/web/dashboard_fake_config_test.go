package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
)

func (f fakeAssistant) Get(context.Context, string, string) (assistant.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.config, nil
}

func (f fakeAssistant) Change(_ context.Context, _, project string, c assistant.Change, by audit.Actor) (before,
	after assistant.Config, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.config
	if c.Version != before.Version {
		return before, before, &assistant.ConflictError{Current: before.Version}
	}
	if c.Voice != nil && *c.Voice == "harbor" && (c.RealtimeModel != nil && *c.RealtimeModel == "swift") {
		return before, before, &assistant.InvalidError{Field: "voice", Message: "the model Swift does not speak with Harbor"}
	}
	e := f.note(by, "assistant.changed", project, "")
	if c.Voice != nil {
		e.Summary = "voice: " + f.config.Voice + " -> " + *c.Voice
		e.Before, e.After = json.RawMessage(`{"voice":"`+f.config.Voice+`"}`), json.RawMessage(`{"voice":"`+*c.Voice+`"}`)
		f.config.Voice = *c.Voice
	}
	if c.RealtimeModel != nil {
		f.config.RealtimeModel = *c.RealtimeModel
	}
	if c.TextModel != nil {
		f.config.TextModel = *c.TextModel
	}
	if c.Sounds != nil {
		f.config.Sounds = *c.Sounds
	}
	f.config.Version, f.config.UpdatedBy = before.Version+1, "you"
	return before, f.config, nil
}

func (f fakeAssistant) Undo(_ context.Context, _ string, e audit.Entry, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var was, became struct{ Voice string }
	_ = json.Unmarshal(e.Before, &was)
	_ = json.Unmarshal(e.After, &became)
	if !e.Undoable() {
		return assistant.ErrNotUndoable
	}
	if became.Voice != f.config.Voice {
		return &assistant.ConflictError{Current: f.config.Version}
	}
	f.config.Voice = was.Voice
	undone := f.note(by, "assistant.undone", e.Project, "voice: "+became.Voice+" -> "+was.Voice).ID
	for i := range f.entries {
		if f.entries[i].ID == e.ID {
			f.entries[i].UndoneBy = undone
		}
	}
	return nil
}

func (f fakeAssistant) Choices(context.Context, string, string) (assistant.Catalogue, error) {
	return f.catalogue(), nil
}

func (fakeAssistant) catalogue() assistant.Catalogue {
	price := func(micro int64) *int64 { return &micro }
	return assistant.Catalogue{
		RealtimeModels: []assistant.Model{{ID: "standard", Name: "Standard", Description: "Balanced.",
			Voices: []string{"ember", "harbor"}, Price: price(50_000)},
			{ID: "swift", Name: "Swift", Description: "Answers sooner.", Voices: []string{"ember"}, Price: price(120_500)}},
		MemoryModels: []assistant.Model{{ID: "compact", Name: "Compact", Description: "A short summary.", Price: price(0)}},
		Voices: []assistant.Voice{{ID: "ember", Name: "Ember", Description: "Warm."},
			{ID: "harbor", Name: "Harbor", Description: "Calm."}},
		TextModels: []assistant.TextModel{{ID: "plain", Name: "Plain", Description: "Short.",
			Price: assistant.TokenPrice{In: 250_000, Out: 2_000_000}}, {ID: "local", Name: "Local"},
			{ID: "unpriced", Name: "Unpriced", Why: "no price for text_out"}},
		DefaultText: "plain",
	}
}

func (f fakeAssistant) Cost(c assistant.Config) *int64 {
	for _, m := range f.catalogue().RealtimeModels {
		if m.ID == c.RealtimeModel {
			return m.Price
		}
	}
	return nil
}

func (f fakeCredentials) Configured() bool { return f.sealed }

func (f fakeCredentials) Status(context.Context, string, string) (all []credentials.Credential, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range []credentials.Provider{{ID: "openai", Name: "OpenAI", Example: "sk-..."},
		{ID: "mistral", Name: "Mistral"}} {
		c := credentials.Credential{Provider: p}
		if value, ok := f.secrets[p.ID]; ok {
			c.Set, c.Hint, c.SetAt, c.SetBy = true, "..."+value[len(value)-4:], then, "you"
			c.TestedAt, c.TestResult = then, f.tested
		}
		all = append(all, c)
	}
	return all, nil
}

func (f fakeCredentials) Set(_ context.Context, _, project, provider, value, linkID string, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.sealed:
		return credentials.ErrNotConfigured
	case provider != "openai" && provider != "mistral":
		return credentials.ErrUnknownProvider
	case !strings.HasPrefix(value, "sk-") || linkID != "":
		return &credentials.InvalidError{Message: "A key of OpenAI looks different."}
	}
	f.secrets[provider] = value
	f.note(by, "credential.set", project, "key of "+provider+" set")
	return nil
}

func (f fakeCredentials) Remove(_ context.Context, _, project, provider string, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.secrets[provider] == "" {
		return credentials.ErrNotSet
	}
	delete(f.secrets, provider)
	f.note(by, "credential.removed", project, "key of "+provider+" removed")
	return nil
}

func (f fakeCredentials) Test(_ context.Context, _, _, provider string, _ audit.Actor) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.secrets[provider] == "" {
		return "", credentials.ErrNotSet
	}
	if f.lost {
		return "", &credentials.MissingKeyError{KeyID: "0123abcd"}
	}
	return f.tested, nil
}

func (f fakePages) IsChanged(context.Context, string, string) (bool, error) {
	return f.page.Version > 0, nil
}

func (f fakePages) Get(context.Context, string, string) (connpage.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.page, nil
}

func (f fakePages) Change(_ context.Context, _, project string, c connpage.Change, by audit.Actor) (before,
	after connpage.Page, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.page
	if c.Version != before.Version {
		return before, before, &connpage.ConflictError{Current: before.Version}
	}
	var problems []error
	for _, link := range []struct{ field, value string }{{"supportUrl", *c.SupportURL}, {"privacyUrl", *c.PrivacyURL}} {
		if link.value != "" && !strings.HasPrefix(link.value, "https://") {
			problems = append(problems, &connpage.InvalidError{Field: link.field, Message: "no address"})
		}
	}
	for i, t := range *c.Toggles {
		if strings.Contains(t.ID, " ") {
			problems = append(problems, &connpage.InvalidError{Field: fmt.Sprintf("toggles[%d].id", i), Message: "no id"})
		}
	}
	if err := errors.Join(problems...); err != nil {
		return before, before, err
	}
	f.page.Title, f.page.Theme, f.page.Accent, f.page.Capabilities, f.page.Phrases, f.page.Toggles = *c.Title, *c.Theme,
		*c.Accent, *c.Capabilities, *c.Phrases, *c.Toggles
	f.page.Version++
	e := f.note(by, "page.changed", project, "connection page: title")
	e.Before, e.After = json.RawMessage(`{"title":"a"}`), json.RawMessage(`{"title":"b"}`)
	return before, f.page, nil
}

func (f fakePages) Undo(_ context.Context, _ string, e audit.Entry, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(by, "page.undone", e.Project, "undone")
	return nil
}

func (f fakePages) File(p connpage.Page) (string, []byte, error) {
	return "connect.html", []byte("<!doctype html><title>" + p.Title + "</title>"), nil
}

// ByPageID makes fakePages implement HostedPages as well.
func (f fakePages) ByPageID(context.Context, string) (connpage.Page, error) { return f.page, nil }
