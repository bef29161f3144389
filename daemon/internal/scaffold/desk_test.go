package scaffold

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
)

var update = flag.Bool("update", false, "regenerate the modules of the example apps")

var appsDir = filepath.Join("..", "..", "..", "examples", "apps")

var deskCapabilities = []string{guide.Display, guide.Input, guide.State, guide.Camera, guide.Transcription,
	guide.Speech, guide.Phrases}

// The example apps contain the module that this version generates.
func TestDeskHasTheModuleOfToday(t *testing.T) {
	for language, app := range map[string]string{TypeScript: "desk-ts", Python: "desk-py"} {
		files, err := Generate(Request{Language: language, Capabilities: deskCapabilities})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			path := filepath.Join(appsDir, app, "service", f.Name)
			if *update {
				write(t, path, f.Data)
			}
			if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, f.Data) {
				t.Errorf("%s is outdated: run the tests of this package with -update", path)
			}
		}
	}
}

// The app sends the same frames in the same order in each of the three languages.
func TestDeskIsOneAppInThreeLanguages(t *testing.T) {
	t.Parallel()
	var want, wantFrom string
	for name, command := range deskCommands(t) {
		s := newService(t)
		cmd := exec.Command(command[0], command[1:]...)
		token := filepath.Join(t.TempDir(), "token")
		write(t, token, []byte(secret))
		cmd.Env = append(os.Environ(), "SERVICE_GLASSES_URL="+s.url, "SERVICE_GLASSES_SECRET_FILE="+token,
			"NODE_NO_WARNINGS=1")
		var out, refused bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &refused
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		got := playDesk(s.accept(0), true)
		if err := cmd.Wait(); err != nil || out.String() != "bye\n" {
			t.Errorf("%s exited with %v: %s%s", name, err, out.String(), refused.String())
		}
		for _, code := range []string{glasses.CodePermissionDenied, glasses.CodeHingeClosed, glasses.CodeUnsupported} {
			if !strings.Contains(refused.String(), "("+code+")") {
				t.Errorf("%s did not report %s: %s", name, code, refused.String())
			}
		}
		if want == "" {
			want, wantFrom = got, name
			t.Logf("%s", got)
		} else if got != want {
			t.Errorf("%s sent\n%s\nbut %s sent\n%s", name, got, wantFrom, want)
		}
	}
}

func deskCommands(t *testing.T) map[string][]string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "desk")
	if out, err := exec.Command("go", "build", "-o", binary,
		"./"+filepath.ToSlash(filepath.Join(appsDir, "desk-go"))).CombinedOutput(); err != nil {
		t.Fatalf("build desk-go: %s", out)
	}
	commands := map[string][]string{"desk-go": {binary}}
	if node := tool(t, "node"); node != "" {
		commands["desk-ts"] = []string{node, filepath.Join(appsDir, "desk-ts", "desk.ts")}
	}
	if python := tool(t, "python3"); python != "" {
		commands["desk-py"] = []string{python, "-B", filepath.Join(appsDir, "desk-py", "desk.py")}
	}
	return commands
}

