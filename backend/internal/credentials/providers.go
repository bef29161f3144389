package credentials

import (
	_ "embed" // the built-in providers
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/service-dev/service/backend/internal/yamlfile"
	"github.com/service-dev/service/internal/credential"
	"github.com/service-dev/service/internal/loopback"
)

//go:embed providers.yaml
var builtIn []byte

// Limits on a value, in bytes, and on the file of providers.
const (
	minValue     = 8
	maxValue     = 512
	maxProviders = 100
	maxFile      = 1 << 20
	// hintFrom is the minimum length of a value whose last characters may be shown.
	hintFrom = 20
)

// Catalogue is the list of providers that the operator configured.
type Catalogue struct{ list []provider }

type provider struct {
	Provider
	pattern, not *regexp.Regexp
	Test         testCall
}

// testCall is the request that tests a credential.
type testCall struct {
	URL     string            `yaml:"url"`
	Header  string            `yaml:"header"`
	Prefix  string            `yaml:"prefix"`
	Headers map[string]string `yaml:"headers"`
	Refused []int             `yaml:"refused"`
}

type providerFile struct {
	Providers []struct {
		ID      string   `yaml:"id"`
		Name    string   `yaml:"name"`
		Example string   `yaml:"example"`
		Pattern string   `yaml:"pattern"`
		Not     string   `yaml:"not"`
		Test    testCall `yaml:"test"`
	} `yaml:"providers"`
}

// LoadProviders reads the providers from a YAML file of at most 1 MB, or the built-in ones if path is empty. It returns
// an error for unknown fields.
func LoadProviders(path string) (Catalogue, error) {
	if path == "" {
		return parseProviders(builtIn)
	}
	text, err := yamlfile.Read(path, maxFile)
	if err != nil {
		return Catalogue{}, fmt.Errorf("read credential providers: %w", err)
	}
	c, err := parseProviders(text)
	if err != nil {
		return Catalogue{}, fmt.Errorf("read credential providers in %s: %w", path, err)
	}
	return c, nil
}

func parseProviders(text []byte) (Catalogue, error) {
	var file providerFile
	if err := yamlfile.Decode(text, &file); err != nil {
		return Catalogue{}, err
	}
	if n := len(file.Providers); n == 0 || n > maxProviders {
		return Catalogue{}, fmt.Errorf("the file must contain 1 to %[2]d providers, not %[1]d", n, maxProviders)
	}
	var c Catalogue
	for i, p := range file.Providers {
		own := provider{Provider: Provider{ID: p.ID, Name: p.Name, Example: p.Example}, Test: p.Test}
		var err error
		if own.pattern, err = regexp.Compile(p.Pattern); err != nil {
			return Catalogue{}, fmt.Errorf("provider %d: %w", i+1, err)
		}
		if p.Not != "" {
			if own.not, err = regexp.Compile(p.Not); err != nil {
				return Catalogue{}, fmt.Errorf("provider %d: %w", i+1, err)
			}
		}
		if err := own.valid(); err != nil {
			return Catalogue{}, fmt.Errorf("provider %d: %w", i+1, err)
		}
		if _, twice := c.find(p.ID); twice {
			return Catalogue{}, fmt.Errorf("provider %d: id %q occurs twice", i+1, p.ID)
		}
		c.list = append(c.list, own)
	}
	return c, nil
}

var idForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

func (p provider) valid() error {
	switch {
	case !idForm.MatchString(p.ID):
		return fmt.Errorf("id %q must be 1 to 32 characters from a-z, 0-9, _ and -, starting with a letter", p.ID)
	case strings.TrimSpace(p.Name) == "" || len(p.Name) > 80:
		return errors.New("name must be 1 to 80 characters")
	case len(p.Example) > 80:
		return errors.New("example must be at most 80 characters")
	case p.pattern.String() == "":
		return errors.New("pattern is missing")
	}
	return p.Test.valid()
}

func (t testCall) valid() error {
	u, err := url.Parse(t.URL)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" ||
		!loopback.IsHost(u.Hostname())) {
		return errors.New("test.url must be an https address")
	}
	headers := map[string]string{t.Header: t.Prefix}
	for name, text := range t.Headers {
		if http.CanonicalHeaderKey(name) == http.CanonicalHeaderKey(t.Header) {
			return errors.New("test.headers must not contain test.header")
		}
		headers[name] = text
	}
	for name, text := range headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(text) {
			return errors.New("test.header, test.prefix or test.headers is not valid in an HTTP header")
		}
	}
	for _, status := range t.Refused {
		if status < 400 || status > 499 {
			return fmt.Errorf("test.refused must be from 400 to 499, not %d", status)
		}
	}
	return nil
}

func (c Catalogue) find(id string) (provider, bool) {
	return find(c.list, func(p provider) bool { return p.ID == id })
}

// find returns the first matching element.
func find[T any](list []T, matches func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(list, matches)
	if i < 0 {
		return found, false
	}
	return list[i], true
}

// check returns the value without surrounding space, or an *InvalidError that explains the mistake without repeating
// the value.
func (p provider) check(value string) (string, error) {
	value = strings.TrimSpace(value)
	form := "A key of " + p.Name
	if p.Example != "" {
		form += ", such as " + p.Example + ","
	}
	switch {
	case len(value) < minValue || len(value) > maxValue:
		return "", &InvalidError{fmt.Sprintf("%s has %d to %d characters.", form, minValue, maxValue)}
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", &InvalidError{form +
			" has no spaces and only plain letters, digits and signs. Copy it once more, without anything around it."}
	case credential.HasPrefix(value):
		return "", &InvalidError{"This is one of this service's own secrets, not a key of " + p.Name +
			". Do not paste it anywhere; copy the key from " + p.Name + "'s own site."}
	case !p.pattern.MatchString(value) || p.not != nil && p.not.MatchString(value):
		return "", &InvalidError{form + " looks different. Check that you copied all of it, and from the right provider."}
	}
	return value, nil
}

func hint(value string) string {
	if len(value) < hintFrom {
		return "..."
	}
	return "..." + value[len(value)-4:]
}
