package google_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/attest/attesttest"
	"github.com/service-dev/service/backend/internal/attest/google"
)

var (
	now         = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	certificate = sha256.Sum256([]byte("certificate"))
)

const pkg = "com.example.app"

func settings(t testing.TB, g *attesttest.Google) google.Settings {
	t.Helper()
	keys, err := google.ParseKeys(g.Keys(t))
	if err != nil {
		t.Fatal(err)
	}
	return google.Settings{Packages: []string{"com.example.b", pkg}, Certificates: [][32]byte{{}, certificate}, Keys: keys}
}

func verdict() attesttest.Verdict {
	return attesttest.Verdict{Package: pkg, Nonce: google.Nonce("challenge", "project"), At: now.Add(-time.Minute),
		Certificate: certificate, App: "PLAY_RECOGNIZED", Device: []string{"MEETS_BASIC_INTEGRITY", "MEETS_DEVICE_INTEGRITY"}}
}

func TestVerify_RefusesWithReason(t *testing.T) {
	g := attesttest.NewGoogle(t)
	s, nonce := settings(t, g), google.Nonce("challenge", "project")
	for what, c := range map[string]struct {
		change func(*attesttest.Verdict)
		want   error
	}{
		"token":               {func(*attesttest.Verdict) {}, nil},
		"padded nonce":        {func(v *attesttest.Verdict) { v.Nonce += "=" }, nil},
		"strong integrity":    {func(v *attesttest.Verdict) { v.Device = []string{"MEETS_STRONG_INTEGRITY"} }, nil},
		"other package":       {func(v *attesttest.Verdict) { v.Package = "com.example.c" }, google.WrongPackage},
		"other challenge":     {func(v *attesttest.Verdict) { v.Nonce = google.Nonce("b", "project") }, google.WrongChallenge},
		"other project":       {func(v *attesttest.Verdict) { v.Nonce = google.Nonce("challenge", "b") }, google.WrongChallenge},
		"no nonce":            {func(v *attesttest.Verdict) { v.Nonce = "" }, google.WrongChallenge},
		"other certificate":   {func(v *attesttest.Verdict) { v.Certificate[0]++ }, google.WrongCertificate},
		"unrecognized app":    {func(v *attesttest.Verdict) { v.App = "UNRECOGNIZED_VERSION" }, google.UnrecognizedApp},
		"rooted device":       {func(v *attesttest.Verdict) { v.Device = []string{"MEETS_BASIC_INTEGRITY"} }, google.UntrustedDevice},
		"no device verdict":   {func(v *attesttest.Verdict) { v.Device = nil }, google.UntrustedDevice},
		"too old":             {func(v *attesttest.Verdict) { v.At = now.Add(-google.MaxAge - time.Second) }, google.WrongTime},
		"from the future":     {func(v *attesttest.Verdict) { v.At = now.Add(2 * time.Minute) }, google.WrongTime},
		"clock slightly fast": {func(v *attesttest.Verdict) { v.At = now.Add(30 * time.Second) }, nil},
	} {
		v := verdict()
		c.change(&v)
		got, err := google.Verify(g.Token(t, v.Payload(t)), nonce, s, now)
		if !errors.Is(err, c.want) || err == nil && got != pkg {
			t.Errorf("%s: got %q (error %v), want %v", what, got, err, c.want)
		}
	}
}

func TestVerify_RefusesOtherKeysAndChangedTokens(t *testing.T) {
	g, other := attesttest.NewGoogle(t), attesttest.NewGoogle(t)
	s, nonce, payload := settings(t, g), google.Nonce("challenge", "project"), verdict().Payload(t)
	signed := g.Sign(t, payload)
	parts := strings.Split(signed, ".")
	otherParts := strings.Split(g.Sign(t, bytes.Replace(payload, []byte("PLAY"), []byte("plat"), 1)), ".")
	token := g.Token(t, payload)
	for what, c := range map[string]struct {
		token string
		want  google.Reason
	}{
		"encrypted with another key": {other.Encrypt(t, signed), google.WrongDecryptionKey},
		"signed with another key":    {g.Encrypt(t, other.Sign(t, payload)), google.WrongSignature},
		"changed payload":            {g.Encrypt(t, parts[0]+"."+otherParts[1]+"."+parts[2]), google.WrongSignature},
		"no signature":               {g.Encrypt(t, parts[0]+"."+parts[1]+"."), google.WrongSignature},
		"algorithm none":             {g.Encrypt(t, "eyJhbGciOiJub25lIn0."+parts[1]+"."), google.Malformed},
		"only signed":                {signed, google.Malformed},
		"a name twice": {g.Token(t, bytes.Replace(payload, []byte("{"), []byte(`{"requestDetails":{},`), 1)),
			google.Malformed},
		"changed tag":   {change(token, len(token)-3), google.WrongDecryptionKey},
		"no token":      {"", google.Malformed},
		"a long token":  {strings.Repeat("a", google.MaxToken+1), google.Malformed},
		"not JSON":      {g.Token(t, []byte("x")), google.Malformed},
		"other headers": {"eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0" + token[strings.IndexByte(token, '.'):], google.Malformed},
	} {
		if _, err := google.Verify(c.token, nonce, s, now); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %s", what, err, c.want)
		}
	}
	if _, err := google.Verify(token, nonce, google.Settings{}, now); !errors.Is(err, google.Malformed) {
		t.Errorf("without keys: got %v, want a refusal", err)
	}
}

func change(token string, at int) string {
	c := byte('A')
	if token[at] == c {
		c = 'B'
	}
	return token[:at] + string(c) + token[at+1:]
}

func TestParseKeys_RefusesOtherKeys(t *testing.T) {
	secret, public := attesttest.NewGoogle(t).Keys(t)
	for _, c := range [][2]string{{"", public}, {secret, ""}, {secret[:20], public}, {secret, secret}, {public, secret}} {
		if _, err := google.ParseKeys(c[0], c[1]); err == nil || strings.Contains(err.Error(), secret[:16]) {
			t.Errorf("got %v, want an error without the key", err)
		}
	}
	if _, err := google.ParseKeys(secret+"\n", " "+public); err != nil {
		t.Errorf("with spaces: %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	g := attesttest.NewGoogle(f)
	s, nonce := settings(f, g), google.Nonce("challenge", "project")
	f.Add(g.Token(f, verdict().Payload(f)), []byte("{}"))
	f.Add("a.b.c.d.e", verdict().Payload(f))
	f.Fuzz(func(t *testing.T, token string, payload []byte) {
		for _, one := range []string{token, g.Token(t, payload)} {
			var reason google.Reason
			if _, err := google.Verify(one, nonce, s, now); err != nil && !errors.As(err, &reason) {
				t.Errorf("got %v, want a reason", err)
			}
		}
	})
}
