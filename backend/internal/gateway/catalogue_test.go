package gateway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/gateway/wire"
)

const someProvider = "providers: [{id: p, base_url: 'https://api.example.org/v1', key_file: k}]\n"

func someModel(fields string) string {
	return someProvider + "models: [{id: m, provider: p, api: chat, context_tokens: 1000, output_tokens: 100, " +
		"prices_micro_usd_per_million: {text_in: 1, text_cached: 0, text_out: 2}" + fields + "}]\n"
}

func noKey(string) (key, error) { return newKey("key-of-the-test"), nil }

func TestCatalogue_NamesTheMistake(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "the file is empty",
		"providers: []\nmodels: []":        "providers must have 1 to",
		someProvider:                       "models must have 1 to",
		someModel("") + "---\na: 1":        "more than one document",
		someModel(", colour: blue"):        "colour",
		someModel(", id: n"):               "already defined",
		someModel("") + "default: m":       "default",
		someModel("") + "default_model: n": `default_model: "n" is not in models`,
		strings.Replace(someModel(""), "id: m", "id: assistant", 1):     "must not be assistant",
		strings.Replace(someModel(""), "provider: p", "provider: q", 1): `provider: "q" is not in providers`,
		strings.Replace(someModel(""), "api: chat", "api: realtime", 1): "api must be",
		strings.Replace(someModel(""), "output_tokens: 100", "output_tokens: 2000",
			1): "output_tokens must be 1 to context_tokens",
		strings.Replace(someModel(""), "text_in: 1", "text_in: 1.5", 1):                              "not a whole number",
		strings.Replace(someModel(""), "text_in: 1", "text_in: -1", 1):                               "text_in must be 0 to",
		strings.Replace(someModel(""), "text_in: 1", "text_in: 2000000000", 1):                       "text_in must be 0 to",
		strings.Replace(someModel(""), "text_in", "audio_in", 1):                                     "audio_in",
		strings.Replace(someModel(""), "https://api", "https://user:pass@api", 1):                    "base_url",
		strings.Replace(someModel(""), "https:", "http:", 1):                                         "plain http",
		strings.Replace(someModel(""), ", key_file: k", "", 1):                                       "key_file is required",
		strings.Replace(someModel(""), "key_file: k", "key_file: k, headers: {Authorization: x}", 1): "belongs in key_file",
		strings.Replace(someModel(""), "key_file: k", "key_file: k, local: true", 1):                 "cost nothing",
	} {
		_, err := parseCatalogue([]byte(text), noKey)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", text, err, want)
		}
	}
	_, err := parseCatalogue([]byte(someModel("")), func(string) (key, error) { return key{}, errors.New("no such file") })
	if err == nil || !strings.Contains(err.Error(), "key_file: no such file") {
		t.Error(err)
	}
}

func TestCatalogue_OffersNoModelWithoutAPrice(t *testing.T) {
	for api, classes := range map[wire.API]string{
		wire.Chat: "text_in, text_cached, text_out", wire.Messages: "text_in, text_cached, text_cache_write, text_out",
	} {
		c, err := parseCatalogue([]byte(someProvider+"models: [{id: m, provider: p, api: "+string(api)+
			", context_tokens: 1000, output_tokens: 100}]\n"), noKey)
		if err != nil || c.Models[0].Why != "no price for "+classes {
			t.Errorf("%s: %v, %q", api, err, c.Models[0].Why)
		}
	}
	c, err := parseCatalogue([]byte("providers: [{id: p, base_url: 'http://ollama.lan:11434/v1', local: true}]\n"+
		"models: [{id: m, provider: p, api: chat, context_tokens: 1000, output_tokens: 100}]\n"), noKey)
	if err != nil || c.Models[0].Why != "" || !c.Models[0].Prices.Free() {
		t.Errorf("%v %+v", err, c.Models)
	}
}

