package tools

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/internal/problem"
)

func TestGetDisplayState(t *testing.T) {
	w := newWorld().locally()
	w.display.View.Tree.Children = append(w.display.View.Tree.Children,
		glasses.Node{Type: glasses.NodeImage, Data: strings.Repeat("A", 4000)})
	result, fields := w.call(t, "getDisplayState", `{}`, IO{})
	if len(result.Images) != 1 || result.Images[0].MIME != "image/png" ||
		string(result.Images[0].Data) != string(w.display.PNG) {
		t.Fatalf("%d images, want one PNG", len(result.Images))
	}
	if strings.Contains(result.Text, strings.Repeat("A", 200)) {
		t.Error("the answer contains the image's data")
	}
	targets, _ := fields["targets"].([]any)
	if target, _ := targets[0].(map[string]any); len(targets) != 1 || target["id"] != "done" ||
		target["focused"] != true || target["width"] == 0.0 {
		t.Errorf("targets: %v", targets)
	}
	if facts, _ := fields["picture"].(map[string]any); facts["width"] != 600.0 || len(facts["sha256"].(string)) != 64 {
		t.Errorf("picture: %v", facts)
	}
	if result, _ := w.call(t, "getDisplayState", `{"picture":false}`, IO{}); result.Images != nil {
		t.Error("the answer has an image although picture is false")
	}

	if _, fields := w.call(t, "getDisplayState", `{"pictureFile":"/tmp/a.png"}`,
		IO{}); fields["code"] != problem.CodeInvalidRequest {
		t.Errorf("pictureFile: %v, want it refused", fields)
	}

	w.display.Model, _ = glasses.Model("rayban_meta")
	w.display.PNG, w.display.View.Tree = nil, nil
	if result, fields := w.call(t, "getDisplayState", `{}`, IO{}); result.Images != nil || fields["picture"] != nil ||
		fields["tree"] != nil {
		t.Errorf("a model without a panel: %v, want no picture", fields)
	}
}

func TestExpectDisplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			args, want, mention string
		}{
			{`{"text":["Shopping","Done"],"absent":["Milk"],"focus":"done"}`, "pass", ""},
			{`{"text":["Shop"],"withinMs":0}`, "fail", `"Shop" is only a part of the text "Shopping"; with contains: true`},
			{`{"text":["Shop","Done"],"contains":true}`, "pass", ""},
			{`{"absent":["Shop"],"withinMs":0}`, "fail", `"Shop" can be seen in the text "Shopping"`},
			{`{"text":["Milk"],"withinMs":0}`, "fail", `"Milk" cannot be read`},
			{`{"absent":["Done"],"withinMs":100}`, "fail", `"Done" can be seen`},
			{`{"focus":"","withinMs":0}`, "fail", "focus"},
			{`{"picture":"` + strings.Repeat("0", 64) + `","withinMs":0}`, "fail", "picture"},
		} {
			w := newWorld().locally()
			result, fields := w.call(t, "expectDisplay", test.args, IO{})
			summary, _ := fields["summary"].(string)
			if fields["status"] != test.want || !strings.Contains(summary, test.mention) ||
				(len(result.Images) == 1) != (test.want == "fail") {
				t.Errorf("%s: %v", test.args, fields)
			}
		}
		w := newWorld().locally()
		w.display.Unconfirmed = "the right arm is not connected"
		for _, args := range []string{`{"text":["Done"],"withinMs":0}`, `{"absent":["Milk"],"withinMs":300}`} {
			_, fields := w.call(t, "expectDisplay", args, IO{})
			if missing := fmt.Sprint(fields["missing"]); fields["status"] != "fail" ||
				!strings.Contains(missing, "confirmed what they show: the right arm is not connected") {
				t.Errorf("%s of a picture that is not confirmed: %v", args, fields)
			}
		}
		_, looked := w.call(t, "getDisplayState", `{}`, IO{})
		if summary := fmt.Sprint(looked["summary"]); !strings.Contains(summary, "the right arm is not connected") {
			t.Errorf("getDisplayState of a picture that is not confirmed: %s", summary)
		}
		w.display.State.Worn = false // then the wearer sees nothing, regardless of the panel's content
		w.display = session.NewDisplay(w.display.Model, w.display.State, w.display.View)
		w.display.Unconfirmed = "the right arm is not connected"
		if _, fields := w.call(t, "expectDisplay", `{"absent":["Done"],"withinMs":0}`, IO{}); fields["status"] != "pass" {
			t.Errorf("glasses that are not worn: %v", fields)
		}
		w = newWorld().locally()
		w.opened.Clock = backend.ClockVirtual
		if _, fields := w.call(t, "expectDisplay", `{"text":["Milk"],"withinMs":120}`, IO{}); fields["status"] != "fail" ||
			len(w.advanced) != 3 || w.advanced[2] != 20 {
			t.Errorf("in virtual time: %v, advanced %v; want a failure after 120 ms", fields, w.advanced)
		}
	})
}

