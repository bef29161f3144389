package backendapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// answers returns an empty value of every type that responses are decoded into.
func answers() []any {
	return []any{
		&Health{}, &DeviceCode{}, &TokenAnswer{}, &Account{}, &CreatedSession{}, &Session{}, &SessionList{},
		&SessionSecret{}, &EventPage{}, &Controlled{}, &ProjectKey{}, &ProjectList{}, &AssistantConfig{},
		&CredentialList{}, &CredentialLink{}, &AnalyticsReport{}, &GatewayUsage{}, &ConnectionPage{},
		&ConnectionPageFile{}, &TelemetryReceipt{}, &TelemetryPurged{},
	}
}

func golden(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every text field of every response has a form, and tags contain only words with a meaning.
func TestCheckTags_CoverEveryText(t *testing.T) {
	var visit func(where string, r rule, typ reflect.Type)
	visit = func(where string, r rule, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			if typ.Elem().Kind() != reflect.Uint8 {
				visit(where, r, typ.Elem())
			}
		case reflect.String:
			if r.fits == nil {
				t.Errorf("%s has no form", where)
			}
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				where := typ.Name() + "." + f.Name
				for word := range strings.SplitSeq(f.Tag.Get("check"), ",") {
					name, _, _ := strings.Cut(word, "=")
					if forms[name] == nil && !slices.Contains([]string{"", "required", "present", "unsigned"}, name) {
						t.Errorf("%s: unknown word %q", where, name)
					}
				}
				visit(where, ruleOf(f), f.Type)
			}
		}
	}
	for _, a := range answers() {
		visit("", rule{}, reflect.TypeOf(a))
	}
}

// The examples of all responses are accepted, and refused with an escape sequence in any of their texts.
func TestDecode_Examples(t *testing.T) {
	for name, example := range examples {
		for _, answer := range answers() {
			typ := reflect.TypeOf(answer).Elem()
			if reflect.TypeOf(example) != typ {
				continue
			}
			body := golden(t, name)
			if name == "connection_page_file" {
				body = strings.Replace(body, "00ff", "fe26c59e91ac8de694b2531dc3bdc1b7faf471d3d7e4e00870af60f5f22897cb", 1)
			}
			if err := Decode([]byte(body), answer); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			eachText(reflect.ValueOf(answer), func(text reflect.Value) {
				before := text.String()
				text.SetString("\u202e" + before)
				if Check(answer) == nil {
					t.Errorf("%s with a hostile %q is accepted", name, before)
				}
				text.SetString(before)
			})
		}
	}
}

// eachText calls f for every text in v that can be set.
func eachText(v reflect.Value, f func(text reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachText(v.Field(i), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), f)
		}
	case reflect.String:
		f(v)
	}
}

const approved = `{"authToken":"svc_1","accountId":"a","tier":"free_account","linkedAt":"2026-01-02T03:04:05Z",` +
	`"expiresAt":null}`

