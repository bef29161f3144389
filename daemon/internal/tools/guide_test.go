package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/scaffold"
	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
)

// payloadTypes are the protocol's types; the fields in guides are compared with them.
var payloadTypes = map[string]any{
	glasses.TypeDisplayShow: glasses.Show{}, glasses.TypeSpeechSay: glasses.Say{}, glasses.TypeSoundPlay: glasses.Play{},
	glasses.TypePlaybackStart: glasses.PlaybackStart{}, glasses.TypePlayback: glasses.PlaybackState{},
	glasses.TypeAudioStart: glasses.AudioStart{}, glasses.TypeTranscriptionStart: glasses.TranscriptionStart{},
	glasses.TypeVideoStart:  glasses.VideoStart{},
	glasses.TypeMotionStart: glasses.MotionStart{}, glasses.TypeCameraPhoto: glasses.Photo{},
	glasses.TypeCameraVideo:     glasses.Video{},
	glasses.TypePhrasesAnnounce: glasses.Announce{}, glasses.TypeClockSleep: glasses.Sleep{},
	glasses.TypeClockCancel: glasses.Cancel{},
	glasses.TypeInput:       glasses.Input{}, glasses.TypeTranscript: glasses.Transcript{},
	glasses.TypeSpeech: glasses.SpeechState{}, glasses.TypeMotion: glasses.Motion{},
	glasses.TypeBattery: glasses.Battery{}, glasses.TypeWear: glasses.WearState{},
	glasses.TypeHinge: glasses.StateWord{}, glasses.TypeThermal: glasses.StateWord{},
	glasses.TypeLink: glasses.StateWord{}, glasses.TypeRoute: glasses.RouteState{},
	glasses.TypeCall: glasses.CallState{}, glasses.TypePermission: glasses.PermissionState{},
	glasses.TypeDisabled: glasses.DisabledState{}, glasses.TypeDevice: glasses.DeviceChange{},
	glasses.TypeTranscription: glasses.TranscriptionState{}, glasses.TypeFault: glasses.Fault{}, glasses.TypeMedia: glasses.Media{},
	glasses.TypeAudioChunk: glasses.Media{}, glasses.TypeVideoFrame: glasses.Media{},
}

