package telemetry

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/service-dev/service/proto/telemetry"
)

// Runs of what a word of the list may not hold.
var foreign = regexp.MustCompile(`[^A-Za-z0-9._+/@ -]+`)

// encode makes a field's JSON; ok is false for what the list does not allow and for what is empty.
func encode(f telemetry.Field, value any) (data json.RawMessage, ok bool) {
	switch v := value.(type) {
	case string:
		if v = clean(v); f.Kind != telemetry.Word || v == "" {
			return nil, false
		}
		value = v
	case int64:
		if f.Kind != telemetry.Number {
			return nil, false
		}
		value = min(max(v, 0), 1<<53)
	default:
		return nil, false
	}
	data, err := json.Marshal(value)
	return data, err == nil
}

// clean makes a word out of what a program calls itself: signs that a word may not hold are left out. What looks like
// a path or an address names a machine or a person rather than a program, and becomes empty.
func clean(s string) string {
	if strings.ContainsAny(s, `\~:`) || strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") ||
		strings.LastIndexByte(s, '@') > 0 || strings.Count(s, "/") > 1 {
		return ""
	}
	s = strings.TrimSpace(foreign.ReplaceAllString(s, ""))
	return strings.TrimSpace(s[:min(len(s), telemetry.MaxWord)])
}
