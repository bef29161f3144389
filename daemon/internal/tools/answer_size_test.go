package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/proto/backendapi"
)

// noise returns a PNG of random pixels, which does not compress.
func noise(t *testing.T, seed uint64, width, height int) []byte {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range picture.Pix {
		picture.Pix[i] = byte(random.Uint32())
		if i%4 == 3 {
			picture.Pix[i] = 255
		}
	}
	var encoded bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.NoCompression}
	if err := encoder.Encode(&encoded, picture); err != nil {
		t.Fatal(err)
	}
	return encoded.Bytes()
}

// checkSize fails the test if an answer is too long for an agent or is not JSON.
func checkSize(t *testing.T, what string, r Result) (bounded Result, fields map[string]any) {
	t.Helper()
	bounded = r.Bounded()
	text, err := json.Marshal(bounded.Text)
	if err != nil {
		t.Fatal(err)
	}
	size := len(text) + len(bounded.Structured)
	for _, i := range bounded.Images {
		size += base64.StdEncoding.EncodedLen(len(i.Data))
	}
	if size > MaxAnswer || bounded.IsError != r.IsError {
		t.Errorf("%s: %d bytes, error %v; want at most %d and %v", what, size, bounded.IsError, MaxAnswer, r.IsError)
	}
	if err := json.Unmarshal(bounded.Structured, &fields); err != nil || bounded.Text != string(bounded.Structured) {
		t.Errorf("%s: the answer is no JSON or differs from its text: %v", what, err)
	}
	return bounded, fields
}

// A log of photos is read in one answer, which contains the photos' hashes. A log of long texts is read in several
// answers, which together contain every row once.
func TestEventLog_FitsAnAnswer(t *testing.T) {
	photo := noise(t, 1, 105, 105)
	w := newWorld().locally()
	w.page = backendapi.EventPage{}
	tree := `{"tree":{"type":"image","data":"` + base64.StdEncoding.EncodeToString(photo) + `","alt":"a dog"}}`
	for seq := range 100 {
		w.page.Events = append(w.page.Events, json.RawMessage(fmt.Sprintf(`{"seq":%d,"payload":%s}`, seq+1, tree)))
	}
	w.page.Next = 100
	result, _ := w.call(t, "getEventLog", `{}`, IO{})
	_, fields := checkSize(t, "photos", result)
	want := fmt.Sprintf("image/png, %d bytes, sha256 %x", len(photo), sha256.Sum256(photo))
	if rows, _ := fields["events"].([]any); len(rows) != 100 || strings.Count(result.Text, want) != 100 ||
		fields["more"] != false || !strings.Contains(result.Text, "a dog") {
		t.Errorf("%d rows, %d hashes, more %v; want 100, 100 and false", len(rows), strings.Count(result.Text, want),
			fields["more"])
	}
	var all []json.RawMessage
	for seq := range 500 {
		all = append(all, json.RawMessage(fmt.Sprintf(`{"seq":%d,"payload":{"text":"%s"}}`, seq+1,
			strings.Repeat(`\"<`, 2000))))
	}
	since, read := 0, 0
	for more := true; more; {
		w.page = backendapi.EventPage{Events: append([]json.RawMessage(nil), all[since:]...), Next: 500}
		result, _ := w.call(t, "getEventLog", fmt.Sprintf(`{"since":%d,"limit":500}`, since), IO{})
		_, fields := checkSize(t, "texts", result)
		rows, _ := fields["events"].([]any)
		read, since, more = read+len(rows), int(fields["next"].(float64)), fields["more"].(bool)
		if len(rows) == 0 || read != since {
			t.Fatalf("%d rows up to row %d, want each row once", read, since)
		}
	}
	if read != 500 {
		t.Errorf("read %d rows, want 500", read)
	}
}

func TestRunSteps_ShowsEqualPicturesOnce(t *testing.T) {
	w := newWorld().locally()
	w.steps = scenario.StepsReport{Verdict: scenario.Pass, Steps: []scenario.StepReport{}, End: w.display}
	for i, seed := range []uint64{1, 2, 1, 2} {
		w.steps.Pictures = append(w.steps.Pictures, scenario.Picture{Name: fmt.Sprint(i), PNG: noise(t, seed, 50, 50)})
	}
	result, _ := w.call(t, "runSteps", `{"steps":[{"advance":1}]}`, IO{})
	if bounded, fields := checkSize(t, "equal", result); len(bounded.Images) != 2 || fields["more"] != nil {
		t.Errorf("%d pictures, more %v; want 2 and no more", len(bounded.Images), fields["more"])
	}
	for i := range w.steps.Pictures {
		w.steps.Pictures[i].PNG = noise(t, uint64(i), 1200, 1200)
	}
	result, _ = w.call(t, "runSteps", `{"steps":[{"advance":1}]}`, IO{})
	bounded, fields := checkSize(t, "large", result)
	summary, _ := fields["summary"].(string)
	if len(bounded.Images) == 0 || bounded.Images[0].MIME != "image/jpeg" || fields["more"] != true ||
		!strings.Contains(summary, "pictures were left out") {
		t.Errorf("%d pictures, more %v, summary %s; want some as JPEG and a remark", len(bounded.Images), fields["more"], summary)
	}
}

