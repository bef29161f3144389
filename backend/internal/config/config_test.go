package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

const keyHex = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// load reads the settings as service-backend does. env contains alternating names and values.
func load(t testing.TB, args []string, env ...string) (Config, error) {
	t.Helper()
	for i := 0; i < len(env); i += 2 {
		t.Setenv(env[i], env[i+1])
	}
	flags := pflag.NewFlagSet("service-backend", pflag.ContinueOnError)
	Flags(flags)
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	return Load(flags)
}

func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	c, err := load(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "localhost:8080" || c.BaseURL != "http://localhost:8080" || c.SiteURL != c.BaseURL ||
		c.Database != "service.db" ||
		c.CodeTTL != 10*time.Minute || c.PollInterval != 5*time.Second || c.Grace != 30*time.Second ||
		c.UnusedAfter != time.Minute ||
		c.CodesPerMinute != 60 || c.SessionsPerMinute != 30 || c.LogLevel != "info" || c.DrainTimeout != 10*time.Second ||
		c.HMACKey != nil || c.TrustedProxies != nil {
		t.Errorf("%+v", c)
	}
}

// Flags take precedence over variables, variables over the file, and the file over defaults.
func TestPrecedence(t *testing.T) {
	file := write(t, "backend.yaml",
		"link_code_ttl: 100\nlink_poll_interval: 10\nsupport_contact: file\nlog_level: warn\n")
	c, err := load(t, []string{"--config", file, "--link-code-ttl", "300"},
		"SERVICE_BACKEND_LINK_CODE_TTL", "200", "SERVICE_BACKEND_LINK_POLL_INTERVAL", "20",
		"SERVICE_BACKEND_SUPPORT_CONTACT", "variable")
	if err != nil {
		t.Fatal(err)
	}
	if c.CodeTTL != 300*time.Second || c.PollInterval != 20*time.Second || c.SupportContact != "variable" ||
		c.LogLevel != "warn" || c.Grace != 30*time.Second {
		t.Errorf("%+v", c)
	}
}

func TestAddresses(t *testing.T) {
	c, err := load(t, []string{"--listen", "127.0.0.1:9000", "--base-url", "https://api.example/", "--site-url",
		"https://example/",
		"--trusted-proxies", "10.0.0.7/8, 192.0.2.1,,2001:db8::/32", "--data-dir", "d"})
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"),
		netip.MustParsePrefix("2001:db8::/32")}
	if c.BaseURL != "https://api.example" || c.SiteURL != "https://example" || len(c.TrustedProxies) != 3 ||
		c.Database != filepath.Join("d", "service.db") {
		t.Errorf("%+v", c)
	}
	for i, p := range c.TrustedProxies {
		if p != want[i] {
			t.Errorf("proxy %d: got %s, want the one at that position", i, p)
		}
	}
}

// The error for an invalid value names its setting, wherever it was set.
func TestLoad_ErrorsNameTheSetting(t *testing.T) {
	for _, tc := range []struct{ key, value string }{
		{"listen", "8080"}, {"listen", ""},
		{"base_url", "ftp://x"}, {"base_url", "localhost:8080"}, {"base_url", "http://"}, {"base_url", "http://:8080"},
		{"base_url", "http://service.example.org"}, {"site_url", "http://192.168.1.7:8080"},
		{"base_url", "https://user:pass@x"}, {"site_url", "javascript:alert(1)"}, {"site_url", "https://x/?a=b"},
		{"base_url", "https://x/service"}, {"site_url", "https://x/a/"}, {"site_url", "https://x#a"}, {"base_url", "https://x?"},
		{"link_code_ttl", "4"}, {"link_code_ttl", "3601"}, {"link_code_ttl", "10m"}, {"link_code_ttl", "5.5"},
		{"link_code_ttl", "-1"},
		{"link_poll_interval", "0"}, {"link_grace", "301"}, {"link_unused_token_after", "0"},
		{"drain_timeout", "99999999999999999999"},
		{"codes_per_minute", "0"}, {"sessions_per_minute", "0"}, {"codes_per_minute", "many"},
		{"telemetry_max_events", "999"}, {"trusted_proxies", "10.0.0.0/33"}, {"trusted_proxies", "proxy.example"},
		{"log_level", "loud"}, {"hmac_key_file", "no-such-file"},
	} {
		if tc.value != "" { // an empty variable counts as unset
			t.Run("variable "+tc.key+"="+tc.value, func(t *testing.T) {
				_, err := load(t, nil, "SERVICE_BACKEND_"+strings.ToUpper(tc.key), tc.value)
				names(t, err, tc.key)
			})
		}
		t.Run("file "+tc.key+": "+tc.value, func(t *testing.T) {
			_, err := load(t, []string{"--config", write(t, "backend.yaml", tc.key+": \""+tc.value+"\"\n")})
			names(t, err, tc.key)
		})
	}
}

func names(t *testing.T, err error, setting string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), setting) {
		t.Errorf("the error does not name %s: %v", setting, err)
	}
}

