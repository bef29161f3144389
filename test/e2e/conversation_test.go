//go:build unix

package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/glasses/media"
)

// talkingApps hold a conversation with a tool, and log what the assistant says.
var talkingApps = map[string]string{
	"talk.ts": `
import { connect } from "./service/glasses.js";
const glasses = await connect({ app: { name: "talk" } });
glasses.on("battery", () => glasses.stopConversing());
const end = await glasses.converse({
  instructions: "Be brief.",
  tools: [{ name: "add_item", description: "Adds an item.", run: async ({ item }) => {
    await glasses.sleep(200);
    return { added: item };
  } }],
  onSaid: (text) => glasses.log("com.example.said", { text }),
});
if (end.reason === "closed") process.exit(0);
glasses.log("com.example.ended", end);
for await (const _ of glasses.events());
`,
	"talk.py": `
from service import glasses as service
glasses = service.connect("talk")
glasses.on("battery", lambda event: glasses.stop_conversing())

def add_item(given):
    glasses.sleep(200)
    return {"added": given["item"]}

end = glasses.converse(
    instructions="Be brief.",
    tools=[service.AssistantTool("add_item", "Adds an item.", add_item)],
    on_said=lambda text: glasses.log("com.example.said", {"text": text}))
if end.reason == "closed":
    raise SystemExit(0)
glasses.log("com.example.ended", {"reason": end.reason, "mode": end.mode})
glasses.run()
`,
	"talk.kt": `
import service.AssistantTool
import service.Settings
import service.connect

fun main() {
    val glasses = connect(Settings("talk", "1", release = false))
    glasses.on("battery") { glasses.stopConversing() }
    val addItem = AssistantTool("add_item", "Adds an item.") {
        glasses.sleep(200)
        mapOf("added" to it["item"])
    }
    val end = glasses.converse("Be brief.", listOf(addItem), onSaid = {
        glasses.log("com.example.said", mapOf("text" to it))
    })
    if (end.reason == "closed") return
    glasses.log("com.example.ended", mapOf("reason" to end.reason, "mode" to end.mode))
    glasses.run()
}
`}

// speechWAV is sound like speech, ms long, and silence after it.
func speechWAV(ms int) []byte {
	const rate = 16000
	var pcm bytes.Buffer
	for i := range rate * ms / 1000 {
		_ = binary.Write(&pcm, binary.LittleEndian, 3*media.Tone(int64(i), rate, 300))
	}
	pcm.Write(make([]byte, 2*rate)) // a second
	var wav bytes.Buffer
	wav.WriteString("RIFF")
	_ = binary.Write(&wav, binary.LittleEndian, uint32(36+pcm.Len()))
	wav.WriteString("WAVEfmt ")
	_ = binary.Write(&wav, binary.LittleEndian, []uint32{16})
	_ = binary.Write(&wav, binary.LittleEndian, []uint16{1, 1})
	_ = binary.Write(&wav, binary.LittleEndian, []uint32{rate, 2 * rate})
	_ = binary.Write(&wav, binary.LittleEndian, []uint16{2, 16})
	wav.WriteString("data")
	_ = binary.Write(&wav, binary.LittleEndian, uint32(pcm.Len()))
	wav.Write(pcm.Bytes())
	return wav.Bytes()
}

// inEachLanguage runs a test with a coding agent for each language whose modules run here, and returns their world.
func inEachLanguage(t *testing.T, test func(t *testing.T, w *world, a *agent, language string)) *world {
	t.Helper()
	w := newWorld(t, "")
	needAgent(t)
	a := startAgent(w, "modern", false)
	defer func() { a.t = t }()
	for _, language := range []string{"typescript", "python", "kotlin"} {
		t.Run(language, func(t *testing.T) {
			a.t = t
			test(t, w, a, language)
		})
	}
	return w
}

// An app holds a spoken conversation with a script in virtual time: it calls a tool, is interrupted, and the truncation
// equals what was played.
func TestConversation_WithScript(t *testing.T) {
	t.Parallel()
	inEachLanguage(t, func(t *testing.T, w *world, a *agent, language string) {
		dir := exampleInto(t, a, language, "assistant")
		app := talkingApp(t, dir, language)
		converse(t, w, a, app, dir, true)
		converse(t, w, a, app, dir, false)
	})
}

// talkingApp writes the app of a language to dir and returns its command.
func talkingApp(t *testing.T, dir, language string) []string {
	t.Helper()
	for name, text := range talkingApps {
		writeInto(t, filepath.Join(dir, name), text)
	}
	return appCommand(t, dir, language, "talk")
}