// If a picture is too large for an answer, its hash is still the PNG's, which expectDisplay compares.
func TestDisplayState_KeepsTheHashOfThePNG(t *testing.T) {
	w := newWorld().locally()
	w.display.PNG = noise(t, 8, 600, 600)
	want := fmt.Sprintf("%x", sha256.Sum256(w.display.PNG))
	result, _ := w.call(t, "getDisplayState", `{}`, IO{})
	bounded, fields := checkSize(t, "noise", result)
	facts, _ := fields["picture"].(map[string]any)
	if len(bounded.Images) != 1 || bounded.Images[0].MIME != "image/jpeg" || facts["sha256"] != want ||
		facts["mime"] != "image/png" {
		t.Errorf("%d images, picture %v; want one JPEG, and the facts of the PNG %s", len(bounded.Images), facts, want)
	}
	if _, fields := w.call(t, "expectDisplay", `{"picture":"`+want+`"}`, IO{}); fields["status"] != "pass" {
		t.Errorf("expectDisplay with the hash: %v, want pass", fields)
	}
}

func TestDisplayState_OnAllModelsFitsAnAnswer(t *testing.T) {
	w := newWorld().locally()
	photo := noise(t, 7, 220, 220)
	model, _ := glasses.Model("rayban_display")
	tree := glasses.Node{Type: glasses.NodeImage, Data: base64.StdEncoding.EncodeToString(photo), Alt: "a dog"}
	w.display = session.NewDisplay(model, glasses.FreshState(), render.Clamp(model, glasses.View{Tree: &tree}))
	w.display.PNG = w.display.Picture()
	result, _ := w.call(t, "getDisplayState", `{"models":["all"]}`, IO{})
	bounded, fields := checkSize(t, "all models", result)
	if len(bounded.Images) != 1 || !strings.Contains(fmt.Sprint(fields["tree"]), fmt.Sprintf("%x", sha256.Sum256(photo))) {
		t.Errorf("%d pictures, tree %v; want the sheet, and the photo's hash in the tree", len(bounded.Images), fields["tree"])
	}
}

// For any answer of a tool, the agent gets valid JSON of at most MaxAnswer bytes.
func TestBounded_ShortensAnyAnswer(t *testing.T) {
	list := func(n int, entry any) []any {
		all := make([]any, n)
		for i := range all {
			all[i] = entry
		}
		return all
	}
	for name, answer := range map[string]map[string]any{
		"one text":      {"text": strings.Repeat("ä\"", 1_000_000)},
		"many entries":  {"list": list(300_000, "entry")},
		"nested lists":  {"list": list(200, map[string]any{"list": list(200, map[string]any{"text": strings.Repeat("x", 90)})})},
		"long texts":    {"list": list(200, strings.Repeat("\\", 20_000))},
		"nearly enough": {"text": strings.Repeat("x", maxContent/2-100)},
	} {
		answer["status"], answer["summary"] = "ok", "Done."
		result := resultOf(answer, nil)
		result.Images = []Image{{MIME: "image/png", Data: noise(t, 3, 50, 50)}}
		bounded, fields := checkSize(t, name, result)
		if fields["status"] != "ok" || !strings.HasPrefix(fields["summary"].(string), "Done.") || fields["more"] != true &&
			name != "nearly enough" || len(bounded.Text) < 10_000 {
			t.Errorf("%s: status %v, summary %v, more %v, %d bytes; want a shorter answer that says so", name,
				fields["status"], fields["summary"], fields["more"], len(bounded.Text))
		}
	}
	if r := resultOf(map[string]any{"summary": "Done.", "n": json.Number("12345678901234567890")}, nil); string(
		r.Bounded().Structured) != string(r.Structured) {
		t.Errorf("a short answer was changed: %s", r.Bounded().Structured)
	}
}
