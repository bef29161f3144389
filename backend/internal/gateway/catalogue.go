package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/yamlfile"
	"github.com/service-dev/service/internal/loopback"
)

// Limits on a catalogue.
const (
	maxCatalogue  = 256 << 10 // bytes
	maxEntries    = 200
	maxText       = 500 // characters
	maxKey        = 4 << 10
	maxContext    = 10_000_000 // tokens
	defaultOutput = 1024
)

// Assistant is the model ID that apps use for the model chosen in a project's settings.
const Assistant = "assistant"

// Catalogue is the operator's list of providers, models and prices. The zero value offers no models.
type Catalogue struct {
	Models []*Model
	// Realtime are the models of realtime sessions.
	Realtime []*Model
	// Default is the model used for Assistant in a project that has chosen none.
	Default string

	byID map[string]*Model
}

// Provider is a server that serves models.
type Provider struct {
	ID, Name string
	// Local is set for a provider that runs on one of the operator's machines and costs nothing.
	Local bool
	// OwnKeys is the credential provider whose keys projects can use to call this provider, or empty.
	OwnKeys string

	added, keyed   bool // whether the provider is a LocalServer, and whether that server has a key
	base           string
	key            key
	header, prefix string
	headers        map[string]string
}

// key is a provider's key, or none. The pointer keeps the key out of printed values.
type key struct{ text *string }

func newKey(text string) key { return key{&text} }

// reveal returns the key's text, or "".
func (k key) reveal() string {
	if k.text == nil {
		return ""
	}
	return *k.text
}

// Model is a model in the catalogue.
type Model struct {
	ID, Name, Description string
	Provider              *Provider
	API                   wire.API
	Prices                wire.Prices
	// Why is the reason the model is not offered, or empty.
	Why string

	upstream, outputField                       string
	context, output, defaultOutput, imageTokens int64

	voice *voice // of a model for realtime sessions; nil for other models, which have Prices
}

type catalogueFile struct {
	Providers []providerEntry `yaml:"providers"`
	Models    []modelEntry    `yaml:"models"`
	Realtime  []realtimeEntry `yaml:"realtime_models"`
	Default   string          `yaml:"default_model"`
}

type providerEntry struct {
	ID      string            `yaml:"id"`
	Name    string            `yaml:"name"`
	BaseURL string            `yaml:"base_url"`
	KeyFile string            `yaml:"key_file"`
	Header  string            `yaml:"header"`
	Prefix  *string           `yaml:"prefix"`
	Headers map[string]string `yaml:"headers"`
	Local   bool              `yaml:"local"`
	OwnKeys string            `yaml:"own_keys"`
}

type modelEntry struct {
	ID            string         `yaml:"id"`
	Name          string         `yaml:"name"`
	Description   string         `yaml:"description"`
	Provider      string         `yaml:"provider"`
	ProviderModel string         `yaml:"provider_model"`
	API           wire.API       `yaml:"api"`
	OutputField   string         `yaml:"output_field"`
	Context       yamlfile.Whole `yaml:"context_tokens"`
	Output        yamlfile.Whole `yaml:"output_tokens"`
	DefaultOutput yamlfile.Whole `yaml:"default_output_tokens"`
	ImageTokens   yamlfile.Whole `yaml:"image_tokens"`
	Prices        priceEntry     `yaml:"prices_micro_usd_per_million"`
}

type priceEntry struct {
	In         *yamlfile.Whole `yaml:"text_in"`
	Cached     *yamlfile.Whole `yaml:"text_cached"`
	CacheWrite *yamlfile.Whole `yaml:"text_cache_write"`
	Out        *yamlfile.Whole `yaml:"text_out"`
}

