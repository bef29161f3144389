// Package config reads the backend's settings from flags, SERVICE_BACKEND_* variables and a YAML file. It is the
// backend's only package that reads the environment.
package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/internal/textfile"
)

// Config contains all settings of the backend.
type Config struct {
	Listen            string         // host:port
	BaseURL           string         // URL of the API
	SiteURL           string         // URL of the website
	Database          string         // postgres:// URL or a SQLite file
	DataDir           string         // directory of the SQLite file, and for temporary files
	HMACKey           []byte         // at least 32 bytes; nil if unset, and the caller must then fail or generate one
	CodeTTL           time.Duration  // validity of a device code
	PollInterval      time.Duration  // minimum time between two polls
	Grace             time.Duration  // how long after CodeTTL a code approved in time can still be redeemed
	UnusedAfter       time.Duration  // age at which a token that no client received is revoked
	CodesPerMinute    int            // device codes issued to one address per minute
	SessionsPerMinute int            // simulator sessions created per account and minute
	SupportContact    string         // shown on the privacy page and to revoked installs
	TrustedProxies    []netip.Prefix // proxies whose X-Forwarded-For is trusted
	LogLevel          string         // debug, info, warn or error
	DrainTimeout      time.Duration  // how long open requests may continue after the stop signal

	AssistantCatalogue string // YAML file of models, voices and prices; "" for the built-in one
	CredentialsKeys    string // content of the key file, current key first; "" disables stored credentials
	CredentialsFrom    string // source of CredentialsKeys, for error messages
	CredentialsFile    string // YAML file of providers; "" for the built-in ones
	GatewayCatalogue   string // YAML file of the gateway's providers, models and prices; "" for none
	AnalyticsQuota     int    // events per project and day that are counted exactly
	TelemetryMax       int    // maximum number of stored usage events; 0 means telemetry.DefaultMaxRows
	OIDCFile           string // YAML file of identity providers; "" for none
	Mail               Mail
	FreeCredit         string // USD that each account may spend on models without paying, such as 2.00
	TopUpURL           string // page where users add credit; "" for none
}

// Mail is the SMTP server that sends mail to account owners. Without a Host, no mail is sent.
type Mail struct {
	Host     string
	Port     int
	User     string
	Password string // secret
	From     string
	TLS      string // starttls, tls or none
}

// setting describes one setting: key a_b in YAML, flag --a-b, variable SERVICE_BACKEND_A_B.
type setting struct {
	key, help string
	value     any // default value; its type is the type of the flag
}

