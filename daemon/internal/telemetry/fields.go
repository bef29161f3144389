package telemetry

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/service-dev/service/proto/telemetry"
)

// plain matches the names of programs and versions.
var plain = regexp.MustCompile(`^[A-Za-z0-9._+ -]+$`)

// encode encodes a field as JSON. ok is false if the value is empty or the field's declaration does not allow it.
func encode(f telemetry.Field, value any) (data json.RawMessage, ok bool) {
	switch v := value.(type) {
	case string:
		if v = clean(v); f.Kind == telemetry.Number || v == "" {
			return nil, false
		}
		if !telemetry.Fits(f.Kind, v) {
			if f.Kind == telemetry.Word {
				return nil, false
			}
			v = telemetry.Other // the value may contain a credential or a person's name
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

// clean reduces a program's self-reported name to its first telemetry.MaxWord bytes. It returns "" for a name with an
// unexpected character, because the name may contain a path, an address or a person's name.
func clean(s string) string {
	if s = strings.TrimSpace(s); !plain.MatchString(s) {
		return ""
	}
	return strings.TrimSpace(s[:min(len(s), telemetry.MaxWord)])
}
