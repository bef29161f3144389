package config

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

func operatingPage(t *testing.T) string {
	t.Helper()
	p, ok := docs.Find("operating")
	if !ok {
		t.Fatal("the documentation has no page named operating")
	}
	return p.Markdown
}

// TestOperatingPage_NamesEverySetting compares the page's tables with the settings: names, defaults, ranges.
func TestOperatingPage_NamesEverySetting(t *testing.T) {
	page := operatingPage(t)
	rows := regexp.MustCompile("(?m)^\\| `(--[a-z-]+)` \\| `(SERVICE_BACKEND_[A-Z_]+)` \\| (.*?) \\| (.*) \\|$").FindAllStringSubmatch(page, -1)
	byFlag := map[string][]string{}
	for _, row := range rows {
		if byFlag[row[1]] != nil {
			t.Errorf("the page lists %s twice", row[1])
		}
		byFlag[row[1]] = row
	}
	ranges := regexp.MustCompile(`\d+ to \d+`)
	for _, s := range settings {
		flag, variable := "--"+strings.ReplaceAll(s.key, "_", "-"), "SERVICE_BACKEND_"+strings.ToUpper(s.key)
		row := byFlag[flag]
		if row == nil {
			t.Errorf("the page does not list %s", flag)
			continue
		}
		delete(byFlag, flag)
		if row[2] != variable {
			t.Errorf("the page lists %s with variable %s, want %s", flag, row[2], variable)
		}
		if fallback := fmt.Sprint(s.value); fallback != "" && row[3] != "`"+fallback+"`" {
			t.Errorf("the page lists %s with default %s, want %s", flag, row[3], fallback)
		}
		if within := ranges.FindString(s.help); !strings.Contains(row[4], within) {
			t.Errorf("the row of %s does not contain its range %s: %s", flag, within, row[4])
		}
	}
	for flag := range byFlag {
		t.Errorf("the page lists the unknown setting %s", flag)
	}
	for _, secret := range []string{"SERVICE_BACKEND_HMAC_KEY", "SERVICE_BACKEND_CREDENTIALS_KEY",
		"SERVICE_BACKEND_SMTP_PASSWORD"} {
		if !strings.Contains(page, "`"+secret+"`") {
			t.Errorf("the page does not name %s", secret)
		}
	}
}

// TestOperatingPage_ExampleLoads loads the settings file from the page, with the test's own keys.
func TestOperatingPage_ExampleLoads(t *testing.T) {
	_, text, ok := strings.Cut(operatingPage(t), "```yaml\n# /etc/service/backend.yaml\n")
	if !ok {
		t.Fatal("the page has no example of a settings file")
	}
	text, _, _ = strings.Cut(text, "```")
	for _, name := range []string{"hmac.key", "credentials.key"} {
		text = strings.ReplaceAll(text, "/etc/service/"+name, write(t, name, keyHex))
	}
	c, err := load(t, []string{"--config", write(t, "backend.yaml", text)})
	if err != nil {
		t.Fatal(err)
	}
	if c.BaseURL != "https://service.example.org" || len(c.HMACKey) != 32 || c.CredentialsKeys != keyHex ||
		len(c.TrustedProxies) != 1 {
		t.Errorf("%+v", c)
	}
}
