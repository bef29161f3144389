package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"sync"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// golden is one picture, drawn on every model with a panel.
type golden struct {
	name string
	tree string // JSON; PICTURE is replaced with a small picture
	view glasses.View
}

func goldens() []golden {
	words := `"The quick brown fox jumps over the lazy dog. Zwölf Boxkämpfer jagen Viktor. Γειά σου Κόσμε, привет мир."`
	entry := func(text string) string {
		return `{"type":"row","id":"` + text + `","gap":8,"children":[{"type":"icon","icon":"bell"},{"type":"text","text":"Message from ` + text + `","grow":1}]}`
	}
	many := entry("Ada") + "," + entry("Ben") + "," + entry("Cho") + "," + entry("Dag") + "," + entry("Eve") + "," + entry("Fay") + "," +
		entry("Gus") + "," + entry("Hal") + "," + entry("Ida") + "," + entry("Jon")
	icons, _ := json.Marshal(iconRows())
	return []golden{
		{name: "text", tree: `{"type":"column","gap":2,"children":[{"type":"text","style":"title","text":"Title: Weather"},
			{"type":"text","text":` + words + `},{"type":"text","style":"caption","align":"end","colour":"#31a2f2","text":"caption 12:45"}]}`},
		{name: "large", tree: `{"type":"column","align":"center","grow":1,"children":[{"type":"text","style":"large","align":"center","text":"04:59"},
			{"type":"text","style":"title","text":"Pasta"},{"type":"text","style":"caption","text":"tap to stop"}]}`},
		{name: "align", tree: `{"type":"column","align":"center","children":[{"type":"text","text":"centred\nlines of text"},
			{"type":"row","gap":6,"children":[{"type":"icon","icon":"sun","colour":"#f7e26b"},{"type":"text","text":"22°C"}]},
			{"type":"text","align":"start","text":"日本 e\u0301 🙂"}]}`},
		{name: "scripts", tree: `{"type":"column","children":[{"type":"text","text":"你好，世界。漢字かな交じり文 안녕하세요"},
			{"type":"text","text":"مرحبا بالعالم (2024) נשלח 12 שלום, world"},
			{"type":"text","text":"नमस्ते दुनिया বাংলা তামিল தமிழ்"},
			{"type":"text","text":"สวัสดีชาวโลก Հայերեն ქართული"},
			{"type":"text","style":"title","text":"Tiếng Việt ✓ 🙂 العربية"}]}`},
		{name: "mirrored", tree: `{"type":"column","gap":6,"children":[
			{"type":"row","gap":6,"children":[{"type":"icon","icon":"sun"},
			{"type":"text","text":"القدس 22°","grow":1},{"type":"text","text":"GPS 5 m"}]},{"type":"progress","value":30},
			{"type":"list","overflow":"scroll","gap":4,"children":[{"type":"button","id":"a","text":"פתח את Maps (חדש)"},
			{"type":"text","id":"b","text":"直 骨 今","language":"ja"},{"type":"text","id":"c","text":"直 骨 今","align":"end"},
			{"type":"text","id":"d","text":"שורה\nLatin\n12:30"},{"type":"text","id":"e","text":"السطر الأخير"}]}]}`},
		{name: "row", tree: `{"type":"row","gap":10,"padding":4,"children":[{"type":"icon","icon":"navigation"},
			{"type":"column","grow":1,"children":[{"type":"text","text":"Turn left onto Long Winding Road"},{"type":"text","style":"caption","text":"300 m"}]},
			{"type":"text","text":"5 min","align":"end"}]}`},
		{name: "image", tree: `{"type":"row","gap":8,"children":[{"type":"image","data":"PICTURE","height":90},{"type":"image","data":"PICTURE","width":40},
			{"type":"image","data":"AAAA","width":40,"height":40},{"type":"map3d","width":30,"height":30}]}`},
		{name: "icons", tree: string(icons)},
		{name: "button", tree: `{"type":"column","gap":8,"children":[{"type":"text","text":"Take the call?"},{"type":"row","gap":12,"children":[
			{"type":"button","id":"yes","text":"Accept","colour":"#a3ce27"},{"type":"button","id":"no","text":"Decline"}]}]}`},
		{name: "list", tree: `{"type":"column","children":[{"type":"text","style":"title","text":"Messages"},{"type":"list","overflow":"scroll","grow":1,"children":[` + many + `]}]}`,
			view: glasses.View{Focus: 2, Scroll: 40}},
		{name: "progress", tree: `{"type":"column","gap":8,"children":[{"type":"progress","value":0},{"type":"progress","value":40,"colour":"#e06f8b"},
			{"type":"row","gap":6,"children":[{"type":"text","text":"Upload"},{"type":"progress","grow":1,"value":100,"height":20},{"type":"text","text":"100 %"}]}]}`},
		{name: "paginate", tree: `{"type":"column","overflow":"paginate","gap":6,"children":[{"type":"text","style":"title","text":"Long"},{"type":"text","text":` +
			words[:len(words)-1] + words[1:] + `},{"type":"button","id":"ok","text":"Done"}]}`, view: glasses.View{Focus: -1, Scroll: 10000}},
		{name: "paginate-many", tree: `{"type":"list","overflow":"paginate","children":[` + many + `,` + many + `,` + many + `,` + many + `]}`, view: glasses.View{Focus: -1}},
		{name: "clip", tree: `{"type":"column","padding":6,"children":[{"type":"text","style":"title","text":` + words + `},{"type":"text","style":"title","text":` + words +
			`},{"type":"row","children":[{"type":"icon","icon":"star","width":400},{"type":"icon","icon":"heart","width":400}]}]}`},
	}
}

// of returns the golden's view on a model.
func (g golden) of(t testing.TB) glasses.View {
	t.Helper()
	tree := bytes.ReplaceAll([]byte(g.tree), []byte("PICTURE"),
		[]byte(base64.StdEncoding.EncodeToString(gradient(96, 72))))
	show, err := glasses.ParseShow(append(append([]byte(`{"tree":`), tree...), '}'))
	if err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	v := g.view
	v.Tree = &show.Tree
	return v
}

// caseHashes caches the hash of each picture of drawCase, by model and name, because drawing is slow with the race
// detector.
var caseHashes sync.Map

// drawCase draws a golden or a language.
func drawCase(m glasses.DeviceModel, name string, v glasses.View) *image.NRGBA {
	picture := render.Draw(m, v)
	caseHashes.Store(m.ID+"/"+name, fmt.Sprintf("%x", sha256.Sum256(picture.Pix)))
	return picture
}

// caseHash returns the hash of the pixels that drawCase draws.
func caseHash(m glasses.DeviceModel, name string, v glasses.View) string {
	if _, ok := caseHashes.Load(m.ID + "/" + name); !ok {
		drawCase(m, name, v)
	}
	hash, _ := caseHashes.Load(m.ID + "/" + name)
	return hash.(string)
}

// gradient returns a picture that contains every shade and a transparent hole.
func gradient(w, h int) []byte {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{uint8(255 * x / w), uint8(255 * y / h), uint8(255 - 255*x/w), 255}
			if (x-w/2)*(x-w/2)+(y-h/2)*(y-h/2) < h*h/16 {
				c.A = 64
			}
			img.SetNRGBA(x, y, c)
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func panels() []glasses.DeviceModel {
	var out []glasses.DeviceModel
	for _, m := range glasses.Models() {
		if m.Panel != nil {
			out = append(out, m)
		}
	}
	return out
}
