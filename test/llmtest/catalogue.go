package llmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// CataloguePrices are the prices of all models in a catalogue written by WriteCatalogue.
var CataloguePrices = Prices{In: 2, Cached: 1, Out: 10}

// WriteCatalogue writes a gateway's catalogue and the provider's key file into dir, and returns the catalogue's path.
// Each model is listed three times: under its own name as a chat model, and prefixed with resp- and msg- for the
// responses and messages interfaces.
func WriteCatalogue(dir, providerURL string, models ...string) (path string, err error) {
	path = filepath.Join(dir, "gateway.yaml")
	key := filepath.Join(dir, "provider.key")
	text := fmt.Sprintf("providers:\n  - {id: fake, base_url: '%s', key_file: '%s'}\nmodels:\n", providerURL, key)
	for _, model := range models {
		for prefix, api := range map[string]string{"": "chat", "resp-": "responses", "msg-": "messages"} {
			text += fmt.Sprintf("  - {id: %s%s, provider: fake, provider_model: %s, api: %s, context_tokens: 10000, "+
				"output_tokens: 1000, default_output_tokens: 100, prices_micro_usd_per_million: {text_in: %d000000, "+
				"text_cached: %d000000, text_cache_write: 3000000, text_out: %d000000}}\n", prefix, model, model, api,
				CataloguePrices.In, CataloguePrices.Cached, CataloguePrices.Out)
		}
	}
	if slices.Contains(models, Good) {
		text += "default_model: " + Good + "\n"
	}
	if err := os.WriteFile(key, []byte(Key+"\n"), 0o600); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// CatalogueVoicePrices are the prices of all models that AddVoices adds.
var CatalogueVoicePrices = VoicePrices{TextIn: 4, TextCached: 1, TextOut: 16, AudioIn: 32, AudioCached: 2, AudioOut: 64}

// Limits of the models that AddVoices adds, in tokens.
const (
	VoiceContext = 2000
	VoiceOutput  = 500
)

// AddVoices adds models for realtime sessions, prefixed with v-, to a catalogue written by WriteCatalogue.
func AddVoices(path string, models ...string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	p := CatalogueVoicePrices
	text = append(text, "realtime_models:\n"...)
	for _, model := range models {
		text = fmt.Appendf(text, "  - {id: v-%s, provider: fake, provider_model: %s, context_tokens: %d, output_tokens: %d, "+
			"voices: {ember: marin}, prices_micro_usd_per_million: {text_in: %d000000, text_cached: %d000000, "+
			"text_out: %d000000, audio_in: %d000000, audio_cached: %d000000, audio_out: %d000000}}\n", model, model,
			VoiceContext, VoiceOutput, p.TextIn, p.TextCached, p.TextOut, p.AudioIn, p.AudioCached, p.AudioOut)
	}
	return os.WriteFile(path, text, 0o600)
}
