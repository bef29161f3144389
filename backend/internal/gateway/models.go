package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/service-dev/service/backend/internal/gateway/wire"
)

// Availability is a model id that an app can ask for, and the model that it leads to.
type Availability struct {
	ID string
	// Model is the one that answers; nil if Assistant means none.
	Model *Model
	// Why says why the id cannot be called and what to do, or is empty.
	Why string
}

// Available lists Assistant, every model of the catalogue and those of the servers that the project's owner added.
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
	for _, m := range slices.Concat(s.Catalogue.Models, added) {
		list = append(list, Availability{m.ID, m, s.whyFor(m, keys)})
	}
	return list, nil
}

// assistants lists what Assistant means: a session's script, which has an id too, or the model that the project chose.
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
	case errors.As(err, &refusal) && refusal.cause == nil:
		return []Availability{{ID: Assistant, Why: refusal.Message}}, nil
	}
	return nil, err
}

// ownKeysOf returns which keys of its own a project has, or nil if credit pays for its calls.
func (s *Service) ownKeysOf(ctx context.Context, who Caller) (map[string]bool, error) {
	if s.OwnKeys == nil {
		return nil, nil
	}
	source, err := s.OwnKeys.KeySource(ctx, who.Account, who.Project)
	if err != nil || source != KeySourceOwn {
		return nil, err
	}
	keys, err := s.OwnKeys.OwnKeysSet(ctx, who.Account, who.Project)
	if keys == nil {
		keys = map[string]bool{}
	}
	return keys, err
}

// whyFor says why a project cannot call a model, or returns "". keys are the own keys that it pays with, or nil.
func (s *Service) whyFor(m *Model, keys map[string]bool) string {
	switch {
	case keys == nil || m.Provider.Local:
		return s.why(m)
	case m.Provider.OwnKeys != "" && !keys[m.Provider.OwnKeys]:
		return "this project pays with its own keys and has none for " + m.Provider.Name
	}
	return m.whyNotOwn()
}

// TextModels lists the models that a project can set Assistant to, those of its local servers included, and the id of
// the default. Apps ask for Assistant by the chat interface.
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