// playDesk answers every command, plays a sequence of events, and returns the frames that the app sent. With redraws it
// expects the app to draw again when the glasses reconnect, even over a lossy link.
func playDesk(p *peer, redraws bool) string {
	var trace bytes.Buffer
	faults := map[string]string{}
	settle := func() { // waits until the app answers a barrier without sending another frame first
		for quiet := false; !quiet; {
			quiet = true
			p.send(glasses.TypeBarrier, "b", struct{}{})
			for {
				f, _ := p.next()
				if f.Type == glasses.TypeBarrier {
					break
				}
				quiet = false
				p.ack(f)
				var payload any
				if json.Unmarshal(f.Payload, &payload) != nil {
					p.t.Fatalf("%s", f.Payload)
				}
				sorted, _ := json.Marshal(payload)
				trace.WriteString(f.Type + " " + string(sorted) + "\n")
				p.answerDesk(f, faults[f.Type])
			}
		}
	}
	settle()
	for i, step := range []struct {
		typ     string
		payload any
		fault   []string
	}{
		{glasses.TypeInput, glasses.Input{Kind: glasses.InputTap, Target: "next"}, nil},
		{glasses.TypeTranscript, glasses.Transcript{Text: "and next", Final: false}, nil},
		{glasses.TypeTranscript, glasses.Transcript{Text: "Next page", Final: true}, nil},
		{glasses.TypeTranscript, glasses.Transcript{Text: "go back", Final: true}, nil},
		{glasses.TypeInput, glasses.Input{Kind: glasses.InputSelect, Target: "item-2"}, nil},
		{glasses.TypeInput, glasses.Input{Kind: glasses.InputNavigate, Direction: "down", Target: "next"}, nil},
		{glasses.TypeInput, glasses.Input{Kind: glasses.InputCapture}, nil},
		{glasses.TypeInput, glasses.Input{Kind: glasses.InputCapture},
			[]string{glasses.TypeCameraPhoto, glasses.CodePermissionDenied}},
		{glasses.TypeInput, glasses.Input{Kind: glasses.InputBack},
			[]string{glasses.TypeDisplayShow, glasses.CodeHingeClosed}},
		{glasses.TypeHinge, glasses.StateWord{State: glasses.HingeOpen}, nil},
		{glasses.TypeBattery, glasses.Battery{Level: 16}, nil},
		{glasses.TypeBattery, glasses.Battery{Level: 15}, []string{glasses.TypeSpeechSay, glasses.CodeUnsupported}},
		{glasses.TypeWear, glasses.WearState{Worn: true}, nil},
		{glasses.TypeLink, glasses.StateWord{State: glasses.LinkLost}, nil},
		{glasses.TypeLink, glasses.StateWord{State: glasses.LinkConnected}, nil},
		{glasses.TypeLink, glasses.StateWord{State: glasses.LinkDisconnected}, nil},
		{glasses.TypeLink, glasses.StateWord{State: glasses.LinkLossy}, nil},
		{glasses.TypeTranscription, glasses.TranscriptionState{Reason: glasses.CodePermissionDenied, Part: "speech",
			By: glasses.ByPermission}, nil},
		{glasses.TypePermission, glasses.PermissionState{Part: "speech", State: "denied"}, nil},
		{glasses.TypeTranscription, glasses.TranscriptionState{Running: true}, nil},
	} {
		clear(faults)
		if step.fault != nil {
			faults[step.fault[0]] = step.fault[1]
		}
		before := trace.Len()
		p.send(step.typ, "g-"+string(rune('a'+i)), step.payload)
		settle()
		if redraws && step.payload == (glasses.StateWord{State: glasses.LinkLossy}) &&
			!strings.Contains(trace.String()[before:], glasses.TypeDisplayShow) {
			p.t.Error("the app does not draw when the glasses reconnect over a lossy link")
		}
	}
	p.close(4410, "the session is closed")
	return trace.String()
}

// awaitRedraw waits until an app has shown its screen, selects another model, which clears the panel, and waits until
// the app shows its screen again.
func (p *peer) awaitRedraw() {
	for _, model := range []string{"even_g1", ""} {
		for f := (glasses.Frame{}); f.Type != glasses.TypeDisplayShow; {
			f, _ = p.next()
			p.ack(f)
			if glasses.IsCommand(f.Type) {
				p.answerDesk(f, "")
			}
		}
		if m, ok := glasses.Model(model); ok {
			p.send(glasses.TypeDevice, "g-model", glasses.DeviceChange{DeviceModel: m})
		}
	}
}

func (p *peer) answerDesk(f glasses.Frame, fault string) {
	switch {
	case fault != "":
		p.send(glasses.TypeResult, f.ID, glasses.Result{Error: &glasses.Error{Code: fault, Message: "as the test wants"}})
	case f.Type == glasses.TypeCameraPhoto:
		p.binary(glasses.TypeMedia, f.ID, glasses.Media{}, slices.Repeat([]byte{1}, 1234))
		p.send(glasses.TypeResult, f.ID, glasses.Result{OK: true, Media: &glasses.Media{MIME: "image/jpeg", Bytes: 1234}})
	default:
		p.ok(f)
	}
}