func TestExpectDisplay_WaitsForASlowPanel(t *testing.T) {
	for args, want := range map[string]int64{`{"text":["Hello"]}`: 16_000, `{"text":["Hello"],"withinMs":6000}`: 6000} {
		w := newWorld().locally()
		w.opened.Clock = backend.ClockVirtual
		w.shows("brilliant_frame", glasses.View{Tree: &glasses.Node{Type: glasses.NodeText, Text: "Hello"}, Focus: -1})
		w.display.Unconfirmed = "the picture is on its way to the panel"
		_, fields := w.call(t, "expectDisplay", args, IO{})
		waited := int64(0)
		for _, ms := range w.advanced {
			waited += ms
		}
		if fields["status"] != "fail" || waited != want {
			t.Errorf("%s: waited %d ms, want %d: %v", args, waited, want, fields)
		}
	}
}

// shows makes the session show a tree on a model.
func (w *world) shows(model string, view glasses.View) {
	m, _ := glasses.Model(model)
	w.display = session.NewDisplay(m, glasses.FreshState(), render.Clamp(m, view))
	w.display.PNG = w.display.Picture()
}

// batteryTree is a column whose last row is below the panel of an Even G1.
func batteryTree() *glasses.Node {
	tree := glasses.Node{Type: glasses.NodeColumn, Gap: 2, Padding: 8}
	for _, text := range []string{"Workout", "Round 3 of 8", "00:24", "rest"} {
		tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeText, Text: text})
	}
	tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeRow, Children: []glasses.Node{
		{Type: glasses.NodeIcon, Icon: "battery"}, {Type: glasses.NodeText, ID: "battery", Text: "Battery 14 %"}}})
	return &tree
}

// shopping is a list of 12 entries that scrolls.
func shopping() *glasses.Node {
	tree := glasses.Node{Type: glasses.NodeList, Overflow: glasses.OverflowScroll, Gap: 8}
	for _, text := range []string{"tea", "milk", "bread", "salt", "rice", "soap", "fish", "corn", "plums", "beans", "honey",
		"cheese"} {
		tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeText, ID: text, Text: text,
			Style: glasses.StyleTitle, Padding: 10})
	}
	return &tree
}

// icons is a column of a text, an icon of a width, and a progress bar.
func icons(width int) glasses.View {
	return glasses.View{Tree: &glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
		{Type: glasses.NodeText, Text: "Turn left"},
		{Type: glasses.NodeIcon, ID: "turn", Icon: "arrow-left", Width: width},
		{Type: glasses.NodeProgress, ID: "rest", Value: 40}}}}
}

func TestExpectDisplay_CountsOnlyWhatTheWearerSees(t *testing.T) {
	scrolled := glasses.View{Tree: shopping(), Focus: 11, Scroll: 10_000}
	picture := glasses.View{Tree: &glasses.Node{Type: glasses.NodeColumn, Children: []glasses.Node{
		{Type: glasses.NodeImage, ID: "map", Alt: "the way home", Data: "AAAA", Width: 50, Height: 50},
		{Type: glasses.NodeImage, Alt: "far below", Data: "AAAA", Width: 50, Height: 900}}}}
	for _, test := range []struct {
		name, model string
		view        glasses.View
		dark        func(*glasses.State)
		args        string
		want        string
	}{
		{"below the panel", "even_g1", glasses.View{Tree: batteryTree()}, nil, `{"text":["Battery 14 %"]}`, "fail"},
		{"absent below the panel", "even_g1", glasses.View{Tree: batteryTree()}, nil, `{"absent":["Battery"]}`, "pass"},
		{"on a larger panel", "rayban_display", glasses.View{Tree: batteryTree()}, nil, `{"text":["Battery 14 %"]}`, "pass"},
		{"scrolled out", "android_xr_display", scrolled, nil, `{"text":["tea"]}`, "fail"},
		{"scrolled in", "android_xr_display", scrolled, nil, `{"text":["cheese"],"absent":["tea"]}`, "pass"},
		{"folded", "rayban_display", glasses.View{Tree: batteryTree()},
			func(s *glasses.State) { s.Hinge = glasses.HingeFolded }, `{"text":["Workout"]}`, "fail"},
		{"not worn", "rayban_display", glasses.View{Tree: batteryTree()},
			func(s *glasses.State) { s.Worn = false }, `{"text":["Workout"],"allowPartial":true}`, "fail"},
		{"image by alt", "rayban_display", picture, nil, `{"images":["the way home"]}`, "pass"},
		{"image by id", "rayban_display", picture, nil, `{"images":["map"]}`, "pass"},
		{"clipped image", "rayban_display", picture, nil, `{"images":["far below"]}`, "fail"},
		{"clipped image, partly visible", "rayban_display", picture, nil,
			`{"images":["far below"],"allowPartial":true}`, "pass"},
		{"icon by name", "rayban_display", icons(40), nil, `{"images":["arrow-left"]}`, "pass"},
		{"icon by id", "rayban_display", icons(40), nil, `{"images":["turn"]}`, "pass"},
		{"absent icon", "rayban_display", icons(40), nil, `{"absent":["arrow-left"]}`, "fail"},
		{"cut icon", "even_g1", icons(300), nil, `{"images":["arrow-left"]}`, "fail"},
		{"cut icon, partly visible", "even_g1", icons(300), nil, `{"images":["turn"],"allowPartial":true}`, "pass"},
		{"absent icon that is cut", "even_g1", icons(300), nil, `{"absent":["arrow-left"]}`, "fail"},
		{"absent progress", "rayban_display", icons(40), nil, `{"absent":["rest"]}`, "fail"},
		{"unknown icon", "rayban_display", glasses.View{Tree: &glasses.Node{Type: glasses.NodeIcon, Icon: "nope"}}, nil,
			`{"images":["nope"]}`, "fail"},
		{"progress", "rayban_display", icons(40), nil, `{"progress":{"rest":40}}`, "pass"},
		{"another progress", "rayban_display", icons(40), nil, `{"progress":{"rest":41}}`, "fail"},
		{"progress below the panel", "even_g1", icons(300), nil, `{"progress":{"rest":40}}`, "fail"},
	} {
		w := newWorld().locally()
		w.shows(test.model, test.view)
		if test.dark != nil {
			test.dark(&w.display.State)
			w.display = session.NewDisplay(w.display.Model, w.display.State, w.display.View)
			w.display.PNG = w.display.Picture()
		}
		args := strings.Replace(test.args, "{", `{"withinMs":0,`, 1)
		if _, fields := w.call(t, "expectDisplay", args, IO{}); fields["status"] != test.want {
			t.Errorf("%s: got another status: %v", test.name, fields["summary"])
		}
	}
}