var settings = []setting{
	{"listen", "address to listen on, host:port", "localhost:8080"},
	{"base_url", "address programs call; default http://<listen>", ""},
	{"site_url", "address people open pages at; default base_url", ""},
	{"database", "postgres:// URL, or the path of a SQLite file; default <data_dir>/service.db", ""},
	{"data_dir", "directory for the SQLite file and temporary files", "."},
	{"hmac_key_file", "file with the key for stored hashes, hexadecimal, 32 bytes or more", ""},
	{"link_code_ttl", "seconds a device code is valid, 5 to 3600", 600},
	{"link_poll_interval", "seconds between two polls, 1 to 60", 5},
	{"link_grace", "seconds after its expiry that a code approved in time can be redeemed, 0 to 300", 30},
	{"link_unused_token_after", "seconds until a token that no client received is revoked, 1 to 3600", 60},
	{"codes_per_minute", "device codes issued to one address per minute, 1 to 100000", 60},
	{"sessions_per_minute", "simulator sessions one account may create per minute, 1 to 100000", 30},
	{"support_contact", "shown on the privacy page and to revoked installs", ""},
	{"trusted_proxies", "comma-separated addresses or networks whose X-Forwarded-For is trusted", ""},
	{"log_level", "debug, info, warn or error", "info"},
	{"assistant_catalogue", "YAML file with the assistant's models, voices and prices; default: built in", ""},
	{"credentials_key_file",
		"file with keys that encrypt credentials, hexadecimal, 32 bytes each, one per line, the current one first", ""},
	{"credential_providers", "YAML file with the providers whose keys projects may keep; default: built in", ""},
	{"gateway_catalogue", "YAML file with the providers, models and prices of the AI gateway; empty: none are offered", ""},
	{"analytics_daily_quota", "events counted exactly per project and day, 1000 to 1000000000; more are sampled",
		2_000_000},
	{"telemetry_max_events",
		"usage events stored for all installs, 1000 to 1000000000; beyond it, new ones are refused and the oldest deleted",
		5_000_000},
	{"oidc_providers", "YAML file with the OpenID Connect providers people may sign in with", ""},
	{"smtp_host", "SMTP server for verification and password mail; empty: no mail is sent", ""},
	{"smtp_port", "its port, 1 to 65535", 587},
	{"smtp_user", "SMTP user; empty: no authentication", ""},
	{"smtp_password_file", "file with its password", ""},
	{"smtp_from", "sender of the mail, e.g. Service <service@example.org>", ""},
	{"smtp_tls", "starttls, tls or none (for this machine only)", "starttls"},
	{"free_credit", "USD that each account may spend on models without paying in, 0.00 to 1000.00", "2.00"},
	{"topup_url", "https page of your payment provider where people add credit; empty: none", ""},
	{"drain_timeout", "seconds that open requests may continue after the stop signal, 0 to 600", 10},
}

// Flags declares a flag for each setting, and --config for the settings file.
func Flags(flags *pflag.FlagSet) {
	flags.String("config", "", "YAML file with settings")
	for _, s := range settings {
		name := strings.ReplaceAll(s.key, "_", "-")
		switch d := s.value.(type) {
		case int:
			flags.Int(name, d, s.help)
		case string:
			flags.String(name, d, s.help)
		}
	}
}

// Load reads the settings. Flags override variables, variables override the file, and the file overrides the defaults.
// Errors contain the setting and never a secret.
func Load(flags *pflag.FlagSet) (Config, error) {
	v := viper.New()
	known := map[string]bool{}
	for _, s := range settings {
		known[s.key] = true
		v.SetDefault(s.key, s.value)
		if err := errors.Join(v.BindEnv(s.key, "SERVICE_BACKEND_"+strings.ToUpper(s.key)),
			v.BindPFlag(s.key, flags.Lookup(strings.ReplaceAll(s.key, "_", "-")))); err != nil {
			return Config{}, err
		}
	}
	if file, _ := flags.GetString("config"); file != "" {
		if err := readFile(v, file, known); err != nil {
			return Config{}, err
		}
	}
	return build(v, secrets{
		hmacKey:         os.Getenv("SERVICE_BACKEND_HMAC_KEY"),
		credentialsKeys: os.Getenv("SERVICE_BACKEND_CREDENTIALS_KEY"),
		smtpPassword:    os.Getenv("SERVICE_BACKEND_SMTP_PASSWORD"),
	})
}

func readFile(v *viper.Viper, file string, known map[string]bool) error {
	own := viper.New()
	own.SetConfigFile(file)
	own.SetConfigType("yaml")
	if err := own.ReadInConfig(); err != nil {
		return fmt.Errorf("read settings from %s: %w", file, err)
	}
	for _, key := range own.AllKeys() {
		if !known[key] {
			return fmt.Errorf("read settings from %s: unknown setting %s", file, key)
		}
		switch own.Get(key).(type) {
		case string, bool, int, int64, uint64, float64, nil:
		default: // viper would read a list as an empty string
			return fmt.Errorf("setting %s: the value in %s must be text or a number", key, file)
		}
	}
	return v.MergeConfigMap(own.AllSettings())
}

// secrets are read only from variables and files, because other users of the machine can see flags.
type secrets struct{ hmacKey, credentialsKeys, smtpPassword string }

