// Package config reads the optional config.yaml of the state directory into an immutable struct and decides which
// backend a caller's calls use. It is the only reader of that file.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/internal/outbound"
	"github.com/service-dev/service/internal/problem"
)

// FileName is the file's name inside the state directory.
const FileName = "config.yaml"

// DefaultIdleTimeout is how long a daemon started by a client keeps running while idle.
const DefaultIdleTimeout = 10 * time.Minute

// maxURL is the maximum length of an address, in bytes.
const maxURL = 2 << 10

// maxIdle is the maximum of idle_timeout, in seconds: 30 days.
const maxIdle = 30 * 24 * 3600

// Keys of config.yaml.
const (
	keyBackend = "backend_url"
	keyFixed   = "backend_fixed"
	keyIdle    = "idle_timeout"
	keyLog     = "log_level"
	keyProxy   = "https_proxy"
	keyNoProxy = "no_proxy"
	keyCAFile  = "ca_file"
)

// Config is the parsed config.yaml. It is immutable.
type Config struct {
	// BackendURL is a valid URL, EmbeddedURL, or empty if the file does not set it.
	BackendURL string
	// BackendFixed makes the daemon refuse calls whose environment sets another backend.
	BackendFixed bool
	// IdleTimeout is how long the daemon keeps running while it is idle. 0 means that it never stops by itself.
	IdleTimeout time.Duration
	LogLevel    slog.Level
	// Outbound contains the settings for HTTPS requests that leave this machine.
	Outbound outbound.Settings
}

// Default returns the configuration that applies without a file.
func Default() *Config { return &Config{IdleTimeout: DefaultIdleTimeout} }

// invalid returns the error for an invalid setting. source is the path of config.yaml, or the name of a variable; key
// is empty if the error concerns the whole source.
func invalid(source, key, why string) *problem.Error {
	if key != "" {
		why = key + ": " + why
	}
	return problem.New(problem.CodeInvalidConfig, "read "+source+": "+why,
		"Correct the setting in the message, then repeat the call.")
}

// parse parses config.yaml. It rejects unknown keys, so that misspelt settings are noticed, and invalid values.
func parse(path string, data []byte) (*Config, error) {
	bad := func(key, why string) (*Config, error) { return nil, invalid(path, key, why) }
	v := viper.New()
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return bad("", "must be a YAML mapping: "+firstLine(err))
	}
	c := Default()
	for _, key := range v.AllKeys() {
		value := v.Get(key)
		if value == nil && key != keyBackend {
			return bad(key, "must have a value")
		}
		switch key {
		case keyBackend:
			text, ok := value.(string)
			if !ok && value != nil {
				return bad(key, "must be a URL")
			}
			if text == "" {
				continue
			}
			checked, err := checkURL(text)
			if err != nil {
				return nil, urlError(path, key, err)
			}
			c.BackendURL = checked
		case keyFixed:
			fixed, ok := value.(bool)
			if !ok {
				return bad(key, "must be true or false")
			}
			c.BackendFixed = fixed
		case keyIdle:
			seconds, ok := value.(int)
			if !ok || seconds < 0 || seconds > maxIdle {
				return bad(key, fmt.Sprintf("must be whole seconds from 0 (never) to %d", maxIdle))
			}
			c.IdleTimeout = time.Duration(seconds) * time.Second
		case keyLog:
			text, _ := value.(string)
			if !slices.Contains([]string{"debug", "info", "warn", "error"}, text) {
				return bad(key, "must be debug, info, warn or error")
			}
			_ = c.LogLevel.UnmarshalText([]byte(text)) // cannot fail: text is one of the four levels
		case keyProxy, keyNoProxy, keyCAFile:
			if err := c.setOutbound(key, value); err != nil {
				return bad(key, err.Error())
			}
		default:
			known := []string{keyBackend, keyFixed, keyIdle, keyLog, keyProxy, keyNoProxy, keyCAFile}
			return bad(key, "unknown setting; must be one of "+strings.Join(known, ", "))
		}
	}
	return c, nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Kinds of backend.
const (
	KindEmbedded = "embedded"
	KindRemote   = "remote"
)

// EmbeddedURL represents the embedded backend. In settings it can also be written "embedded".
const EmbeddedURL = "embedded:"

// Sources of the backend setting, in order of precedence.
const (
	ByEnv     = "env"
	ByConfig  = "config"
	ByBuild   = "build"
	ByDefault = "default"
)

// variable is the environment variable that selects the backend for a shell's calls.
const variable = "SERVICE_BACKEND_URL"

// Backend is the backend for a caller's calls.
type Backend struct {
	// URL has no trailing slash; it is EmbeddedURL for the embedded backend.
	URL string
	// Kind is KindEmbedded or KindRemote.
	Kind string
	// ChosenBy is ByEnv, ByConfig, ByBuild or ByDefault.
	ChosenBy string
}

// Backend returns the backend set by the caller's environment, by config.yaml or by the build, in this order, or else
// the embedded one. It returns a *problem.Error if the variable is invalid, or if it sets another backend although the
// backend is fixed.
func (c *Config) Backend(who caller.Caller) (Backend, error) {
	own := c.own()
	text := who.Env[variable]
	if text == "" {
		return own, nil
	}
	checked, err := checkURL(text)
	if err != nil {
		return Backend{}, urlError(variable, "", err)
	}
	if c.BackendFixed && checked != own.URL {
		e := invalid(variable, "", "config.yaml allows no other backend ("+keyFixed+")")
		e.FixHint = "Unset " + variable + ", or ask the user to remove " + keyFixed + " from config.yaml."
		return Backend{}, e
	}
	return kindOf(checked, ByEnv), nil
}

// own returns the backend for calls whose environment does not select one.
func (c *Config) own() Backend {
	if c.BackendURL != "" {
		return kindOf(c.BackendURL, ByConfig)
	}
	if buildinfo.DefaultBackendURL != "" {
		return kindOf(strings.TrimRight(buildinfo.DefaultBackendURL, "/"), ByBuild)
	}
	return kindOf(EmbeddedURL, ByDefault)
}

func kindOf(url, by string) Backend {
	if url == EmbeddedURL {
		return Backend{URL: url, Kind: KindEmbedded, ChosenBy: by}
	}
	return Backend{URL: url, Kind: KindRemote, ChosenBy: by}
}

// errPlainHTTP is returned for a URL that would receive the token unencrypted.
var errPlainHTTP = errors.New("plain http would send the token over the network unencrypted; use https, or http for " +
	"this machine only")

// urlError returns the error for an invalid URL, with its fix.
func urlError(source, key string, err error) *problem.Error {
	e := invalid(source, key, err.Error())
	e.FixHint = "Correct the address of the backend, or unset it."
	if errors.Is(err, errPlainHTTP) {
		e.FixHint = "Use https://. Plain http is accepted only for this machine: localhost, 127.0.0.1 or [::1]."
	}
	return e
}

// checkURL accepts an https URL, or an http URL of this machine, without query or fragment. Its errors do not quote the
// text, which may contain a password.
func checkURL(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "embedded" || text == EmbeddedURL {
		return EmbeddedURL, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL:
		return "", fmt.Errorf("must be a URL of at most %d bytes", maxURL)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", fmt.Errorf("must be http://host or https://host")
	case u.Scheme == "http" && !loopback.IsHost(u.Hostname()):
		return "", errPlainHTTP
	case u.User != nil:
		return "", fmt.Errorf("must not contain a user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("must not contain a query or fragment")
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/"), nil
}
