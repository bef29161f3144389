package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"project":"a.b","platform":"web","openBrowser":null,"fresh":false}`))
	f.Add([]byte(`{"deviceCode":"x","maxWaitSeconds":1e400,"pollIntervalSeconds":-0.0}`))
	f.Add([]byte(`{"sessionId":"s","since":9007199254740993,"limit":5.0}`))
	f.Add([]byte(`{"project":"a","PROJECT":"b","project":"c"}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, into := range []any{
			&createSimulatorSessionArgs{}, &completeAuthLinkArgs{}, &getEventLogArgs{}, &closeSessionArgs{}, &struct{}{},
		} {
			err := decode(data, into)
			var refused *Error
			if err != nil && (!errors.As(err, &refused) || refused.Code != CodeInvalidArguments || refused.FixHint == "") {
				t.Errorf("%q: %v", data, err)
			}
			if err == nil && len(bytes.TrimSpace(data)) > 0 && !json.Valid(data) {
				t.Errorf("%q was taken", data)
			}
			if args, ok := into.(*completeAuthLinkArgs); ok && err == nil {
				if wait := clamp(args.MaxWaitSeconds, 600, 1, 600); wait < 1 || wait > 600 {
					t.Errorf("%q waits %d s", data, wait)
				}
			}
		}
	})
}
