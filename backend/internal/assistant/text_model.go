package assistant

import (
	"cmp"
	"context"
	"fmt"

	"github.com/service-dev/service/backend/internal/grants"
)

// TextModel is a model of the gateway that responds with text.
type TextModel struct {
	ID, Name, Description string
	Why                   string // reason why it is currently not offered, or empty
	Price                 TokenPrice
}

// TokenPrice holds prices in micro-dollars per million tokens.
type TokenPrice struct{ In, Cached, Out int64 }

// TextModel returns the ID of the text model set for a project's assistant, or "" for the operator's default.
func (s *Service) TextModel(ctx context.Context, account, project string) (string, error) {
	stored, err := s.Store.AssistantConfig(ctx, account, project)
	if err != nil {
		return "", fmt.Errorf("read assistant config: %w", err)
	}
	return stored.TextModel, nil
}

// MemoryModel returns the ID of a project's memory model, and the ID of the gateway's model that writes the memory, or
// "" for the project's text model.
func (s *Service) MemoryModel(ctx context.Context, account, project string) (id, upstream string, err error) {
	config, err := s.Get(ctx, account, project)
	if err != nil {
		return "", "", err
	}
	if m := s.Catalogue.memory(config.MemoryModel); m != nil {
		upstream = m.Upstream
	}
	return config.MemoryModel, upstream, nil
}

// TextPrice returns the price of a config's text model, or nil if there is none or the model is no longer offered.
func (c Catalogue) TextPrice(config Config) *TokenPrice {
	m := c.text(cmp.Or(config.TextModel, c.DefaultText))
	if m == nil {
		return nil
	}
	return &m.Price
}

// Limits of the call that writes a memory after a conversation, in tokens.
const (
	MergeTokensIn  = 50_000
	MergeTokensOut = 1024
)

// MergeCost returns what the call that writes a memory costs at most, in micro-USD, with a memory model and the
// project's text model, or the default if text is empty. ok is false if the model that writes is not offered.
func (c Catalogue) MergeCost(m Model, text string) (micro int64, ok bool) {
	writer := c.text(cmp.Or(m.Upstream, text, c.DefaultText))
	if writer == nil {
		return 0, false
	}
	micro = MergeTokensIn*max(writer.Price.In, writer.Price.Cached) + MergeTokensOut*writer.Price.Out
	return (micro + 999_999) / 1_000_000, true
}

func (c Catalogue) text(id string) *TextModel {
	return find(c.TextModels, id, func(m TextModel) string { return m.ID })
}

// fitsText returns an *InvalidError unless the model is offered. An empty ID, the default, is always valid.
func (c Catalogue) fitsText(id string) error {
	m := c.text(id)
	switch {
	case id == "":
		return nil
	case m != nil && m.Why != "":
		return &InvalidError{Field: grants.TextModel, Message: "textModel " + id + " is currently not offered: " + m.Why}
	case m != nil:
		return nil
	case len(c.TextModels) == 0:
		return &InvalidError{Field: grants.TextModel,
			Message: "this backend has no text models, leave textModel empty"}
	}
	ids := []string{}
	for _, m := range c.TextModels {
		if m.Why == "" {
			ids = append(ids, m.ID)
		}
	}
	return notOffered(grants.TextModel, id, ids)
}
