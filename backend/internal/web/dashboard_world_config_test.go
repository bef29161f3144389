package web

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/secret"
)

// These keys encrypt credentials.
var (
	usualKey   = strings.Repeat("5a", 32)
	anotherKey = strings.Repeat("6b", 32)
)

func catalogue() assistant.Catalogue {
	price := func(micro int64) *int64 { return &micro }
	return assistant.Catalogue{
		RealtimeModels: []assistant.Model{{ID: "standard", Name: "Standard", Description: "Balanced.",
			Voices: []string{"ember", "harbor"}, Price: price(50_000)},
			{ID: "swift", Name: "Swift", Description: "Answers sooner.", Voices: []string{"ember"}, Price: price(120_500)}},
		MemoryModels: []assistant.Model{{ID: "compact", Name: "Compact", Description: "A short summary.", Price: price(0)}},
		Voices: []assistant.Voice{{ID: "ember", Name: "Ember", Description: "Warm."},
			{ID: "harbor", Name: "Harbor", Description: "Calm."}},
		Defaults: assistant.Defaults{RealtimeModel: "standard", Voice: "ember", MemoryModel: "compact"},
	}
}

var textModels = []assistant.TextModel{{ID: "plain", Name: "Plain", Description: "Short.",
	Price: assistant.TokenPrice{In: 250_000, Out: 2_000_000}}, {ID: "local", Name: "Local"},
	{ID: "unpriced", Name: "Unpriced", Why: "no price for text_out"}}

// openAIKey is a key in the form of OpenAI's.
const openAIKey = "sk-canary-0123456789-wxyz"

// newCredentials returns a service for the keys of two providers, which the test plays. keys encrypt the values.
func (h *dashboardWorld) newCredentials(keys string) *credentials.Service {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "providers.yaml")
	text := strings.ReplaceAll(`providers:
- {id: openai, name: OpenAI, example: sk-..., pattern: '^sk-', test: {url: URL, header: Authorization}}
- {id: mistral, name: Mistral, pattern: '^mi-', test: {url: URL, header: Authorization}}
`, "URL", h.provider)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	providers, err := credentials.LoadProviders(file)
	if err != nil {
		h.t.Fatal(err)
	}
	parsed, err := credentials.ParseKeys(keys)
	if err != nil {
		h.t.Fatal(err)
	}
	return credentials.New(credentials.Options{Store: credentials.NewStore(h.db), Keys: parsed, Providers: providers,
		Hasher: secret.NewHasher(make([]byte, 32)), Now: h.now})
}

// encryptWith replaces the keys that encrypt credentials.
func (h *dashboardWorld) encryptWith(keys string) { *h.credentials = *h.newCredentials(keys) }

// setOpenAIKey stores an OpenAI key of hello.
func (h *dashboardWorld) setOpenAIKey() {
	h.t.Helper()
	err := h.credentials.Set(context.Background(), adaID, hello, "openai", openAIKey, "", audit.Person())
	if err != nil {
		h.t.Fatal(err)
	}
}

// openAIKey returns the stored OpenAI key of hello, or "".
func (h *dashboardWorld) openAIKey() string {
	h.t.Helper()
	value, err := h.credentials.Open(context.Background(), adaID, hello, "openai")
	if err != nil && !errors.Is(err, credentials.ErrNotSet) {
		h.t.Fatal(err)
	}
	return value
}