func build(v *viper.Viper, env secrets) (_ Config, err error) {
	c := Config{
		Listen: v.GetString("listen"), BaseURL: v.GetString("base_url"), SiteURL: v.GetString("site_url"),
		Database: v.GetString("database"), DataDir: v.GetString("data_dir"),
		SupportContact: v.GetString("support_contact"), LogLevel: v.GetString("log_level"),
		AssistantCatalogue: v.GetString("assistant_catalogue"), CredentialsFile: v.GetString("credential_providers"),
		GatewayCatalogue: v.GetString("gateway_catalogue"),
		OIDCFile:         v.GetString("oidc_providers"), FreeCredit: v.GetString("free_credit"), TopUpURL: v.GetString("topup_url"),
	}
	for _, n := range []struct {
		key      string
		min, max int
		into     *time.Duration
	}{
		{"link_code_ttl", 5, 3600, &c.CodeTTL},
		{"link_poll_interval", 1, 60, &c.PollInterval},
		{"link_grace", 0, 300, &c.Grace},
		{"link_unused_token_after", 1, 3600, &c.UnusedAfter},
		{"drain_timeout", 0, 600, &c.DrainTimeout},
	} {
		seconds, err := number(v, n.key, n.min, n.max)
		if err != nil {
			return Config{}, err
		}
		*n.into = time.Duration(seconds) * time.Second
	}
	for _, n := range []struct {
		key      string
		min, max int
		into     *int
	}{
		{"codes_per_minute", 1, 100_000, &c.CodesPerMinute},
		{"sessions_per_minute", 1, 100_000, &c.SessionsPerMinute},
		{"analytics_daily_quota", 1000, 1_000_000_000, &c.AnalyticsQuota},
		{"telemetry_max_events", 1000, 1_000_000_000, &c.TelemetryMax},
	} {
		if *n.into, err = number(v, n.key, n.min, n.max); err != nil {
			return Config{}, err
		}
	}
	if err := errors.Join(c.checkURLs(), c.checkTopUp()); err != nil {
		return Config{}, err
	}
	if c.TrustedProxies, err = parseNetworks(v.GetString("trusted_proxies")); err != nil {
		return Config{}, err
	}
	if err := c.parseHMACKey(env.hmacKey, v); err != nil {
		return Config{}, err
	}
	if c.CredentialsKeys, err = secretText(env.credentialsKeys, "credentials_key_file", v); err != nil {
		return Config{}, err
	}
	c.CredentialsFrom = "setting credentials_key_file"
	if env.credentialsKeys != "" {
		c.CredentialsFrom = "SERVICE_BACKEND_CREDENTIALS_KEY"
	}
	if c.Mail, err = readMail(v, env.smtpPassword); err != nil {
		return Config{}, err
	}
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
	default:
		return Config{}, fmt.Errorf("setting log_level: must be debug, info, warn or error, not %q", c.LogLevel)
	}
	if c.Database == "" {
		c.Database = filepath.Join(c.DataDir, "service.db")
	}
	return c, nil
}

// TempDir returns the directory for temporary files: the directory of the SQLite file, because it must be writable, or
// DataDir.
func (c Config) TempDir() string {
	if strings.Contains(c.Database, "://") {
		return c.DataDir
	}
	return filepath.Dir(c.Database)
}

func number(v *viper.Viper, key string, least, most int) (int, error) {
	text := strings.TrimSpace(v.GetString(key))
	var n int
	if _, err := fmt.Sscanf(text+" ", "%d ", &n); err != nil || fmt.Sprint(n) != text {
		return 0, fmt.Errorf("setting %s: must be a whole number, not %q", key, text)
	}
	if n < least || n > most {
		return 0, fmt.Errorf("setting %[1]s: must be from %[3]d to %[4]d, not %[2]d", key, n, least, most)
	}
	return n, nil
}