// writeSpeech writes a recording of 700 ms of speech with its transcript to dir, and returns its path.
func writeSpeech(t *testing.T, dir string) string {
	t.Helper()
	sound := filepath.Join(dir, "speech.wav")
	if err := os.WriteFile(sound, speechWAV(700), 0o600); err != nil {
		t.Fatal(err)
	}
	writeInto(t, filepath.Join(dir, "speech.vtt"),
		"WEBVTT\n\n00:00.000 --> 00:00.400\nWe need\n\n00:00.400 --> 00:00.700\nmilk\n")
	return sound
}

// sees waits for an event and returns its payload, with its time as at.
func (a *agent) sees(typ string, payload map[string]any) map[string]any {
	a.t.Helper()
	wait := map[string]any{"type": typ, "timeoutSeconds": 20}
	if payload != nil {
		wait["payload"] = payload
	}
	row := a.call("waitForEvent", wait)
	event, _ := row.Structured["event"].(map[string]any)
	if row.Structured["status"] != "found" || event == nil {
		a.t.Fatalf("wait for event %s %v: %v", typ, payload, row.Structured)
	}
	got, _ := event["payload"].(map[string]any)
	got["at"] = event["at"]
	return got
}

// advance moves the virtual clock, and expects everything to be settled.
func (a *agent) advance(ms int) {
	a.t.Helper()
	if moved := a.call("advanceTime", map[string]any{"ms": ms}); moved.IsError || moved.Structured["settled"] != true {
		a.t.Errorf("advanceTime: got %v, want settled", moved.Structured)
	}
}

// An answer that is longer than what glasses can buffer is played to its end.
func TestConversation_LongAnswer(t *testing.T) {
	t.Parallel()
	inEachLanguage(t, func(t *testing.T, w *world, a *agent, language string) {
		dir := exampleInto(t, a, language, "assistant")
		sound := writeSpeech(t, dir)
		script := filepath.Join(dir, "script.json")
		writeInto(t, script, `{"rules":[{"when":{"contains":"milk"},"reply":{"text":"`+
			strings.Repeat("So it is. ", 150)+`"}}]}`)
		s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual",
			"deviceModel": "system_audio", "assistantScript": script})
		cmd := startApp(t, w, talkingApp(t, dir, language), s)
		a.sees("audio.start", nil)
		a.sees("assistant.started", nil)
		if got := a.call("injectSensor", map[string]any{"microphoneFile": sound}); got.IsError {
			t.Fatalf("injectSensor: %v", got.Structured)
		}
		a.advance(30_000)
		a.advance(65_000)
		// The turn ends after half a second of silence.
		got := a.sees("playback", map[string]any{"state": "finished"})
		if got["playedMs"] != 90_000.0 || got["at"] != 91_200.0 {
			t.Errorf("playback finished with %v, want 90000 ms at 91200", got)
		}
		closeDuringAnswer(t, a, s, cmd)
	})
}

// inject changes a sensor or a state of the glasses.
func (a *agent) inject(change map[string]any) {
	a.t.Helper()
	if got := a.call("injectSensor", change); got.IsError {
		a.t.Fatalf("injectSensor: %v", got.Structured)
	}
}

// When the glasses stop an answer, the model learns what was heard, the rest is dropped, and the conversation continues
// once they can speak again.
func TestConversation_Survives(t *testing.T) {
	t.Parallel()
	inEachLanguage(t, func(t *testing.T, w *world, a *agent, language string) {
		dir := exampleInto(t, a, language, "assistant")
		sound := writeSpeech(t, dir)
		script := filepath.Join(dir, "script.json")
		writeInto(t, script, `{"rules":[{"when":{"contains":"milk"},"reply":{"text":"`+
			strings.Repeat("So it is. ", 40)+`"}}]}`)
		s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual",
			"deviceModel": "system_audio", "assistantScript": script})
		cmd := startApp(t, w, talkingApp(t, dir, language), s)
		a.sees("assistant.started", nil)
		for _, test := range []struct {
			name        string
			state, undo map[string]any
			reason      string
		}{
			{"call", map[string]any{"call": true}, map[string]any{"call": false}, "busy"},
			{"folded", map[string]any{"hinge": "folded"}, map[string]any{"hinge": "open"}, "hinge_closed"},
			{"link", map[string]any{"link": "lost"}, map[string]any{"link": "connected"}, "not_connected"},
		} {
			a.sees("audio.start", nil)
			a.inject(map[string]any{"microphoneFile": sound})
			a.advance(2200) // the turn ends after 1200 ms
			a.sees("playback", map[string]any{"state": "started"})
			a.inject(map[string]any{"state": test.state})
			// The app has reacted by now. The next call that acts would move the place where sees begins.
			stopped := a.sees("playback", map[string]any{"state": "stopped"})
			said, cut := a.sees("assistant.said", nil), a.sees("assistant.interrupted", nil)
			if stopped["reason"] != test.reason || stopped["playedMs"] != 1000.0 || cut["playedMs"] != 1000.0 ||
				said["audioMs"] != 15_000.0 { // of 24 s: the rest was cancelled
				t.Errorf("%s: stopped %v, said %v, interrupted %v; want %s, 1000 ms of 15 s", test.name, stopped, said, cut,
					test.reason)
			}
			const steps = `[{"advance":5000},{"expect":{"type":"playback.start","absent":true,"withinMs":0}}]`
			verdict := a.call("runSteps", map[string]any{"steps": json.RawMessage(steps)})
			if verdict.Structured["verdict"] != "pass" {
				t.Errorf("%s: runSteps: got %v, want pass", test.name, verdict.Structured)
			}
			a.inject(map[string]any{"state": test.undo})
		}
		closeDuringAnswer(t, a, s, cmd)
	})
}

