package secretscan

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"testing"
)

func TestContains_Credentials(t *testing.T) {
	body := "aGVsbG8td29ybGQtdGhpcy1pcy1hLXRlc3QtdG9rZW4wMDEyMzQ"
	for _, s := range []string{
		"svc_" + body, "sdc_" + body, "spk_" + body, "sst_" + body, "client svc_" + body + " 1.0", "SVC_" + body,
		"sk-proj-abcdefghijklmnop", "ghp_abcdefghijklmnopqrst", "AKIAIOSFODNN7EXAMPLE", "Authorization: Bearer abcdef123456",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.sig", "-----BEGIN RSA PRIVATE KEY-----",
	} {
		if !Contains(s) {
			t.Errorf("the credential %q was not found", s)
		}
	}
	for range 1000 {
		var b [24]byte
		rand.Read(b[:])
		if s := hex.EncodeToString(b[:]); !Contains(s) {
			t.Errorf("the random text %q was not found", s)
		}
	}
	found := 0
	for range 1000 {
		var b [48]byte
		rand.Read(b[:])
		if Contains(base64.RawStdEncoding.EncodeToString(b[:])) {
			found++
		}
	}
	if found < 800 { // a '/' or '+' may interrupt a run
		t.Errorf("only %d of 1000 random texts were found, want at least 800", found)
	}
	if !ContainsUserCode("WDJB-MJHT") || !ContainsUserCode("x wdjbmjht") || ContainsUserCode("claude-code 1.0") {
		t.Error("unexpected result of ContainsUserCode")
	}
}

func TestContains_OrdinaryText(t *testing.T) {
	for _, s := range []string{
		"", "claude-code", "1.2.3-beta.20260102+abcdef0", "com.example.my-application", "ses_abcdefghij2345672222", "inst_1",
		"a-very-long-name-of-an-application-without-any-digits", "internationalizationframework2", "Say hello to the person",
		"3f2c1c1e-6f0e-4a53-9a3e-0b3f6f1d2c4b", "/home/person/projects/glasses2/app", "createSimulatorSession",
	} {
		if Contains(s) {
			t.Errorf("ordinary text %q counts as a credential", s)
		}
	}
}

func TestRedact(t *testing.T) {
	body := "aGVsbG8td29ybGQtdGhpcy1pcy1hLXRlc3QtdG9rZW4wMDEyMzQ"
	for _, c := range []struct{ text, want string }{
		{`{"a":"svc_` + body + `","b":1}`, `{"a":"(credential removed)","b":1}`},
		{`{"a":"Bearer abcdef123456 x"}`, `{"a":"(credential removed) x"}`},
		{`{"a":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n","b":2}`, `{"a":"(credential removed)","b":2}`},
		{`{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}`, `{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}`},
		{"Trails near you", "Trails near you"},
	} {
		if got := Redact(c.text); got != c.want {
			t.Errorf("Redact(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