// LoadCatalogue reads the operator's YAML file and the key files in it. If path is empty, it returns an empty
// catalogue. Errors contain the invalid entry and never a key.
func LoadCatalogue(path string) (Catalogue, error) {
	if path == "" {
		return Catalogue{}, nil
	}
	text, err := yamlfile.Read(path, maxCatalogue)
	if err != nil {
		return Catalogue{}, fmt.Errorf("read catalogue: %w", err)
	}
	c, err := parseCatalogue(text, readKey)
	if err != nil {
		return Catalogue{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func readKey(path string) (key, error) {
	text, err := yamlfile.Read(path, maxKey)
	if err != nil {
		return key{}, err
	}
	k := strings.TrimSpace(string(text))
	if len(k) < 8 || strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return key{}, fmt.Errorf("%s: key must be at least 8 printable ASCII characters without spaces", path)
	}
	return newKey(k), nil
}

func parseCatalogue(text []byte, readKey func(path string) (key, error)) (Catalogue, error) {
	var file catalogueFile
	if err := yamlfile.Decode(text, &file); err != nil {
		return Catalogue{}, err
	}
	if err := cmp.Or(checkCount("providers", len(file.Providers)), checkCount("models", len(file.Models))); err != nil {
		return Catalogue{}, err
	}
	providers := map[string]*Provider{}
	for i, e := range file.Providers {
		p, err := e.provider(readKey)
		if err == nil && providers[p.ID] != nil {
			err = errors.New("the id occurs twice")
		}
		if err != nil {
			return Catalogue{}, fmt.Errorf("providers, entry %d (%.64q): %w", i+1, e.ID, err)
		}
		providers[p.ID] = p
	}
	c := Catalogue{Default: file.Default, byID: map[string]*Model{}}
	for i, e := range file.Models {
		m, err := e.model(providers)
		if err == nil && c.model(m.ID) != nil {
			err = errors.New("the id occurs twice")
		}
		if err != nil {
			return Catalogue{}, fmt.Errorf("models, entry %d (%.64q): %w", i+1, e.ID, err)
		}
		c.Models, c.byID[m.ID] = append(c.Models, m), m
	}
	for i, e := range file.Realtime {
		m, err := e.model(providers)
		if err == nil && c.model(m.ID) != nil {
			err = errors.New("the id occurs twice")
		}
		if err != nil {
			return Catalogue{}, fmt.Errorf("realtime_models, entry %d (%.64q): %w", i+1, e.ID, err)
		}
		c.Realtime, c.byID[m.ID] = append(c.Realtime, m), m
	}
	if c.Default != "" && (c.model(c.Default) == nil || c.model(c.Default).voice != nil) {
		return Catalogue{}, fmt.Errorf("default_model: %.64q is not in models", c.Default)
	}
	return c, nil
}

// CheckOwnKeys returns an error unless every own_keys is a known credential provider.
func (c Catalogue) CheckOwnKeys(known func(id string) bool) error {
	for _, m := range slices.Concat(c.Models, c.Realtime) {
		if p := m.Provider; p.OwnKeys != "" && !known(p.OwnKeys) {
			return fmt.Errorf("providers, %q: own_keys: %.64q is not a credential provider", p.ID, p.OwnKeys)
		}
	}
	return nil
}

func checkCount(list string, n int) error {
	if n >= 1 && n <= maxEntries {
		return nil
	}
	return fmt.Errorf("%[1]s must have 1 to %[3]d entries, not %[2]d", list, n, maxEntries)
}

func (c Catalogue) model(id string) *Model { return c.byID[id] }

// IsChat reports whether there is a model with this ID that apps call through the chat interface.
func (c Catalogue) IsChat(id string) bool {
	m := c.model(id)
	return m != nil && m.API == wire.Chat
}

// idRule describes idForm.
const idRule = "must be 1 to 64 lower-case letters, digits, dots, - and _, and begin with a letter or digit"

var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

func (e providerEntry) provider(readKey func(string) (key, error)) (*Provider, error) {
	p := &Provider{ID: e.ID, Name: cmp.Or(e.Name, e.ID), Local: e.Local, OwnKeys: e.OwnKeys,
		header: cmp.Or(e.Header, "Authorization"), headers: e.Headers}
	if e.Prefix != nil {
		p.prefix = *e.Prefix
	} else if e.Header == "" {
		p.prefix = "Bearer "
	}
	u, err := url.Parse(e.BaseURL)
	switch {
	case !idForm.MatchString(e.ID):
		return nil, errors.New("id " + idRule)
	case len([]rune(p.Name)) > maxText:
		return nil, fmt.Errorf("name must be at most %d characters long", maxText)
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("base_url must be an http or https URL with a host and without user, query or fragment")
	case u.Scheme == "http" && !loopback.IsHost(u.Hostname()) && (!e.Local || e.KeyFile != ""):
		return nil, errors.New("base_url: plain http to another machine is allowed only for local providers without a key")
	case e.KeyFile == "" && !e.Local && e.OwnKeys == "":
		return nil, errors.New("key_file is required, except for local providers and providers with own_keys")
	case e.OwnKeys != "" && e.Local:
		return nil, errors.New("own_keys: not allowed for a local provider, which costs nothing")
	}
	p.base = strings.TrimRight(u.String(), "/")
	if e.KeyFile != "" {
		if p.key, err = readKey(e.KeyFile); err != nil {
			return nil, fmt.Errorf("key_file: %w", err)
		}
	}
	return p, p.checkHeaders()
}

func (p *Provider) checkHeaders() error {
	if !httpguts.ValidHeaderFieldName(p.header) || !httpguts.ValidHeaderFieldValue(p.prefix) {
		return errors.New("header or prefix is not valid in an HTTP header")
	}
	own := []string{p.header, "Authorization", "Accept-Encoding", "Content-Type", "Content-Length", "Host",
		"Idempotency-Key", "X-Idempotency-Key", "Connection", "Transfer-Encoding"}
	for name, value := range p.headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("headers: %.40q is not a valid HTTP header", name)
		}
		if slices.ContainsFunc(own, func(o string) bool { return strings.EqualFold(o, name) }) {
			return fmt.Errorf("headers: %s is not allowed; a key belongs in key_file", http.CanonicalHeaderKey(name))
		}
	}
	return nil
}