func TestDecode_Unusable(t *testing.T) {
	replaced := func(name, old, new string) string { return strings.Replace(golden(t, name), old, new, 1) }
	for _, tc := range []struct {
		answer any
		body   string
	}{
		{&TokenAnswer{}, `<html></html>`}, {&TokenAnswer{}, ``}, {&TokenAnswer{}, `{}`},
		{&TokenAnswer{}, `{"pending":false}`}, {&TokenAnswer{}, `{"pending":"true"}`},
		{&TokenAnswer{}, `{"pending":true,"pollIntervalSeconds":"5"}`}, {&TokenAnswer{}, `{"authToken":"svc_1"}`},
		{&TokenAnswer{}, strings.Replace(approved, `"svc_1"`, `1`, 1)},
		{&TokenAnswer{}, strings.Replace(approved, "2026-01-02T03:04:05Z", "yesterday", 1)},
		{&TokenAnswer{}, strings.Replace(approved, "{", `{"pending":true,`, 1)},
		{&TokenAnswer{}, approved + `{}`}, {&TokenAnswer{}, `[]`}, {&TokenAnswer{}, `null`},
		{&ProjectList{}, ``}, {&ProjectList{}, `{}`}, {&ProjectList{}, `null`}, {&ProjectList{}, `{"projects":[{}]}`},
		{&ProjectList{}, `{"projects":[{"project":"a.b","createdAt":"now"}]}`},
		{&ProjectList{}, replaced("project_list", `"Hello"`, `"\u001b[31mHello"`)},
		{&AssistantConfig{}, `{}`}, {&AssistantConfig{}, replaced("assistant_config", `"version": 4`, `"version": -1`)},
		{&AssistantConfig{}, replaced("assistant_config", `"version": 4`, `"version": "4"`)},
		{&AssistantConfig{}, replaced("assistant_config", `"read_write"`, `"do this"`)},
		{&AssistantConfig{}, replaced("assistant_config", `"sounds":`, `"a key\u001b":`) + "x"},
		{&AssistantConfig{}, `{"choices":{"voices":[null]}}`},
		{&CredentialList{}, `{"project":"a.b"}`}, {&CredentialList{}, `{"project":"a.b","credentials":[{"set":true}]}`},
		{&CredentialList{}, replaced("credential_list", `"...wxyz"`, `"`+strings.Repeat("x", 65)+`"`)},
		{&CredentialLink{}, `{}`}, {&CredentialLink{}, replaced("credential_link", "https:", "file:")},
		{&CredentialLink{}, replaced("credential_link", "2026", "soon")},
		{&AnalyticsReport{}, `{}`}, {&AnalyticsReport{}, replaced("analytics_report", `"series"`, `"rows"`)},
		{&AnalyticsReport{}, replaced("analytics_report", `"from": "2026`, `"from": "x`)},
		{&AnalyticsReport{}, replaced("analytics_report", `"photo.taken"`, `"\u009bx"`)},
		{&ConnectionPage{}, `{"project":"a.b"}`}, {&ConnectionPageFile{}, `{"name":"connect.html"}`},
		{&ConnectionPage{}, replaced("connection_page", `"Connect your glasses"`, `"\u001b]0;x\u0007"`)},
		{&ConnectionPageFile{}, golden(t, "connection_page_file")},
		{&Controlled{}, `{"result":7}`}, {&EventPage{}, `{"next":1}`},
		{&SessionList{}, replaced("session_list", "rayban_display", `\u202eevil`)},
		{&SessionList{}, replaced("session_list", "wss://", "ws://")},
		{&SessionList{}, replaced("session_list", "wss://", "https://")},
		{&SessionList{}, replaced("session_list", "wss://glasses.example", "wss://")},
		{&TelemetryReceipt{}, `{}`}, {&TelemetryReceipt{}, `{"accepted":1,"duplicates":0}`},
		{&TelemetryReceipt{}, `{"accepted":1,"duplicates":0,"rejected":null}`}, {&TelemetryReceipt{}, `[]`},
		{&TelemetryReceipt{}, `{"accepted":-1,"duplicates":0,"rejected":0}`}, {&TelemetryPurged{}, `{}`},
		{&Health{}, `{"service":"x","hints":{"a b":"c"}}`},
	} {
		err := Decode([]byte(tc.body), tc.answer)
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\u009b\u202e") || strings.Contains(err.Error(), "svc_1") {
			t.Errorf("%T from %.200s: got %v, want an error without the body's texts", tc.answer, tc.body, err)
		}
	}
}

func TestDecode_Accepts(t *testing.T) {
	for body, want := range map[string]int64{
		`{"pending":true,"pollIntervalSeconds":12}`:                  12,
		`{"pending":true}`:                                           0,
		`{"pending":true,"pollIntervalSeconds":-1}`:                  -1,
		`{"pending":true,"pollIntervalSeconds":5,"new":{},"new":[]}`: 5,
	} {
		var a TokenAnswer
		if err := Decode([]byte(body), &a); err != nil || !a.Pending || a.Token != nil || a.PollIntervalSeconds != want {
			t.Errorf("%s: got %+v, %v", body, a, err)
		}
	}
	var a TokenAnswer
	if err := Decode([]byte(approved), &a); err != nil || a.AuthToken != "svc_1" || a.ExpiresAt != nil {
		t.Errorf("got %+v, %v; want a token that does not expire", a.Token, err)
	}
	var page EventPage
	if err := Decode([]byte(`{"events":[{"a":[1,2],"a":"`+"\xff"+`"}],"next":1}`), &page); err != nil ||
		string(page.Events[0]) != `{"a":[1,2],"a":"`+"\uFFFD"+`"}` {
		t.Errorf("got %s, %v; want the row, as UTF-8", page.Events, err)
	}
	half := `{"a":"half of an emoji: \ud83d"}`
	if err := Decode([]byte(`{"events":[`+half+`],"next":1}`), &page); err != nil || string(page.Events[0]) != half {
		t.Errorf("got %s, %v; want the row as the app wrote it", page.Events, err)
	}
	var receipt TelemetryReceipt
	if err := Decode([]byte(`{"accepted":0,"duplicates":0,"rejected":0}`), &receipt); err != nil {
		t.Error(err)
	}
}

