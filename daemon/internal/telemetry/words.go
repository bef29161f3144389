package telemetry

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/service-dev/service/proto/telemetry"
)

// plain is what names of programs and versions are made of.
var plain = regexp.MustCompile(`^[A-Za-z0-9._+ -]+$`)

// encode makes a field's JSON; ok is false for what the list does not allow and for what is empty.
func encode(f telemetry.Field, value any) (data json.RawMessage, ok bool) {
	switch v := value.(type) {
	case string:
		if v = clean(v); f.Kind == telemetry.Number || v == "" {
			return nil, false
		}
		if !telemetry.Reads(f.Kind, v) {
			if f.Kind == telemetry.Word {
				return nil, false
			}
			v = telemetry.Other // it may be a credential, or a person's name
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

// clean takes what a program calls itself for a word, cut down to telemetry.MaxWord bytes. With any other sign it may
// hold a path, an address or a person's name rather than a program's, and becomes empty as a whole.
func clean(s string) string {
	if s = strings.TrimSpace(s); !plain.MatchString(s) {
		return ""
	}
	return strings.TrimSpace(s[:min(len(s), telemetry.MaxWord)])
}