func (e modelEntry) model(providers map[string]*Provider) (*Model, error) {
	m := &Model{
		ID: e.ID, Name: cmp.Or(e.Name, e.ID), Description: e.Description, Provider: providers[e.Provider], API: e.API,
		upstream: cmp.Or(e.ProviderModel, e.ID), outputField: cmp.Or(e.OutputField, e.API.OutputField()),
		context: int64(e.Context), output: int64(e.Output), imageTokens: int64(e.ImageTokens),
	}
	m.defaultOutput = cmp.Or(int64(e.DefaultOutput), min(defaultOutput, m.output))
	switch {
	case !idForm.MatchString(e.ID):
		return nil, errors.New("id " + idRule)
	case e.ID == Assistant:
		return nil, fmt.Errorf("id must not be %s, which is reserved", Assistant)
	case len([]rune(m.Name)) > maxText || len([]rune(m.Description)) > maxText || len(m.upstream) > maxText:
		return nil, fmt.Errorf("name, description and provider_model must be at most %d characters long", maxText)
	case m.Provider == nil:
		return nil, fmt.Errorf("provider: %.64q is not in providers", e.Provider)
	case !slices.Contains(wire.APIs, e.API):
		return nil, fmt.Errorf("api must be chat, responses or messages, not %.40q", e.API)
	case m.outputField != e.API.OutputField() && (e.API != wire.Chat || m.outputField != "max_tokens"):
		return nil, fmt.Errorf("output_field: this api has no field %.40q", m.outputField)
	case m.context < 1 || m.context > maxContext:
		return nil, fmt.Errorf("context_tokens must be 1 to %d", maxContext)
	case m.output < 1 || m.output > m.context:
		return nil, errors.New("output_tokens must be 1 to context_tokens")
	case m.defaultOutput < 1 || m.defaultOutput > m.output:
		return nil, errors.New("default_output_tokens must be 1 to output_tokens")
	case m.imageTokens < 0 || m.imageTokens > m.context:
		return nil, errors.New("image_tokens must be 0 to context_tokens")
	}
	return m, m.price(e.Prices)
}

// price sets the model's prices. A model that can use a token class without a price is not offered.
func (m *Model) price(e priceEntry) error {
	var missing []string
	for _, class := range []struct {
		name  string
		given *yamlfile.Whole
		into  *int64
		used  bool
	}{
		{"text_in", e.In, &m.Prices.In, true},
		{"text_cached", e.Cached, &m.Prices.Cached, true},
		{"text_cache_write", e.CacheWrite, &m.Prices.CacheWrite, m.API == wire.Messages},
		{"text_out", e.Out, &m.Prices.Out, true},
	} {
		switch {
		case class.given == nil && class.used && !m.Provider.Local:
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

// whyUnpriced returns why a model without these prices is not offered, or "".
func (m *Model) whyUnpriced(missing []string) string {
	switch {
	case missing != nil:
		return "no price for " + strings.Join(missing, ", ")
	case m.Provider.key == key{} && !m.Provider.Local:
		return "the operator has no key for " + m.Provider.Name + ": only a project's own key can be used"
	}
	return ""
}
