package config

import (
	"strings"
	"testing"
)

func TestMail_Invalid(t *testing.T) {
	const from = "Service <service@example.org>"
	for _, host := range []string{"mail example.org", "smtp://mail.example.org", "mail.example.org:587",
		"mail.example.org/", " ", "user@mail.example.org"} {
		_, err := load(t, []string{"--smtp-host", host, "--smtp-from", from})
		if names(t, err, "smtp_host"); err != nil && strings.Contains(err.Error(), "example") {
			t.Errorf("the error contains the value: %v", err)
		}
	}
	_, err := load(t, []string{"--smtp-host", "mail.example.org", "--smtp-from", from, "--smtp-user", "canary"})
	if names(t, err, "smtp_user"); err != nil && strings.Contains(err.Error(), "canary") {
		t.Errorf("the error contains the value: %v", err)
	}
	for _, host := range []string{"mail.example.org", "localhost", "mail", "::1", "192.0.2.7", "mail_1.example.org"} {
		c, err := load(t, []string{"--smtp-host", host, "--smtp-from", from, "--smtp-user", "u"},
			"SERVICE_BACKEND_SMTP_PASSWORD", "p")
		if err != nil || c.Mail.Host != host {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestCredentialsKeys_ErrorsNameTheirSource(t *testing.T) {
	file := write(t, "keys", keyHex)
	if c, err := load(t, []string{"--credentials-key-file", file}); err != nil ||
		c.CredentialsFrom != "setting credentials_key_file" || c.CredentialsKeys != keyHex {
		t.Errorf("%q (%v)", c.CredentialsFrom, err)
	}
	c, err := load(t, []string{"--credentials-key-file", file}, "SERVICE_BACKEND_CREDENTIALS_KEY", "other")
	if err != nil || c.CredentialsFrom != "SERVICE_BACKEND_CREDENTIALS_KEY" || c.CredentialsKeys != "other" {
		t.Errorf("%q (%v)", c.CredentialsFrom, err)
	}
}
