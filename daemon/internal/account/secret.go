package account

import "log/slog"

// Secret is a string that does not print itself: not by fmt, not by slog, not by encoding/json.
type Secret string

const redacted = "[secret]"

// Reveal returns the secret. Its result goes to a backend or into auth.json and nowhere else.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return `account.Secret("` + s.String() + `")` }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