func TestGetDisplayState_TellsWhatIsOffScreen(t *testing.T) {
	w := newWorld().locally()
	w.shows("even_g1", glasses.View{Tree: batteryTree()})
	_, fields := w.call(t, "getDisplayState", `{}`, IO{})
	hidden, _ := fields["offScreen"].([]any)
	found, _ := fields["findings"].([]any)
	if len(hidden) != 1 || hidden[0].(map[string]any)["visible"] != "none" || len(found) != 2 ||
		found[0].(map[string]any)["kind"] != "clipped" || found[0].(map[string]any)["text"] != "battery" ||
		!strings.Contains(fields["summary"].(string), `"battery"`) ||
		strings.Contains(fmt.Sprint(fields["text"]), "Battery") {
		t.Errorf("offScreen: %v", fields)
	}
	w.display.State.Hinge = glasses.HingeFolded
	w.display = session.NewDisplay(w.display.Model, w.display.State, w.display.View)
	_, fields = w.call(t, "getDisplayState", `{}`, IO{})
	if text, _ := fields["text"].([]any); len(text) != 0 ||
		!strings.HasPrefix(fields["summary"].(string), "The wearer sees nothing: the glasses are folded") {
		t.Errorf("folded: %v", fields)
	}
}

func TestGetDisplayState_SaysHowToAddAFont(t *testing.T) {
	w := newWorld().locally()
	w.shows("rayban_display", glasses.View{Tree: &glasses.Node{Type: glasses.NodeText, Text: "\u13a3\u13b3\u13a9"}})
	_, fields := w.call(t, "getDisplayState", `{}`, IO{})
	if summary := fields["summary"].(string); !strings.Contains(summary, "`servicectl fonts add FILE`") {
		t.Errorf("characters without a font: got summary %q, want the command that adds a font", summary)
	}
	w.shows("even_g1", glasses.View{Tree: batteryTree()})
	_, fields = w.call(t, "getDisplayState", `{}`, IO{})
	if summary := fields["summary"].(string); strings.Contains(summary, "fonts add") {
		t.Errorf("a clipped text: got summary %q, want no mention of fonts", summary)
	}
}

func TestGetDisplayState_OnEveryModel(t *testing.T) {
	w := newWorld().locally()
	w.shows("rayban_display", glasses.View{Tree: batteryTree()})
	result, fields := w.call(t, "getDisplayState", `{"models":["all"]}`, IO{})
	models, _ := fields["models"].([]any)
	if len(models) != 6 || len(result.Images) != 1 || len(result.Images[0].Data) < 1000 {
		t.Fatalf("%d models, %d images; want 6 models on one sheet", len(models), len(result.Images))
	}
	misfits := map[string]int{}
	for _, m := range models {
		m := m.(map[string]any)
		misfits[m["deviceModel"].(string)] = len(m["findings"].([]any))
	}
	if misfits["even_g1"] != 2 || misfits["rayban_display"] != 0 {
		t.Errorf("findings: %v", misfits)
	}
	if _, fields := w.call(t, "getDisplayState", `{"models":["rayban_meta"]}`,
		IO{}); fields["code"] != problem.CodeInvalidRequest {
		t.Errorf("a model without a display: %v, want invalid_request", fields)
	}
}
