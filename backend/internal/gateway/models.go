package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/service-dev/service/backend/internal/gateway/wire"
)

// Availability is a model ID that an app can request, together with the model it refers to.
type Availability struct {
	ID string
	// Model is the model that answers. It is nil if the ID is Assistant and no model is set for it.
	Model *Model
	// Why states why the ID cannot be called and what to do about it; empty if it can be called.
	Why string
}

// Available lists Assistant, every model in the catalogue, including those for realtime sessions, and the models of
// servers added by the project's owner.
func (s *Service) Available(ctx context.Context, who Caller) ([]Availability, error) {
	list, err := s.assistants(ctx, who)
	var keys map[string]bool
	if err == nil {
		keys, err = s.ownKeysOf(ctx, who)
	}
	if err != nil {
		return nil, err
	}
	added, err := s.Servers.models(ctx, who)
	if err != nil {
		return nil, err
	}
	for _, m := range slices.Concat(s.Catalogue.Models, added, s.Catalogue.Realtime) {
		list = append(list, Availability{m.ID, m, s.whyFor(m, keys)})
	}
	return list, nil
}

// HasModels reports whether a project has a model for text or voice, from the catalogue or from a server that its
// owner added.
func (s *Service) HasModels(ctx context.Context, who Caller) (bool, error) {
	if len(s.Catalogue.Models)+len(s.Catalogue.Realtime) > 0 {
		return true, nil
	}
	added, err := s.Servers.models(ctx, who)
	return len(added) > 0, err
}

// assistants lists the models to use for Assistant: a session's script, which also has its own ID, or the model that
// the project chose.
func (s *Service) assistants(ctx context.Context, who Caller) ([]Availability, error) {
	script, err := s.script(ctx, who, Assistant)
	switch {
	case err != nil:
		return nil, err
	case script != nil:
		return []Availability{{ID: Assistant, Model: scriptModel}, {ID: scriptModel.ID, Model: scriptModel}}, nil
	}
	m, _, err := s.find(ctx, who, Assistant)
	var refusal *Refusal
	switch {
	case err == nil:
		return []Availability{{ID: Assistant, Model: m}}, nil
	case errors.As(err, &refusal) && refusal.Err == nil:
		return []Availability{{ID: Assistant, Why: refusal.Message}}, nil
	}
	return nil, err
}

// ownKeysOf returns the providers for which a project has its own key, or nil if credit pays for its calls.
func (s *Service) ownKeysOf(ctx context.Context, who Caller) (map[string]bool, error) {
	if s.OwnKeys == nil {
		return nil, nil
	}
	source, err := s.OwnKeys.KeySource(ctx, who.Account, who.Project)
	if err != nil || source != KeySourceOwn {
		return nil, err
	}
	return s.OwnKeys.stored(ctx, who.Account, who.Project)
}

// whyFor returns the reason why a project cannot call a model, or "". keys are the project's own keys, or nil if credit
// pays.
func (s *Service) whyFor(m *Model, keys map[string]bool) string {
	switch {
	case keys == nil || m.Provider.Local:
		return s.why(m)
	case m.Provider.OwnKeys != "" && !keys[m.Provider.OwnKeys]:
		return "this project pays with its own keys and has none for " + m.Provider.Name
	}
	return m.whyNotOwn()
}

// RealtimeModels lists the models for realtime sessions. Only the operator's catalogue has such models: the gateway
// calls the local servers that owners add through the chat interface.
func (s *Service) RealtimeModels() (models []Availability) {
	for _, m := range s.Catalogue.Realtime {
		models = append(models, Availability{m.ID, m, s.why(m)})
	}
	return models
}

// TextModels lists the models that a project can choose for Assistant, including models of its local servers, and the
// ID of the default. Apps call Assistant through the chat interface.
func (s *Service) TextModels(ctx context.Context, who Caller) (models []Availability, standard string, err error) {
	added, err := s.Servers.models(ctx, who)
	if err != nil {
		return nil, "", err
	}
	for _, m := range slices.Concat(s.Catalogue.Models, added) {
		if m.API == wire.Chat {
			models = append(models, Availability{m.ID, m, s.why(m)})
		}
	}
	return models, s.Catalogue.Default, nil
}