// converse runs an app. At the end it stops the conversation, or closes the session during an answer.
func converse(t *testing.T, w *world, a *agent, app []string, dir string, stop bool) {
	t.Helper()
	script, sound := filepath.Join(dir, "script.json"), writeSpeech(t, dir)
	writeInto(t, script, `{"rules":[{"when":{"toolResult":"add_item"},"reply":{"text":"`+strings.Repeat("Done it. ", 20)+`"}},
		{"when":{"contains":"milk"},"reply":{"toolCall":{"name":"add_item","arguments":{"item":"milk"}},"delayMs":400}}]}`)
	s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual", "deviceModel": "system_audio",
		"assistantScript": script})
	cmd := startApp(t, w, app, s)
	sees, advance := a.sees, a.advance
	sees("audio.start", nil)
	sees("assistant.started", nil)
	hear := func() {
		t.Helper()
		if got := a.call("injectSensor", map[string]any{"microphoneFile": sound}); got.IsError {
			t.Fatalf("injectSensor: %v", got.Structured)
		}
	}
	hear()
	advance(2000)
	if heard := sees("assistant.heard", nil); heard["audioMs"] != 1200.0 || heard["text"] != "We need milk" {
		t.Errorf("assistant.heard: got %v, want We need milk and 1200 ms, with half a second of silence", heard)
	}
	sees("assistant.tool_called", map[string]any{"name": "add_item", "arguments": map[string]any{"item": "milk"}})
	started := sees("playback", map[string]any{"state": "started"})
	if at := started["at"]; at != 1800.0 { // the script takes 400 ms after the turn, and the tool 200 ms
		t.Errorf("playback started at %v, want 1800", at)
	}
	if !stop {
		closeDuringAnswer(t, a, s, cmd)
		return
	}
	const steps = `[{"advance":1000},
		{"expect":{"type":"assistant.said","payload":{"audioMs":10800},"atMost":{"afterSpeechMs":1100}}}]`
	if verdict := a.call("runSteps", map[string]any{"steps": json.RawMessage(steps)}); verdict.Structured["verdict"] != "pass" {
		t.Errorf("runSteps: got %v, want pass", verdict.Structured)
	}
	// The wearer stopped speaking half a second before the end of the turn.
	if said := sees("assistant.said", nil); said["audioMs"] != 10_800.0 || said["afterSpeechMs"] != 1100.0 {
		t.Errorf("assistant.said: got %v, want 10800 ms of sound, 1100 ms after the speech", said)
	}
	hear()
	advance(200)
	stopped := sees("playback", map[string]any{"state": "stopped"})
	cut := sees("assistant.interrupted", nil)
	if at, _ := stopped["at"].(float64); at > 3150 || cut["playedMs"] != at-1800 || cut["playedMs"] != stopped["playedMs"] {
		t.Errorf("playback stopped: %v, interrupted: %v; want the same, at most 150 ms after the wearer spoke at 3000",
			stopped, cut)
	}
	if got := a.call("injectSensor", map[string]any{"state": map[string]any{
		"battery": map[string]any{"level": 50, "charging": false}}}); got.IsError {
		t.Fatalf("injectSensor: %v", got.Structured)
	}
	if ended := sees("com.example.ended", nil); ended["reason"] != "stopped" || ended["mode"] != "realtime" {
		t.Errorf("ended %v, want stopped and realtime", ended)
	}
}