// A token that does not fit in a header would be saved and then make every call fail.
func TestDecode_Token(t *testing.T) {
	decode := func(value string) error {
		return Decode([]byte(strings.Replace(approved, "svc_1", value, 1)), &TokenAnswer{})
	}
	for what, value := range map[string]string{
		"a newline": `svc_1\nX-Evil: 1`, "a space": "svc 1", "9,000 bytes": strings.Repeat("a", 9000), "a quote": `a\"b`,
		"not ASCII": "svc_\u00e9", "padding inside": "a=b",
	} {
		if decode(value) == nil {
			t.Errorf("a token with %s is accepted", what)
		}
	}
	for _, value := range []string{"svc_1", "a", "AZaz09-._~+/==", strings.Repeat("a", 4096)} {
		if err := decode(value); err != nil {
			t.Errorf("token %.20s: %v", value, err)
		}
	}
}

// A backend offers the models of a user's own server under ids that follow the shared rule, so every id that the rule
// allows must be accepted.
func TestCheck_AcceptsEveryIDOfAModel(t *testing.T) {
	for id, fits := range map[string]bool{
		"ollama/llama3.2:1b": true, "a/Qwen/Qwen2.5-7B@q4+k_M": true, "a/-": true,
		"a/" + strings.Repeat("x", MaxModelID-2): true, "a/" + strings.Repeat("x", MaxModelID-1): false,
		`a/C:\models\x.gguf`: false, "a/b c": false,
	} {
		one, other := GatewayOfModel{Model: id}, GatewayModel{ID: id, Resolves: &id}
		if IsName(id, MaxModelID) != fits || (Check(&one) == nil) != fits || (Check(&other) == nil) != fits {
			t.Errorf("%q: valid by the rule: %v, as a response: %v and %v; want the same", id, IsName(id, MaxModelID),
				Check(&one), Check(&other))
		}
	}
}

// An entry takes three bytes to send; decoding a megabyte of entries once used gigabytes of memory.
func TestDecode_ManyEntries(t *testing.T) {
	times := func(n int, entry string) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	project := `{"project":"com.example.a","createdAt":"2026-01-02T03:04:05Z","platforms":[` + times(900, `"a"`) + `]}`
	projects := func(n int) string {
		return `{"projects":[` + times(n, `{"project":"a","createdAt":"2026-01-02T03:04:05Z"}`) + `]}`
	}
	hints := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":"x"`, i)
		}
		return `{"service":"a","hints":{` + b.String()[1:] + `}}`
	}
	report := func(points int) string {
		return strings.Replace(golden(t, "analytics_report"), `"series": [`, `"series": [`+times(points, `{}`)+`,`, 1)
	}
	for name, tc := range map[string]struct {
		answer any
		body   string
		ok     bool
	}{
		"the maximum number of projects": {&ProjectList{}, projects(500), true},
		"too many projects":              {&ProjectList{}, projects(1001), false},
		"too many in all":                {&ProjectList{}, `{"projects":[` + times(25, project) + `]}`, false},
		"a week by hours":                {&AnalyticsReport{}, report(168), true},
		"too many points":                {&AnalyticsReport{}, report(1001), false},
		"too many events":                {&EventPage{}, `{"events":[` + times(1001, "0") + `]}`, false},
		"a large event":                  {&EventPage{}, `{"events":[[` + times(100_000, "0") + `]]}`, true},
		"many hints":                     {&Health{}, hints(1000), true},
		"too many hints":                 {&Health{}, hints(1001), false},
	} {
		err := Decode([]byte(tc.body), tc.answer)
		if tc.ok != (err == nil) || err != nil && !strings.HasSuffix(err.Error(), `has too many entries`) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A list of a megabyte is refused before it takes many times its size.
func TestDecode_Memory(t *testing.T) {
	body := []byte(`{"projects":[` + strings.Repeat(`{},`, 1<<20/3) + `{}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Decode(body, &ProjectList{})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 8<<20 {
		t.Errorf("decoding allocated %d bytes, error %v; want an error and at most 8 MiB", used, err)
	}
}

// FuzzDecode decodes arbitrary bytes as each response. It must not panic, and an accepted response must have all
// required fields.
func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, path := range files {
		if data, err := os.ReadFile(path); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte(approved))
	f.Add([]byte(`{"pending":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, answer := range answers() {
			if Decode(body, answer) != nil {
				continue
			}
			encoded, err := json.Marshal(answer)
			again := reflect.New(reflect.TypeOf(answer).Elem()).Interface()
			if err == nil {
				err = Decode(encoded, again)
			}
			if err != nil {
				t.Fatalf("%T from %q was accepted, but not once encoded again: %v", answer, body, err)
			}
		}
	})
}