// Programs cannot connect to a listen address without a host, so base_url must be set.
func TestListen_OnEveryAddressRequiresBaseURL(t *testing.T) {
	_, err := load(t, []string{"--listen", ":8080"})
	names(t, err, "base_url")
	if c, err := load(t, []string{"--listen", ":8080", "--base-url", "https://api.example"}); err != nil ||
		c.Listen != ":8080" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLoad_BadFiles(t *testing.T) {
	for name, tc := range map[string]struct{ content, names string }{
		"unknown setting":       {"listne: x\n", "listne"},
		"a key in the file":     {"hmac_key: " + keyHex + "\n", "hmac_key"},
		"nested":                {"link:\n  code_ttl: 5\n", "link.code_ttl"},
		"list for a text":       {"support_contact: [a, b]\n", "support_contact"},
		"list for an address":   {"base_url: [\"https://x\"]\n", "base_url"},
		"list for proxies":      {"trusted_proxies: [10.0.0.1]\n", "trusted_proxies"},
		"map for a text":        {"data_dir: {a: b}\n", "data_dir"},
		"no YAML":               {"listen: [\n", "backend.yaml"},
		"a list of settings":    {"- listen\n", "backend.yaml"},
		"a word":                {"listen\n", "backend.yaml"},
		"the same twice":        {"listen: a:1\nlisten: b:2\n", "backend.yaml"},
		"binary":                {"\x00\x01\x02", "backend.yaml"},
		"half a key file's":     {"hmac_key_file:\n  - x\n", "hmac_key_file"},
		"a number that is text": {"codes_per_minute: lots\n", "codes_per_minute"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, []string{"--config", write(t, "backend.yaml", tc.content)})
			names(t, err, tc.names)
			if err != nil && strings.Contains(err.Error(), keyHex) {
				t.Error("the error contains the key")
			}
		})
	}
	_, err := load(t, []string{"--config", filepath.Join(t.TempDir(), "none.yaml")})
	names(t, err, "none.yaml")
}

func TestKey(t *testing.T) {
	file := write(t, "key", keyHex+"\n")
	for name, load := range map[string]func(t *testing.T) (Config, error){
		"variable": func(t *testing.T) (Config, error) { return load(t, nil, "SERVICE_BACKEND_HMAC_KEY", keyHex) },
		"file":     func(t *testing.T) (Config, error) { return load(t, []string{"--hmac-key-file", file}) },
		"variable over file": func(t *testing.T) (Config, error) {
			return load(t, []string{"--hmac-key-file", filepath.Join(t.TempDir(), "none")}, "SERVICE_BACKEND_HMAC_KEY", keyHex)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := load(t); err != nil || len(c.HMACKey) != 32 || c.HMACKey[1] != 0x11 {
				t.Errorf("got a key of %d bytes (error %v), want 32", len(c.HMACKey), err)
			}
		})
	}
}

func TestKey_WithByteOrderMark(t *testing.T) {
	_, err := load(t, []string{"--hmac-key-file", write(t, "key", "\ufeff"+keyHex+"\r\n")}, "SERVICE_BACKEND_HMAC_KEY", "")
	if err != nil {
		t.Error(err)
	}
}

func TestKey_Refused(t *testing.T) {
	for name, key := range map[string]string{
		"too short": keyHex[:62], "not hexadecimal": strings.Repeat("secretkey", 8), "odd": keyHex + "0",
		"UTF-16":    "\xff\xfe" + keyHex,
		"two lines": keyHex + "\n" + keyHex,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, nil, "SERVICE_BACKEND_HMAC_KEY", key)
			names(t, err, "SERVICE_BACKEND_HMAC_KEY")
			_, fileErr := load(t, []string{"--hmac-key-file", write(t, "key", key)}, "SERVICE_BACKEND_HMAC_KEY", "")
			names(t, fileErr, "hmac_key_file")
			for _, err := range []error{err, fileErr} {
				if err != nil && (strings.Contains(err.Error(), key) || strings.Contains(err.Error(), key[:16])) {
					t.Errorf("the error contains the key: %v", err)
				}
			}
		})
	}
}

// FuzzConfigFile checks that loading any file yields settings within their bounds or an error that names the file or
// a setting.
func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{
		"", "listen: localhost:1\n", "link_code_ttl: 600\nlog_level: debug\n", "link_code_ttl: 1e3\n",
		"link_code_ttl: 0x20\n", "link_code_ttl: true\n",
		"link_code_ttl:\n", "listen: [a]\n", "a: &a [*a]\n", "? {a: b}\n: c\n", "1: 2\n", "trusted_proxies: 10.0.0.0/8\n",
		"--- a\n--- b\n", "\xff\xfe",
		"base_url: https://x\nbase_url: https://y\n", "LISTEN: a:1\n", "database: postgres://u:p@h/d\n",
		"<<: {listen: a:1}\n", "listen: !!binary aGk=\n",
		"support_contact: 2001-01-01\n", "data_dir: ~\n",
	} {
		f.Add([]byte(seed))
	}
	known := []string{"backend.yaml"}
	for _, s := range settings {
		known = append(known, s.key)
	}
	file := filepath.Join(f.TempDir(), "backend.yaml")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := load(t, []string{"--config", file})
		if err != nil {
			for _, name := range known {
				if strings.Contains(err.Error(), name) {
					return
				}
			}
			t.Fatalf("%q: the error names neither the file nor a setting: %v", content, err)
		}
		if c.CodeTTL < 5*time.Second || c.PollInterval < time.Second || c.UnusedAfter < time.Second ||
			c.CodesPerMinute < 1 || c.SessionsPerMinute < 1 ||
			c.Listen == "" || c.BaseURL == "" || c.SiteURL == "" || c.Database == "" || c.HMACKey != nil && len(c.HMACKey) < 32 {
			t.Fatalf("%q was loaded as the invalid settings %+v", content, c)
		}
	})
}