// closeDuringAnswer closes the session while the script still sends its answer. The app must then exit by itself.
func closeDuringAnswer(t *testing.T, a *agent, s toolResult, cmd *exec.Cmd) {
	t.Helper()
	if got := a.call("closeSession", map[string]any{"sessionId": s.str(t, "sessionId")}); got.IsError {
		t.Fatalf("closeSession: %v", got.Structured)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the app ended with %v, want the reason closed", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("converse did not return after the session was closed")
	}
}

// The test that getCodeExample returns with a voice assistant passes in each language. The Swift
// example does not run because this machine has no compiler for it.
func TestConversationExample_PassesItsTest(t *testing.T) {
	t.Parallel()
	// The last wait is for the end of a connection, which virtual time does not wait for.
	passed := regexp.MustCompile(`PASS  25 steps, (19[2-9]|20[0-2])\.\d{3} s of session time`)
	inEachLanguage(t, func(t *testing.T, w *world, a *agent, language string) {
		dir := exampleInto(t, a, language, "conversation")
		run := append([]string{"session", "run", filepath.Join(dir, "tests", "conversation.json"), "--"},
			appCommand(t, dir, language, "conversation")...)
		if out, errs, exit := w.ctl(run...); exit != 0 || !passed.MatchString(out) {
			t.Errorf("session run: exit %d, want 0: %s%s", exit, out, errs)
		}
		run[2] = filepath.Join(dir, "tests", "failing.json")
		writeInto(t, run[2], failingAnswers)
		if out, errs, exit := w.ctl(run...); exit != 0 {
			t.Errorf("session run with answers that fail: exit %d, want 0: %s%s", exit, out, errs)
		}
	})
}

// A recording of a conversation contains the words that the microphone heard, and replays.
func TestConversationExample_ReplaysItsRecording(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	needAgent(t)
	a := startAgent(w, "modern", false)
	dir := exampleInto(t, a, "typescript", "conversation")
	app := appCommand(t, dir, "typescript", "conversation")
	s := a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "virtual",
		"assistantScript": filepath.Join(dir, "tests", "conversation.json")})
	startApp(t, w, app, s)
	a.sees("display.show", nil)
	for _, word := range []string{"milk", "recipe"} {
		if word == "milk" {
			a.call("injectInput", map[string]any{"kind": "tap", "x": 20, "y": 20})
			a.sees("assistant.started", nil)
		}
		a.inject(map[string]any{"microphoneFile": filepath.Join(dir, "tests", word+".vtt")})
		a.advance(4000)
	}
	recording := filepath.Join(t.TempDir(), "recorded")
	if got := a.call("recordSession", map[string]any{"dir": recording}); got.IsError ||
		strings.Contains(fmt.Sprint(got.Structured["notes"]), "microphone") {
		t.Fatalf("recordSession: %v", got.Structured)
	}
	out, errs, exit := w.ctl(append([]string{"session", "run", recording, "--"}, app...)...)
	if exit != 0 || strings.Count(out, "microphone ") != 2 {
		t.Errorf("session run of the recording: exit %d, want 0, and two steps microphone: %s%s", exit, out, errs)
	}
}

// failingAnswers is a scenario of the example in which the wearer learns that there is no answer, and continues.
const failingAnswers = `{
  "scenario": 1, "name": "answers that fail", "clock": "virtual",
  "assistant": {"rules": [
    {"when": {"contains": "milk"}, "reply": {"error": {"code": "provider_busy"}, "delayMs": 300}},
    {"when": {"contains": "recipe"}, "reply": {"text": "Warm the milk."}}
  ]},
  "steps": [
    {"input": {"kind": "tap", "x": 20, "y": 20}},
    {"expect": {"type": "assistant.started"}},
    {"microphone": "milk.vtt"}, {"advance": 3000},
    {"expect": {"type": "assistant.failed", "chip": "errors", "payload": {"code": "provider_busy"}}},
    {"expectDisplay": {"text": ["Put milk on the list", "I cannot answer that now."]}},
    {"microphone": "timer.vtt"}, {"advance": 3000},
    {"expect": {"type": "assistant.failed", "payload": {"code": "script_no_rule"}}},
    {"expectDisplay": {"text": ["Start a timer of three minutes", "I cannot answer that now."]}},
    {"microphone": "recipe.vtt"}, {"advance": 3000},
    {"expectDisplay": {"text": ["Read me the recipe", "Warm the milk."]}}
  ]
}`