func jsonNames(v any) []string {
	var names []string
	t := reflect.TypeOf(v)
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func fieldNames(list []field) []string {
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

func TestGuides_HaveTheProtocolsFields(t *testing.T) {
	var all []string
	for _, c := range commandGuides() {
		all = append(all, c.Type)
		if typ, ok := payloadTypes[c.Type]; ok && !slices.Equal(fieldNames(c.Payload), jsonNames(typ)) {
			t.Errorf("%s has the fields %v in guides, but %v in the protocol", c.Type, fieldNames(c.Payload), jsonNames(typ))
		} else if !ok && len(c.Payload) > 0 {
			t.Errorf("%s has no payload, but guides list %v", c.Type, fieldNames(c.Payload))
		}
	}
	var want []string
	for _, c := range glasses.Commands() {
		want = append(want, c.Type)
	}
	if !slices.Equal(all, want) {
		t.Errorf("guides list %v, but the protocol %v", all, want)
	}
	for _, e := range eventGuides() {
		if typ, ok := payloadTypes[e.Type]; ok && !slices.Equal(fieldNames(e.Payload), jsonNames(typ)) {
			t.Errorf("%s has the fields %v in guides, but %v in the protocol", e.Type, fieldNames(e.Payload), jsonNames(typ))
		}
	}
	for _, c := range guide.Capabilities() {
		if got := eventGuidesOf(c.Events); len(got) != len(c.Events) {
			t.Errorf("%s has the events %v, but guides describe only %d", c.ID, c.Events, len(got))
		}
	}
	var codes []string
	for _, e := range errorGuides() {
		codes = append(codes, e.Code)
	}
	for _, code := range append(glasses.CommandCodes(), glasses.CodeBadPayload) {
		if !slices.Contains(codes, code) {
			t.Errorf("no guide describes %s", code)
		}
	}
	var node []string
	for _, n := range nodeGuides() {
		for _, f := range n.Fields {
			node = append(node, f.Name)
		}
	}
	for _, name := range jsonNames(glasses.Node{}) {
		if name != "type" && !slices.Contains(node, name) {
			t.Errorf("no guide describes the field %s of a node", name)
		}
	}
}

// sample returns a valid payload of a command.
func sample(c commandGuide) map[string]any {
	payload := map[string]any{}
	for _, f := range c.Payload {
		if f.Required {
			payload[f.Name] = sampleOf(f, f.Min)
		}
	}
	return payload
}

func sampleOf(f field, n *int64) any {
	switch {
	case len(f.OneOf) > 0:
		return f.OneOf[0]
	case f.Type == "object":
		return map[string]any{"type": "text"}
	case f.Type == "array":
		return slices.Repeat([]string{"x"}, int(*n))
	case f.Type == "string" && n != nil:
		return strings.Repeat("x", int(*n))
	case n != nil:
		return *n
	}
	return "x"
}

func TestGuides_BoundsAreThoseOfTheParser(t *testing.T) {
	for _, c := range commandGuides() {
		taken := func(payload map[string]any) bool {
			data, err := json.Marshal(payload)
			if err != nil {
				t.Fatal(err)
			}
			_, err = glasses.ParseCommand(c.Type, data)
			return err == nil
		}
		if !taken(sample(c)) {
			t.Errorf("%s rejects %v", c.Type, sample(c))
		}
		for _, f := range c.Payload {
			if f.Min == nil {
				continue
			}
			for _, probe := range []struct {
				n    int64
				want bool
			}{{*f.Min, true}, {*f.Max, true}, {*f.Max + 1, false}, {*f.Min - 1, false}} {
				if probe.n < 0 && f.Type != "integer" || probe.n == 0 && !f.Required {
					// A length is never negative, and 0 means the default.
					continue
				}
				payload := sample(c)
				payload[f.Name] = sampleOf(f, &probe.n)
				if taken(payload) != probe.want {
					t.Errorf("%s with %s %d: accepted %v", c.Type, f.Name, probe.n, !probe.want)
				}
			}
		}
	}
}

func TestGuides_ExamplesParse(t *testing.T) {
	for _, id := range guide.CapabilityIDs() {
		words := capabilityGuideOf(id)
		if len(words.Pitfalls) == 0 || len(words.Next) == 0 {
			t.Errorf("%s has no pitfalls or no next call", id)
		}
		asked := map[string]bool{}
		for _, raw := range words.Example.App {
			f, err := glasses.Parse(raw)
			if err == nil {
				_, err = glasses.ParseCommand(f.Type, f.Payload)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", id, raw, err)
			}
			asked[f.ID] = true
		}
		for _, raw := range words.Example.Glasses {
			f, err := glasses.Parse(raw)
			switch {
			case err != nil:
			case f.Type == glasses.TypeResult:
				_, err = glasses.ParseResult(f.Payload)
				if !asked[f.ID] {
					t.Errorf("%s: %s answers no request", id, raw)
				}
			case !glasses.FromGlasses(f.Type):
				t.Errorf("%s: %s is not a frame from the glasses", id, raw)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", id, raw, err)
			}
		}
	}
	attach := readGuide[platformGuide]("platform").Attach
	if _, _, err := glasses.ParseHello(attach.Hello); err != nil {
		t.Errorf("hello: %v", err)
	}
	if attach.URLVariable != envGlassesURL || attach.SecretVariable != envGlassesSecret {
		t.Errorf("the guide names %s and %s, want the session's variables", attach.URLVariable, attach.SecretVariable)
	}
}

var (
	toolLike = regexp.MustCompile(`\b(?:get|set|create|start|inject|wait|expect|assert|advance|record|replay|close|` +
		`search|list|generate|validate|inspect|complete|connect|who)[A-Z][A-Za-z]+\b`)
	commandLike = regexp.MustCompile(`\b(?:display|speech|sound|audio|transcription|video|motion|camera|` +
		`phrases|clock|sim|app|session|stream)\.[a-z]+\b`)
	modelLike = regexp.MustCompile(`\b(?:rayban|oakley|even|brilliant|android_xr|system)_[a-z0-9_]+\b`)
)

// TestTexts_NameOnlyWhatExists checks all texts, schemas and answers that need no session.
func TestTexts_NameOnlyWhatExists(t *testing.T) {
	w := newWorld()
	list := w.catalogue().List()
	tools := map[string]bool{}
	read := map[string]string{}
	for _, tool := range list {
		tools[tool.Name] = true
		read[tool.Name] = tool.Title + tool.Description + string(tool.InputSchema) + string(tool.OutputSchema)
	}
	for name, args := range answersToWalk() {
		for _, a := range args {
			result, _ := w.call(t, name, a, IO{})
			if name != "getCodeExample" { // code contains other names
				read[name+" "+a] = result.Text
			}
			checkNext(t, list, name, result)
		}
	}
	ofPlatforms := []string{"setTimeout", "setNonce", "startTranscription"} // and of the generated module
	fieldsNamedSo := []string{"startedAt", "setAt", "setBy", "waitMs", "closePrevious", "expectNothingClipped", "expectMemory"}
	for _, page := range docs.Pages() {
		// Some of the tools named by pages are announced for a later version.
		for _, word := range append(toolLike.FindAllString(page.Markdown, -1),
			modelLike.FindAllString(page.Markdown, -1)...) {
			_, model := glasses.Model(word)
			field := slices.Contains(fieldsNamedSo, word) || slices.Contains(ofPlatforms, word)
			if !tools[word] && !model && !field && !slices.Contains(notYet, word) {
				t.Errorf("the page %s names %s, which does not exist", page.ID, word)
			}
		}
	}
	for where, words := range read {
		for _, word := range toolLike.FindAllString(words, -1) {
			if !tools[word] && !slices.Contains(fieldsNamedSo, word) {
				t.Errorf("%s names the tool %s, which does not exist", where, word)
			}
		}
		for _, word := range commandLike.FindAllString(words, -1) {
			if !glasses.IsCommand(word) && !glasses.FromGlasses(word) && !glasses.IsControl(word) &&
				glasses.ChipOf(word) == glasses.ChipCustom {
				t.Errorf("%s names %s, which is not in the protocol", where, word)
			}
		}
		for _, word := range modelLike.FindAllString(words, -1) {
			if _, ok := glasses.Model(word); !ok {
				t.Errorf("%s names the device model %s, which does not exist", where, word)
			}
		}
	}
}

// notYet lists tools of later versions, which the pages announce as not yet available.
var notYet = []string{}

// answersToWalk are calls without a session.
func answersToWalk() map[string][]string {
	calls := map[string][]string{"getPlatformInfo": {`{}`},
		"getVoiceCommandGuidance": {`{}`, `{"phrases":["ok google","go"]}`}, "getProductionChecklist": {`{}`}}
	for _, id := range guideNames() {
		calls["getCapabilityGuide"] = append(calls["getCapabilityGuide"], fmt.Sprintf(`{"capability":%q}`, id))
	}
	for _, language := range scaffold.Languages() {
		for _, topic := range scaffold.ExampleTopicIDs() {
			calls["getCodeExample"] = append(calls["getCodeExample"],
				fmt.Sprintf(`{"language":%q,"topic":%q}`, language, topic))
		}
	}
	for _, platform := range guide.Platforms() {
		calls["getPermissions"] = append(calls["getPermissions"], fmt.Sprintf(`{"platform":%q}`, platform))
		calls["getProductionChecklist"] = append(calls["getProductionChecklist"],
			fmt.Sprintf(`{"platform":%q,"capabilities":["display"]}`, platform))
	}
	return calls
}

// checkNext checks each proposed call against the schema of its tool.
func checkNext(t *testing.T, list []Tool, name string, result Result) {
	t.Helper()
	var answer struct {
		Next  []nextCall `json:"nextCalls"`
		Items []struct {
			Prove *nextCall `json:"prove"`
		} `json:"items"`
	}
	if err := json.Unmarshal(result.Structured, &answer); err != nil {
		return // answers of other shapes propose no calls
	}
	for _, item := range answer.Items {
		if item.Prove != nil {
			answer.Next = append(answer.Next, *item.Prove)
		}
	}
	for _, next := range answer.Next {
		for _, tool := range list {
			if tool.Name == next.Tool {
				var arguments any
				if err := json.Unmarshal(next.Arguments, &arguments); err != nil {
					t.Errorf("%s proposes %s with the arguments %s: %v", name, next.Tool, next.Arguments, err)
				}
				validate(t, tool.InputSchema, arguments)
			}
		}
	}
}