// checkURLs validates Listen and sets the defaults of BaseURL and SiteURL.
func (c *Config) checkURLs() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("setting listen: must be host:port, not %q", c.Listen)
	}
	if c.BaseURL == "" {
		c.BaseURL = "http://" + c.Listen
	}
	if c.SiteURL == "" {
		c.SiteURL = c.BaseURL
	}
	for _, a := range []struct { // base_url comes first, because site_url may default to it
		key     string
		address *string
	}{{"base_url", &c.BaseURL}, {"site_url", &c.SiteURL}} {
		u, err := url.Parse(*a.address)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
			u.User != nil {
			return fmt.Errorf("setting %s: must be an http or https address with a host", a.key)
		}
		if strings.Trim(u.Path, "/") != "" || strings.ContainsAny(*a.address, "?#") {
			return fmt.Errorf("setting %s: the address must not contain a path, query or fragment: pages and programs need a "+
				"host of their own, such as https://service.example.org", a.key)
		}
		if u.Scheme == "http" && !loopback.IsHost(u.Hostname()) {
			return fmt.Errorf("setting %s: plain http is allowed only on this machine, because elsewhere browsers drop the "+
				"sign-in cookie; use a TLS proxy and set its https address", a.key)
		}
		*a.address = strings.TrimRight(*a.address, "/")
	}
	return nil
}

func (c *Config) checkTopUp() error {
	if c.TopUpURL == "" {
		return nil
	}
	u, err := url.Parse(c.TopUpURL)
	if err != nil || u.Hostname() == "" || u.User != nil ||
		u.Scheme != "https" && (u.Scheme != "http" || !loopback.IsHost(u.Hostname())) {
		return errors.New("setting topup_url: must be an https address with a host")
	}
	return nil
}

func parseNetworks(list string) (networks []netip.Prefix, err error) {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if addr, addrErr := netip.ParseAddr(text); err != nil && addrErr == nil {
			prefix, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("setting trusted_proxies: must list addresses and networks, not %q", text)
		}
		networks = append(networks, prefix.Masked())
	}
	return networks, nil
}

// secretText returns variable, the value of an environment variable, if it is not empty. Otherwise it returns the
// content of the file named by the setting key.
func secretText(variable, key string, v *viper.Viper) (string, error) {
	file := v.GetString(key)
	if variable != "" || file == "" {
		return strings.TrimSpace(variable), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("setting %s: %w", key, err)
	}
	text, err := textfile.Decode(data)
	if err != nil {
		return "", fmt.Errorf("setting %s: read %s: %w", key, file, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func notInHost(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" /@", r) }

func (c *Config) parseHMACKey(variable string, v *viper.Viper) error {
	source := "SERVICE_BACKEND_HMAC_KEY"
	if variable == "" {
		source = "hmac_key_file"
	}
	key, err := secretText(variable, "hmac_key_file", v)
	if err != nil || key == "" {
		return err
	}
	decoded, err := hex.DecodeString(key)
	if err != nil || len(decoded) < 32 {
		return fmt.Errorf("setting %s: the key must be hexadecimal, 32 bytes or more (openssl rand -hex 32)", source)
	}
	c.HMACKey = decoded
	return nil
}

// Embedded returns the settings of a backend that the daemon runs for one user in its own directory.
func Embedded(dir, url, siteURL string, key []byte, credentialsKey string) Config {
	return Config{
		BaseURL: url, SiteURL: siteURL, Database: filepath.Join(dir, "service.db"), DataDir: dir, HMACKey: key,
		CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second, Grace: 30 * time.Second, UnusedAfter: time.Minute,
		CodesPerMinute: 60, SessionsPerMinute: 30, LogLevel: "info", DrainTimeout: 3 * time.Second, AnalyticsQuota: 2_000_000,
		CredentialsKeys: credentialsKey, CredentialsFrom: "the embedded backend's credentials key",
		FreeCredit: "2.00",
	}
}
