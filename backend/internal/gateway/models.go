package gateway

import (
	"context"
	"errors"

	"github.com/service-dev/service/backend/internal/gateway/wire"
)

// Availability is a model id that an app can ask for, and what comes of it.
type Availability struct {
	ID string
	// Model is the one that answers; nil if Assistant means none.
	Model *Model
	// Why is the reason for which there is no answer, and what to do, or empty.
	Why string
}

// Available lists Assistant and every model of the catalogue.
func (s *Service) Available(ctx context.Context, who Caller) ([]Availability, error) {
	assistant := Availability{ID: Assistant}
	m, err := s.find(ctx, who, Assistant)
	var refusal *Refusal
	switch {
	case err == nil:
		assistant.Model = m
	case errors.As(err, &refusal) && refusal.cause == nil:
		assistant.Why = refusal.Message
	default:
		return nil, err
	}
	list := []Availability{assistant}
	for _, m := range s.Catalogue.Models {
		list = append(list, Availability{m.ID, m, s.why(m)})
	}
	return list, nil
}

// TextModels lists the models that Assistant can be set to, and the id of the default. Apps ask for Assistant by the
// chat interface.
func (s *Service) TextModels() (models []Availability, standard string) {
	for _, m := range s.Catalogue.Models {
		if m.API == wire.Chat {
			models = append(models, Availability{m.ID, m, s.why(m)})
		}
	}
	return models, s.Catalogue.Default
}
