package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/internal/outbound"
)

// setOutbound sets a key for outgoing requests. Its errors do not quote a proxy's address, which may contain a
// password.
func (c *Config) setOutbound(key string, value any) error {
	text, ok := value.(string)
	if text = strings.TrimSpace(text); !ok || text == "" || len(text) > maxURL {
		return errors.New("must be text of 1 to " + fmt.Sprint(maxURL) + " bytes")
	}
	switch key {
	case keyProxy:
		if _, err := outbound.ParseProxy(text); err != nil {
			return err
		}
		c.Outbound.HTTPSProxy = text
	case keyNoProxy:
		c.Outbound.NoProxy = text
	case keyCAFile:
		if !filepath.IsAbs(text) {
			return errors.New("must be an absolute path")
		}
		c.Outbound.CAFile = text // not read here, because an unusable file must fail HTTPS calls, not the daemon
	}
	return nil
}

// Ignored is a variable in a caller's environment that the daemon does not use, although the caller may expect it.
type Ignored struct {
	Name string
	// Fix is the next step, as a sentence.
	Fix string
}

// proxyVariables are the variables that set a proxy for HTTPS, in the order in which programs check them.
var proxyVariables = []string{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}

// IgnoredProxy returns the caller's proxy variable if the daemon does not use it for calls to a backend.
func (s *Store) IgnoredProxy(who caller.Caller, backend string) (Ignored, bool) {
	u, err := url.Parse(backend)
	if err != nil || u.Scheme != "https" {
		return Ignored{}, false
	}
	own := s.Current().Outbound.Or(outbound.FromEnvironment(os.Getenv)).Proxy(u)
	theirs := outbound.FromEnvironment(func(name string) string { return who.Env[name] })
	name, value := firstSet(who, proxyVariables)
	theirs.HTTPSProxy = value
	their := theirs.Proxy(u)
	switch {
	case their != nil && loopback.IsHost(their.Hostname()): // a sandbox's own proxy, which the daemon cannot use
		return Ignored{}, false
	case their != nil && (own == nil || outbound.DisplayProxy(own) != outbound.DisplayProxy(their)):
		return Ignored{Name: name, Fix: s.set(keyProxy, name, withPlaceholder(their))}, true
	case their == nil && own != nil && theirs.NoProxy != "":
		if (outbound.Settings{HTTPSProxy: own.String(), NoProxy: theirs.NoProxy}).Proxy(u) == nil {
			name, value := firstSet(who, []string{"no_proxy", "NO_PROXY"})
			return Ignored{Name: name, Fix: s.set(keyNoProxy, name, value)}, true
		}
	}
	return Ignored{}, false
}

// IgnoredCertificates returns the caller's certificate variable if the daemon does not use it for calls to a backend.
func (s *Store) IgnoredCertificates(who caller.Caller, backend string) (Ignored, bool) {
	name, path := firstSet(who, []string{"SSL_CERT_FILE", "SSL_CERT_DIR"})
	if name == "" || !strings.HasPrefix(backend, "https:") || path == OwnCertificates(name) {
		return Ignored{}, false
	}
	if !filepath.IsAbs(path) && who.Cwd != "" {
		path = filepath.Join(who.Cwd, path)
	}
	switch {
	case path == s.Current().Outbound.CAFile:
		return Ignored{}, false
	case name == "SSL_CERT_DIR":
		return Ignored{Name: name, Fix: fmt.Sprintf("Set `%s` in %s to the path of your network's root certificate, "+
			"which is in %s.", keyCAFile, s.path, path)}, true
	case !filepath.IsAbs(path): // config.yaml does not accept it
		return Ignored{Name: name, Fix: s.setToValueOf(keyCAFile, name)}, true
	}
	return Ignored{Name: name, Fix: s.set(keyCAFile, name, path)}, true
}

// OwnCertificates returns the value of SSL_CERT_FILE or SSL_CERT_DIR in the daemon's environment. It returns "" on
// macOS and Windows, where Go ignores these variables.
func OwnCertificates(name string) string { return ownCertificates(runtime.GOOS, name) }

func ownCertificates(system, name string) string {
	if system == "darwin" || system == "windows" {
		return ""
	}
	return os.Getenv(name)
}

// firstSet returns the first variable that is not empty and its value.
func firstSet(who caller.Caller, names []string) (name, value string) {
	for _, name := range names {
		if value := who.Env[name]; value != "" {
			return name, value
		}
	}
	return "", ""
}

// maxShown is the maximum length of a value quoted in a text, in bytes.
const maxShown = 300

// set returns a sentence that tells the user to copy a variable's value to a key of config.yaml.
func (s *Store) set(key, name, value string) string {
	if len(value) > maxShown || strings.Contains(value, "'") || !isPrintable(value) {
		return s.setToValueOf(key, name)
	}
	return fmt.Sprintf("Set `%s: '%s'` in %s.", key, value, s.path)
}

func (s *Store) setToValueOf(key, name string) string {
	if key == keyCAFile {
		name += ", as an absolute path"
	}
	return fmt.Sprintf("Set `%s` in %s to the value of %s.", key, s.path, name)
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) })
}

// withPlaceholder returns a proxy's address with placeholders for the user name and the password.
func withPlaceholder(u *url.URL) string {
	if u.User == nil {
		return outbound.DisplayProxy(u)
	}
	return u.Scheme + "://USER:PASSWORD@" + u.Host
}
