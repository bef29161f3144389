package assistant

import (
	"context"
	"fmt"
	"slices"

	"github.com/service-dev/service/backend/internal/grants"
)

// Offer is a model of the gateway for realtime sessions.
type Offer struct {
	ID     string
	Why    string   // reason why it is currently not offered, or empty
	Voices []string // IDs of the voices it can speak with
	Price  SoundPrice
}

// SoundPrice holds estimated prices in micro-dollars for a minute of sound that a model hears (In) and speaks (Out).
// Providers charge for tokens. The rates are the tokens that a second of sound has.
type SoundPrice struct{ In, Out, InRate, OutRate int64 }

// noteEffects limits the choices to what the gateway offers, and notes which settings have an effect. The memory model
// has one if memories can be encrypted and a text model can write them. Without models
// for realtime sessions, all choices of a voice assistant remain and have no effect.
func (c *Catalogue) noteEffects(offers []Offer, remembers bool) {
	if len(c.TextModels) > 0 {
		c.Effective = append(c.Effective, grants.TextModel)
	}
	if remembers && len(c.TextModels) > 0 {
		c.Effective = append(c.Effective, grants.MemoryModel)
	}
	if len(offers) == 0 {
		return
	}
	c.Effective = append(c.Effective, grants.RealtimeModel, grants.Voice)
	var models []Model
	speaks := map[string]bool{}
	for _, m := range c.RealtimeModels {
		i := slices.IndexFunc(offers, func(o Offer) bool { return o.ID == m.ID })
		if i < 0 {
			continue
		}
		o := offers[i]
		m.Why, m.Sound = o.Why, &o.Price
		m.Voices = slices.DeleteFunc(slices.Clone(m.Voices), func(v string) bool { return !slices.Contains(o.Voices, v) })
		if len(m.Voices) == 0 {
			m.Why = "the operator has set up none of its voices"
		}
		for _, v := range m.Voices {
			speaks[v] = true
		}
		models = append(models, m)
	}
	c.RealtimeModels = models
	c.Voices = slices.DeleteFunc(slices.Clone(c.Voices), func(v Voice) bool { return !speaks[v.ID] })
}

// HasEffect reports whether a setting has an effect on this backend.
func (c Catalogue) HasEffect(field string) bool { return slices.Contains(c.Effective, field) }

// Realtime returns the estimated price of a config's realtime model, or nil if there is none.
func (c Catalogue) Realtime(config Config) *SoundPrice {
	if m := c.realtime(config.RealtimeModel); m != nil {
		return m.Sound
	}
	return nil
}

// offers returns the gateway's models for realtime sessions.
func (s *Service) offers(ctx context.Context, account, project string) ([]Offer, error) {
	if s.RealtimeModels == nil {
		return nil, nil
	}
	offers, err := s.RealtimeModels(ctx, account, project)
	if err != nil {
		return nil, fmt.Errorf("read realtime models: %w", err)
	}
	return offers, nil
}