// Operators start with the example from the documentation, so it must load.
func TestCatalogue_ExampleLoads(t *testing.T) {
	text, err := os.ReadFile("catalogue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseCatalogue(text, noKey)
	if err != nil || len(c.Models) != 3 || c.Default != "standard" {
		t.Fatalf("%v %+v", err, c)
	}
	for _, m := range c.Models {
		if m.Why != "" {
			t.Errorf("%s: %s", m.ID, m.Why)
		}
	}
}

func TestCatalogue_PrintsNoKey(t *testing.T) {
	dir := t.TempDir()
	keyFile, file := filepath.Join(dir, "k"), filepath.Join(dir, "c.yaml")
	for name, text := range map[string]string{keyFile: "canary-key-1\n", file: strings.Replace(someModel(""), "key_file: k",
		"key_file: "+keyFile, 1)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := LoadCatalogue(file)
	if err != nil || c.Models[0].Provider.key.reveal() != "canary-key-1" {
		t.Fatal(err)
	}
	p := c.Models[0].Provider
	if text := fmt.Sprintf("%v %+v %#v %v", *p, *p, *p, p.key); strings.Contains(text, "canary") {
		t.Error(text)
	}
	if err := os.WriteFile(keyFile, []byte("canary key with spaces"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCatalogue(file); err == nil || strings.Contains(err.Error(), "canary key") {
		t.Error(err)
	}
	if c, err := LoadCatalogue(""); err != nil || c.Models != nil {
		t.Error(err)
	}
}

func FuzzCatalogue(f *testing.F) {
	text, err := os.ReadFile("catalogue.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(someModel("")))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseCatalogue(text, noKey)
		if err != nil {
			return
		}
		for _, m := range c.Models {
			most := wire.Usage{In: 10 * m.context, Out: 10 * m.context}
			if m.Prices.Of(most) < 0 || m.Prices.Bound(m.context, m.output) < 0 || m.defaultOutput > m.output {
				t.Fatalf("%+v", m)
			}
		}
	})
}

const voiceEntry = `
providers: [{id: fake, base_url: 'https://example.org/v1', key_file: k}]
models: [{id: text, provider: fake, api: chat, context_tokens: 10, output_tokens: 5}]
realtime_models:
  - {id: voice, provider: fake, context_tokens: 4000, output_tokens: 500, voices: {ember: marin},
     prices_micro_usd_per_million: {text_in: 1, text_cached: 1, text_out: 1, audio_in: 1, audio_cached: 1, audio_out: 1}}
`

// A model for realtime sessions is offered only with a price for each class that it can use.
func TestCatalogue_Realtime(t *testing.T) {
	for name, c := range map[string]struct{ old, new, why, err string }{
		"complete":         {},
		"no price":         {", audio_cached: 1", "", "no price for audio_cached", ""},
		"no voices":        {"voices: {ember: marin}", "voices: {}", "", "voices must have 1 to 200 entries"},
		"same id":          {"{id: voice,", "{id: text,", "", "the id occurs twice"},
		"history too long": {"output_tokens: 500,", "output_tokens: 500, history_tokens: 4001,", "", "history_tokens must be 1 to context_tokens"},
		"no sound": {"output_tokens: 500,", "output_tokens: 500, audio_in_tokens_per_second: -1,", "",
			"audio_in_tokens_per_second and audio_out_tokens_per_second must be 1 to 1000"},
		"session too long": {"output_tokens: 500,", "output_tokens: 500, session_seconds: 901,", "", "session_seconds must be 1 to 900"},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue, err := parseCatalogue([]byte(strings.Replace(voiceEntry, c.old, c.new, 1)),
				func(string) (key, error) { return newKey("secret-key"), nil })
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || catalogue.Realtime[0].Why != c.why || catalogue.model("voice") == nil {
				t.Errorf("got %+v, %v", catalogue.Realtime, err)
			}
		})
	}
}

// The price of a minute is an estimate with the tokens that a second of sound has.
func TestModel_MinutePrices(t *testing.T) {
	dear := strings.Replace(voiceEntry, "audio_in: 1, audio_cached: 1, audio_out: 1",
		"audio_in: 32000000, audio_cached: 1, audio_out: 64000000", 1)
	for extra, want := range map[string][2]int64{
		"": {19_200, 76_800}, "audio_in_tokens_per_second: 25,": {48_000, 76_800},
	} {
		catalogue, err := parseCatalogue([]byte(strings.Replace(dear, "output_tokens: 500,", "output_tokens: 500,"+extra, 1)),
			func(string) (key, error) { return newKey("secret-key"), nil })
		if err != nil {
			t.Fatal(err)
		}
		if in, out := catalogue.Realtime[0].MinutePrices(); in != want[0] || out != want[1] {
			t.Errorf("with %q: got %d and %d, want %v", extra, in, out, want)
		}
	}
}
