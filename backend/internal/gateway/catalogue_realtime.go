package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/yamlfile"
)

// voice is what only models for realtime sessions have.
type voice struct {
	prices  wire.RealtimePrices
	voices  map[string]string // the provider's names of the voices, by ours
	history int64             // tokens of the conversation that the provider reads again for each answer
	session time.Duration     // longest session

	inRate, outRate int64 // tokens of a second of sound that the model hears, and that it speaks
}

// VoicePrices returns the prices of a model for realtime sessions.
func (m *Model) VoicePrices() wire.RealtimePrices { return m.voice.prices }

// Voices lists our names of the voices of a model for realtime sessions.
func (m *Model) Voices() []string { return slices.Sorted(maps.Keys(m.voice.voices)) }

// SoundRates returns the tokens of a second of sound that a model for realtime sessions hears, and that it speaks.
func (m *Model) SoundRates() (in, out int64) { return m.voice.inRate, m.voice.outRate }

// MinutePrices returns estimates, in micro-USD, of the price of a minute of sound that a model for realtime sessions
// hears, and that it speaks.
func (m *Model) MinutePrices() (in, out int64) {
	v := m.voice
	return wire.RealtimePrices{AudioIn: v.prices.AudioIn}.Of(wire.RealtimeUsage{AudioIn: 60 * v.inRate}),
		wire.RealtimePrices{AudioOut: v.prices.AudioOut}.Of(wire.RealtimeUsage{AudioOut: 60 * v.outRate})
}

type realtimeEntry struct {
	ID            string            `yaml:"id"`
	Name          string            `yaml:"name"`
	Description   string            `yaml:"description"`
	Provider      string            `yaml:"provider"`
	ProviderModel string            `yaml:"provider_model"`
	Context       yamlfile.Whole    `yaml:"context_tokens"`
	Output        yamlfile.Whole    `yaml:"output_tokens"`
	History       yamlfile.Whole    `yaml:"history_tokens"`
	Session       yamlfile.Whole    `yaml:"session_seconds"`
	Voices        map[string]string `yaml:"voices"`
	InRate        yamlfile.Whole    `yaml:"audio_in_tokens_per_second"`
	OutRate       yamlfile.Whole    `yaml:"audio_out_tokens_per_second"`
	Prices        struct {
		TextIn      *yamlfile.Whole `yaml:"text_in"`
		TextCached  *yamlfile.Whole `yaml:"text_cached"`
		TextOut     *yamlfile.Whole `yaml:"text_out"`
		AudioIn     *yamlfile.Whole `yaml:"audio_in"`
		AudioCached *yamlfile.Whole `yaml:"audio_cached"`
		AudioOut    *yamlfile.Whole `yaml:"audio_out"`
	} `yaml:"prices_micro_usd_per_million"`
}

// Defaults of a model for realtime sessions, and the longest session.
const (
	defaultHistory = 4000
	maxSession     = 15 * 60 // seconds
	// OpenAI documents a token for 100 ms of the user's sound, and for 50 ms of the model's.
	defaultInRate  = 10
	defaultOutRate = 20
	maxRate        = 1000
)

func (e realtimeEntry) model(providers map[string]*Provider) (*Model, error) {
	plain := modelEntry{ID: e.ID, Name: e.Name, Description: e.Description, Provider: e.Provider,
		ProviderModel: e.ProviderModel, API: wire.Responses, Context: e.Context, Output: e.Output}
	m, err := plain.model(providers)
	if err != nil {
		return nil, err
	}
	m.API, m.outputField, m.Why = wire.Realtime, "", ""
	seconds := cmp.Or(int64(e.Session), maxSession)
	m.voice = &voice{voices: e.Voices, history: cmp.Or(int64(e.History), min(defaultHistory, m.context)),
		session: time.Duration(seconds) * time.Second,
		inRate:  cmp.Or(int64(e.InRate), defaultInRate), outRate: cmp.Or(int64(e.OutRate), defaultOutRate)}
	switch {
	case m.voice.history < 1 || m.voice.history > m.context:
		return nil, errors.New("history_tokens must be 1 to context_tokens")
	case seconds < 1 || seconds > maxSession:
		return nil, fmt.Errorf("session_seconds must be 1 to %d", maxSession)
	case min(m.voice.inRate, m.voice.outRate) < 1 || max(m.voice.inRate, m.voice.outRate) > maxRate:
		return nil, fmt.Errorf("audio_in_tokens_per_second and audio_out_tokens_per_second must be 1 to %d", maxRate)
	case len(e.Voices) == 0 || len(e.Voices) > maxEntries:
		return nil, fmt.Errorf("voices must have 1 to %d entries", maxEntries)
	}
	for ours, theirs := range e.Voices {
		if !idForm.MatchString(ours) || !idForm.MatchString(theirs) {
			return nil, fmt.Errorf("voices, %.40q: %.40q: both names %s", ours, theirs, idRule)
		}
	}
	return m, m.priceVoice(e)
}

// priceVoice sets the prices of a model for realtime sessions, which can use all classes of tokens.
func (m *Model) priceVoice(e realtimeEntry) error {
	var missing []string
	into, p := &m.voice.prices, e.Prices
	for _, class := range []struct {
		name  string
		given *yamlfile.Whole
		into  *int64
	}{
		{"text_in", p.TextIn, &into.TextIn}, {"text_cached", p.TextCached, &into.TextCached},
		{"text_out", p.TextOut, &into.TextOut}, {"audio_in", p.AudioIn, &into.AudioIn},
		{"audio_cached", p.AudioCached, &into.AudioCached}, {"audio_out", p.AudioOut, &into.AudioOut},
	} {
		switch {
		case class.given == nil && !m.Provider.Local:
			missing = append(missing, class.name)
		case class.given == nil:
		case *class.given < 0 || *class.given > wire.MaxPrice:
			return fmt.Errorf("%s must be 0 to %d", class.name, int64(wire.MaxPrice))
		case *class.given > 0 && m.Provider.Local:
			return fmt.Errorf("%s: models of a local provider cost nothing", class.name)
		default:
			*class.into = int64(*class.given)
		}
	}
	m.Why = m.whyUnpriced(missing)
	return nil
}
