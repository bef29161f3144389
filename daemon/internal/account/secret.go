package account

import "log/slog"

// Secret is a string that fmt, slog and encoding/json redact.
type Secret string

const redacted = "[secret]"

// Reveal returns the secret. Use it only to send it to a backend or write it to auth.json.
func (s Secret) Reveal() string { return string(s) }

// String returns a placeholder.
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
